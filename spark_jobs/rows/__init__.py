"""From evidence to wide rows: ``topic``, ``group``, ``broker``, ``cluster`` and ``client`` hold the builders; ``build`` picks one."""

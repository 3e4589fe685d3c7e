"""The controls: how they are loaded, and which SQL and columns their rules may use. Nothing here runs a rule."""

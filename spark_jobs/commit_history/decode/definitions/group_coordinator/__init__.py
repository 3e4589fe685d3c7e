"""Records of ``__consumer_offsets``."""

"""Reads the files that people write (policies, controls, connections, client settings): within limits, as strict YAML, as plain text."""

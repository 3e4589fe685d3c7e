"""Reads the files that people write (policies, controls, connections, client settings): within limits, as strict YAML, as plain text.

Nothing here knows the fields of a particular file.
"""

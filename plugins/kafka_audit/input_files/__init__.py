"""Reads the files that people write (policies, controls, connections, client settings) within limits, and matches their patterns of names.

Nothing here knows the fields of a particular file.
"""

"""Copies new records of a topic into the history folder as they came, and counts which offsets are missing."""

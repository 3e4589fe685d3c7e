"""Decoded tables -> the behaviour tables: what each group, and each of its partitions, did in a window of time."""

"""The folders below a root: where each lies, how it is written, hashed, sealed, chained, signed, checked and deleted.

Nothing here reads a cluster or judges evidence.
"""

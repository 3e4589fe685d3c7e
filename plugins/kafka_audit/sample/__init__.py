"""Writes made-up audits of clusters named ``sample-...``, from the files of one real audit, so that every page has something to show.

Nothing here reads a cluster; every snapshot and audit carries the mark ``"sample": true``. Only ``cli`` imports it.
"""

"""The command line of a process that may end at any moment."""

import psutil


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing of a process that has ended, or that this user may not look at."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []

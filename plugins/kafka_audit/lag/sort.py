"""The orders in which the rows of a reading can be shown."""

from enum import Enum


class Sort(str, Enum):
    """What decides the order of rows: names, or a figure with the worst first and unknown ones last."""

    GROUP = "group"
    LAG = "lag"
    SECONDS = "seconds"
    LOST = "lost"
    MARGIN = "margin"

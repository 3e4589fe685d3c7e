"""The names of metrics, and of labels compared with something, in an expression of PromQL."""

import re

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LABELS = re.compile(r"\{([^{}]*)\}")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
_RANGE = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"(?<![\w:.$])[A-Za-z_:][\w:]*(?![\w:])(?!\s*\()")
_WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset"}


def metric_names(expression: str) -> set[str]:
    """What is neither a function, an operator, a label nor a string."""
    bare = _RANGE.sub("", _LABELS.sub("", _GROUPING.sub(" ", _STRING.sub('""', expression))))
    return set(_NAME.findall(bare)) - _WORDS


def label_names(expression: str) -> set[str]:
    """The labels in selectors and in groupings."""
    bare = _STRING.sub('""', expression)
    selectors = {name for inside in _LABELS.findall(bare) for name in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inside)}
    return selectors | {name for inside in _GROUPING.findall(bare) for name in re.findall(r"\w+", inside.partition("(")[2])}

"""Parses YAML strictly: plain values by the rules of YAML 1.2, no duplicate keys, limits on depth, size and aliases.

YAML 1.1, which PyYAML follows, reads ``no`` as false, ``012`` as 10, ``1:30`` as 90 and ``2026-01-31`` as a date. Here they are text, and a
field of type number, boolean or date refuses text that is not one, with the name of the field.
"""

import math
import re
from collections.abc import Hashable
from typing import Any

import yaml

MOST_LEVELS = 50
"""The deepest nesting of lists and mappings."""
MOST_NODES = 100_000
"""The largest number of values and keys in a file; an alias counts as everything that it expands to."""
_INT64 = 1 << 63
_MOST_DIGITS = 19  # of a 64-bit number; Python refuses to parse thousands of digits, and is slow with somewhat fewer
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.CSafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        # PyYAML silently keeps the last of two equal keys; in a policy that would drop a rule.
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _problem("a key is a list or a mapping: write text, and put quotes around a value that begins with [ or {", key_node)
            if key_node.tag == _MERGE:  # `<<: *other`: a mapping may repeat, and thereby replace, keys that it merges in
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise _problem(f"key {key!r:.80} stands there twice: keep one", key_node)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        text = str(node.value)
        is_whole = node.tag.endswith(":int")
        too_long = is_whole and len(text.lstrip("+-")) > _MOST_DIGITS
        number = math.inf if too_long else int(text) if is_whole else float(text)
        if not math.isfinite(number) or (is_whole and not -_INT64 <= number < _INT64):
            raise _problem("a number is beyond 64 bits: write a smaller one, or quotes around it", node)
        return number


_Loader.yaml_implicit_resolvers = {}


def _resolves(kind: str, pattern: str, first: str) -> None:
    """What a plain value of this kind looks like, and with which characters it may begin; an empty value is looked up as well."""
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(rf"^(?:{pattern})\Z"), [*first, ""])


# https://yaml.org/spec/1.2.2/#103-core-schema, without numbers that are written in base 8 or 16, with leading zeros, or that are none.
_resolves("null", r"~|null|Null|NULL|", "~nN")
_resolves("bool", r"true|True|TRUE|false|False|FALSE", "tTfF")
_resolves("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789")
_resolves(
    "float", r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|[-+]?\.[0-9]+(?:[eE][-+]?[0-9]+)?", "-+0123456789."
)
_resolves("merge", r"<<", "<")
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)


def parse_yaml(raw: bytes) -> Any:  # noqa: ANN401 - whatever the file holds
    """The value of one YAML document: dict, list, str, int, float, bool or None.

    yaml.YAMLError, which mostly has a ``problem_mark``, for all that is not valid, for keys that stand twice or are no text, for tags, for
    numbers beyond 64 bits, and for more levels or nodes than a person would write.
    """
    _check_shape(raw)
    return yaml.load(raw, Loader=_Loader)  # a SafeLoader


def _check_shape(raw: bytes) -> None:
    """What must be known before values are built, from the parser's events: they come one by one, however deep and often things stand."""
    sizes: dict[str, int] = {}  # anchor -> nodes below it
    open_ones: list[tuple[str | None, int]] = []  # anchor, and how many nodes came before
    nodes = 0
    for event in yaml.parse(raw, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
            if isinstance(event, yaml.AliasEvent):
                if event.anchor in (anchor for anchor, _ in open_ones):
                    raise _problem("an alias stands inside of what it repeats", event)
                nodes += sizes.get(str(event.anchor), 0)
            elif getattr(event, "tag", None) is not None:
                raise _problem("a tag is not used here: remove it, or put quotes around a text that begins with !", event)
            elif isinstance(event, yaml.ScalarEvent) and event.anchor is not None:
                sizes[event.anchor] = 1
        if isinstance(event, yaml.CollectionStartEvent):
            open_ones.append((event.anchor, nodes))
            if len(open_ones) > MOST_LEVELS:
                raise _problem(f"more than {MOST_LEVELS} lists and mappings stand in each other", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_ones.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before + 1
        if nodes > MOST_NODES:
            raise _problem(f"holds more than {MOST_NODES:,} values and keys, all repetitions counted", event)


def _problem(text: str, place: yaml.Event | yaml.Node) -> yaml.MarkedYAMLError:
    mark: Any = place.start_mark  # libyaml's marks are like PyYAML's, but not of their type
    return yaml.constructor.ConstructorError(None, None, text, mark)

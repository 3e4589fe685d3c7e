"""Policy and control files as values: strict YAML, and problems told with file, field and fix."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from kafka_audit.errors import ConfigurationError


class _NoDuplicates(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word; in a policy that would drop a rule in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # `<<: *other`: a mapping may repeat, and so replace, what it merges in
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands there twice: keep one", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path) -> tuple[Any, bytes]:
    """Parse one YAML file that may not repeat a key; returns the value and the raw bytes. ConfigurationError with line and column."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{path}: the file is missing") from problem
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror})") from problem
    try:
        return yaml.load(raw, Loader=_NoDuplicates), raw  # a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{path}: is not valid YAML: {' '.join(str(problem).split())}") from problem


def explain(path: Path, problem: ValidationError) -> list[str]:
    """One sentence for each problem pydantic found: file, field and fix."""
    lines = []
    for error in problem.errors():
        field = ".".join(str(part) for part in error["loc"]) or "(whole file)"
        message = error["msg"].removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            message = "is not a known field: remove it or correct its spelling"
        elif error["type"] == "missing":
            message = "is missing: add it"
        else:
            message = f"{message} (found {error['input']!r:.80})"
        lines.append(f"{path}: {field}: {message}")
    return lines

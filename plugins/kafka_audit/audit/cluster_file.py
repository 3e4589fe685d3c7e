"""The file of clusters, ``clusters.yaml``: for each its connection, and what it has of its own: policy, schedules, owners."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.fields import Name, Strict, repeated
from kafka_audit.input_files.yaml_file import read_model

CLUSTER_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
NAME_RULE = "a name has 1-63 of a-z 0-9 . _ -, starting with a letter or a digit"
PRESETS = ("@hourly", "@daily", "@weekly", "@monthly")
MOST_CLUSTERS = 1_000

_FIELD = r"[0-9A-Za-z*?#,/-]+"
_CRON = re.compile(rf"{_FIELD}(?: {_FIELD}){{4}}")
_CRON_RANGES = {"minute": (0, 59), "hour": (0, 23), "day of the month": (1, 31), "month": (1, 12), "day of the week": (0, 7)}
_CRON_NUMBER = re.compile(r"(?<![/#0-9])[0-9]+")  # not a step (/5) or the number of a week in the month (#2)


def _is_cron(text: str) -> str:
    if text in PRESETS:
        return text
    if not _CRON.fullmatch(text):
        raise ValueError(f'write one of {", ".join(PRESETS)} or a cron expression of five fields, such as "15 4 * * *"')
    for field, (name, (least, most)) in zip(text.split(" "), _CRON_RANGES.items(), strict=True):
        if any(not least <= int(number) <= most for number in _CRON_NUMBER.findall(field)):
            raise ValueError(f"the {name} of a cron expression is {least} to {most}, not {field}")
    return text


def is_schedule(text: str) -> str:
    """The text, if it is a preset, a cron expression, ``asset`` or an asset's URI; else ValueError with the fix."""
    return text if text == "asset" or re.fullmatch(r"[a-z0-9+.-]+://\S+", text) else _is_cron(text)


def _is_name(name: str) -> str:
    if not re.fullmatch(CLUSTER_PATTERN, name):
        raise ValueError(NAME_RULE)
    return name


def _is_absolute(text: str) -> str:
    if not Path(text).is_absolute():
        raise ValueError("write the absolute path of a policy folder, as it is on the machines that run tasks")
    return text


def _has_no_comma(owner: str) -> str:
    if "," in owner:
        raise ValueError("holds a comma: write each owner as an entry of its own")
    return owner


Cron = Annotated[str, AfterValidator(_is_cron)]


class Schedules(Strict):
    """When a cluster's DAGs run; one that is left out is the installation's. ``audit`` may also be ``asset`` or an asset's URI."""

    audit: Annotated[str, AfterValidator(is_schedule)] | None = None
    offsets: Cron | None = None
    commits: Cron | None = None


class ListedCluster(Strict):
    """One cluster: its name, the id of its Airflow connection, and what it has of its own."""

    name: Annotated[str, AfterValidator(_is_name)]
    connection: Annotated[str, StringConstraints(pattern=r"^\S{1,250}$")]
    policy: Annotated[str, AfterValidator(_is_absolute)] | None = None
    schedules: Schedules = Schedules()
    owners: Annotated[list[Annotated[Name, AfterValidator(_has_no_comma)]], Field(max_length=10)] = Field(default_factory=list)


class ClusterFile(Strict):
    """The content of the file."""

    version: Literal[1]
    clusters: list[ListedCluster] = Field(min_length=1, max_length=MOST_CLUSTERS)

    @model_validator(mode="after")
    def _each_once(self) -> "ClusterFile":
        if twice := repeated(one.name for one in self.clusters):
            raise ValueError(f"clusters: {', '.join(twice)} is listed twice: give each cluster one name and one connection")
        return self


def read_cluster_file(path: Path) -> list[ListedCluster]:
    """The clusters of the file, in its order. ConfigurationError (exit 2) names the file, the field and the fix.

    It is asked for each DAG and each web page: within a process it is parsed again only when it has changed.
    """
    try:
        facts = path.stat()
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror}); name the file of clusters by an absolute path") from problem
    return _parsed(path, facts.st_mtime_ns, facts.st_size, facts.st_ino)


@lru_cache(maxsize=2)
def _parsed(path: Path, *_version: int) -> list[ListedCluster]:
    return read_model(path, ClusterFile)[0].clusters

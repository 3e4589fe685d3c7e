"""The texts of a control as an audit asked it: from the audit's own copy, or from the shipped catalogue where that cannot be read."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kafka_audit.audit.inputs import CONTROLS
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import shipped_controls
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.index.read import IndexedAudit
from kafka_audit.input_files.yaml_file import read_model
from kafka_audit.store.sealed_files import checked_file


@dataclass(frozen=True, kw_only=True)
class ControlText:
    """``control``: None if there is no text. ``why``: why it is not the audit's own copy, as a sentence; empty if it is."""

    control: Control | None
    why: str = ""


def control_text(index: IndexedAudit, control_id: str) -> ControlText:
    """The texts of a control that the audit's overview lists."""
    name = f"inputs/{CONTROLS}/{control_id}.yaml"
    try:
        path = checked_file(index.audit.path, index.files, name)
        return ControlText(control=_parsed(path, index.files[name]))
    except (ConfigurationError, IntegrityError):
        why = "The audit keeps no copy of this control." if name not in index.files else "The audit's copy of this control cannot be read."
    shipped = shipped_controls() / f"{control_id}.yaml"
    if not shipped.is_file():
        return ControlText(control=None, why=f"{why} No control of this name is shipped with this release either.")
    return ControlText(control=_parsed(shipped, ""), why=f"{why} This is the text that is shipped with this release.")


@lru_cache(maxsize=256)
def _parsed(path: Path, _sha256: str) -> Control:
    return read_model(path, Control, within=path.parent)[0]

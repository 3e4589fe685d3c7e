"""Which folders a run's Params may name: the rest of the worker's disk is none of a trigger form's business."""

from collections.abc import Sequence
from pathlib import Path

from kafka_audit.audit.installation import FOLDERS_VARIABLE, open_folders


def allowed_folder(name: str, own: Sequence[Path], variable: str) -> Path:
    """The folder of that absolute path, without links, when it is one of ``own`` or lies below one of ``KAFKA_AUDIT_FOLDERS``.

    ``own`` are the installation's defaults, which ``variable`` names. ValueError otherwise. The list is asked before the disk, so that
    the answer for any other path tells nothing about what is there.
    """
    if not Path(name).is_absolute():
        raise ValueError("it is relative; write an absolute path, as it is on the machine that runs the tasks")
    try:
        folder = Path(name).resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, a name that is too long, a null character
        folder = None
    opened = open_folders()
    if folder is None or not (folder in own or any(folder.is_relative_to(top) for top in opened)):
        places = [f"below {', '.join(map(str, opened))} ({FOLDERS_VARIABLE})"] if opened else []
        places += [f"{', '.join(map(str, own))} ({variable})"] if own else []
        allowed = f"allowed are folders {' and '.join(places)}" if places else f"neither {FOLDERS_VARIABLE} nor {variable} is set"
        raise ValueError(
            f"this installation does not let a run use that folder; {allowed}. Leave the parameter empty for the installation's own, "
            f"or let {FOLDERS_VARIABLE} name a folder above it in the environment of every Airflow component"
        )
    if not folder.is_dir():
        raise ValueError("there is no such folder on the machine that runs the tasks")
    return folder

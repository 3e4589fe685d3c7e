"""A control of the user's own: one file in a folder of its own, whose name has a space."""

from pathlib import Path

from kafka_audit.catalogue.load import shipped_controls

CODE = "OWN-01"


def write_own_control(place: Path, *, pass_when: str) -> Path:
    """Write BRK-02 (topics are not created by accident) again as OWN-01, with another condition; returns the folder, below ``place``."""
    text = (shipped_controls() / "topic_auto_creation_disabled.yaml").read_text()
    theirs = ("id: topic_auto_creation_disabled", "code: BRK-02", "pass_when: config['auto.create.topics.enable'].value = 'false'")
    for one, ours in zip(theirs, ("id: our_own_rule", f"code: {CODE}", f"pass_when: {pass_when}"), strict=True):
        assert one in text
        text = text.replace(one, ours)
    folder = place / "own controls"
    folder.mkdir()
    (folder / "our_own_rule.yaml").write_text(text)
    return folder

"""The folders that the trigger form offers, and what finding them may cost."""

import os
from pathlib import Path

import pytest

from kafka_audit.audit import choices
from kafka_audit.audit.choices import Choices, find_choices, offered_choices


def policy(folder: Path) -> str:
    folder.mkdir(parents=True)
    for name in ("tiers.yaml", "slas.yaml", "waivers.yaml"):
        (folder / name).write_text("version: 1\n")
    return str(folder)


def controls(folder: Path) -> str:
    folder.mkdir(parents=True)
    (folder / "a_state.yaml").write_text("id: a_state\npass_when: 1 = 1\n")
    return str(folder)


def test_policies_and_controls_are_found_down_to_the_third_level_and_told_apart(tmp_path: Path) -> None:
    found = [policy(tmp_path / "b" / "strict"), policy(tmp_path / "a")]
    (tmp_path / "a" / "frameworks").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.yaml").write_text("# pass_when: is what a rule begins with\n")
    deep = controls(tmp_path / "x" / "y" / "z")
    controls(tmp_path / "x" / "y" / "z" / "too_deep")
    assert find_choices([tmp_path]) == Choices(policies=(found[1], found[0]), controls=(deep,))


def test_an_open_folder_may_itself_be_a_policy_and_the_installations_own_come_first_and_once(tmp_path: Path) -> None:
    own = policy(tmp_path / "own")
    other = policy(tmp_path / "open" / "other")
    found = find_choices([tmp_path / "open", tmp_path / "own"], [Path(own)], [tmp_path / "mine"])
    assert (found.policies, found.controls) == ((own, other), (str(tmp_path / "mine"),))


def test_links_and_hidden_folders_are_not_followed(tmp_path: Path) -> None:
    policy(tmp_path / "secret")
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "way-out").symlink_to(tmp_path / "secret")
    policy(tmp_path / "open" / ".git")
    linked = tmp_path / "open" / "linked"
    linked.mkdir()
    for name in ("tiers.yaml", "slas.yaml"):
        (linked / name).symlink_to(tmp_path / "secret" / name)
    assert find_choices([tmp_path / "open"]) == Choices()


def test_a_name_that_could_break_out_of_the_form_is_not_offered_and_noted_without_it(tmp_path: Path) -> None:
    for name in ("a`b", "c\u202ed", "e\nf", "i\u034fj"):
        policy(tmp_path / name)
    controls(tmp_path / "g,h")
    found = find_choices([tmp_path])
    assert (found.policies, found.controls) == ((), ())
    assert [note.split("/")[-1].split("`")[0] for note in found.notes] == ["a?b", "c?d", "e?f", "i?j"]


def test_a_folder_that_cannot_be_read_is_noted_and_the_others_are_offered(tmp_path: Path) -> None:
    good = policy(tmp_path / "good")
    found = find_choices([tmp_path / "gone", tmp_path])
    assert found.policies == (good,)
    assert found.notes == (f"`{tmp_path}/gone` could not be read (No such file or directory).",)


def test_a_large_tree_costs_a_bounded_number_of_looks_and_says_what_it_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        policy(tmp_path / f"p{number:02}")
    monkeypatch.setattr(choices, "MOST_OFFERED", 10)
    assert find_choices([tmp_path]).notes == ("30 policies were found and 10 are offered; any other can be typed.",)
    monkeypatch.setattr(choices, "MOST_LOOKED_AT", 5)
    scans: list[object] = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (scans.append(path), scan(path))[1])
    found = find_choices([tmp_path])
    assert (len(scans), len(found.policies)) == (5, 4)
    assert found.notes == ("Only the first 5 folders were looked at; any other folder can be typed.",)
    monkeypatch.setattr(choices, "MOST_ENTRIES", 3)
    assert f"Only the first 3 entries of `{tmp_path}` were looked at." in find_choices([tmp_path]).notes


def test_wrong_settings_are_a_note_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_FOLDERS", f"{tmp_path}/not-there")
    (note,) = offered_choices().notes
    assert note.startswith("No folders are listed: KAFKA_AUDIT_FOLDERS: ")
    good = policy(tmp_path / "open" / "good")
    monkeypatch.setenv("KAFKA_AUDIT_FOLDERS", str(tmp_path / "open"))
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", "")
    monkeypatch.setenv("KAFKA_AUDIT_CONTROLS", "")
    assert offered_choices() == Choices(policies=(good,))

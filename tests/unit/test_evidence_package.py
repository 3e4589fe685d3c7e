"""``kafka-audit export``: one zip file that an auditor checks with ``sha256sum`` alone."""

import hashlib
import json
import re
import shutil
import stat
import subprocess
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from packed_audits import CLUSTER, EARLIER_ID, EARLIER_SNAPSHOT, HOSTILE_FILE, LATER_ID, bare_audit, sealed_audit
from report_audit import AUDIT_ID, SNAPSHOT_ID
from reviewed_audits import ASKED, rejection
from typer.testing import CliRunner, Result

from kafka_audit.audit.formats import REPORT_FILES
from kafka_audit.audit.review_answer import read_answer
from kafka_audit.audit.review_record import record_of
from kafka_audit.cli.main import app
from kafka_audit.errors import AuditError, IntegrityError
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import FileHashes
from kafka_audit.store.reviews import RECORD, review_id_of, seal_review
from kafka_audit.store.signing import new_key
from kafka_audit.store.signing_key import VARIABLE
from kafka_audit.store.stored_zip import inner_name

TOP = f"kafka-audit-{CLUSTER}-{AUDIT_ID}"
AUDIT = f"audits/{CLUSTER}/{AUDIT_ID}"
SNAPSHOT = f"evidence/{CLUSTER}/{SNAPSHOT_ID}"


def export(audit: Path, to: Path, *options: object) -> Result:
    return CliRunner().invoke(app, ["export", str(audit), "--to", str(to), *(str(one) for one in options)])


def packed(audit: Path, to: Path) -> Path:
    """The file that was written."""
    done = export(audit, to)
    assert done.exit_code == 0, done.exception
    return to


def unpacked(package: Path, to: Path) -> Path:
    with zipfile.ZipFile(package) as found:
        found.extractall(to)
    return to / TOP


def refused(audit: Path, to: Path, *options: object) -> tuple[int, str]:
    problem = export(audit, to, *options).exception
    assert isinstance(problem, AuditError)
    return problem.exit_code, str(problem)


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False)


def steps(folder: Path) -> list[str]:
    """The shell commands of each numbered step of README.txt."""
    blocks = re.split(r"^[0-9]\.  ", (folder / "README.txt").read_text(), flags=re.MULTILINE)[1:]
    return ["\n".join(line[8:] for line in block.splitlines() if line.startswith(" " * 8)) for block in blocks]


def test_the_package_holds_reports_findings_snapshot_rules_manifests_and_its_place_in_the_chain(tmp_path: Path) -> None:
    bare_audit(tmp_path / "root", EARLIER_ID)
    audit = sealed_audit(tmp_path / "root")
    folder = unpacked(packed(audit, tmp_path / "a.zip"), tmp_path / "out")
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {f"reports/{one.file}" for one in REPORT_FILES.values()} <= names
    assert {f"{AUDIT}/{path.relative_to(audit).as_posix()}" for path in audit.rglob("*") if path.is_file()} <= names
    assert f"{AUDIT}/settings/findings.parquet/part-00000-x.snappy.parquet" in names
    assert {f"{AUDIT}/inputs/policy/tiers.yaml", f"{AUDIT}/inputs/controls/lag_within_sla.yaml", f"{SNAPSHOT}/brokers.parquet"} <= names
    assert {f"{SNAPSHOT}/manifest.json", f"audits/{CLUSTER}/{EARLIER_ID}/manifest.json", "README.txt", "chain.json", "SHA256SUMS"} <= names
    chain = json.loads((folder / "chain.json").read_text())
    assert (chain["audit"]["sequence"], chain["previous"]["audit_id"], chain["state"]) == (2, EARLIER_ID, "agrees")
    assert chain["audit"]["manifest_sha256"] == FileHashes().of(audit / "manifest.json")[0]


def test_sha256sum_alone_finds_the_package_intact_and_names_what_was_changed_or_lost(tmp_path: Path) -> None:
    folder = unpacked(packed(sealed_audit(tmp_path / "root"), tmp_path / "a.zip"), tmp_path / "out")
    listed = {line.split("  ", 1)[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert listed == there - {"SHA256SUMS"}
    check = ["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"]
    whole = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=False)
    assert (whole.returncode, whole.stdout, whole.stderr) == (0, "", "")
    (folder / AUDIT / "run.json").write_text("{}")
    (folder / SNAPSHOT / "brokers.parquet").unlink()
    broken = subprocess.run(check, cwd=folder, capture_output=True, text=True, check=False)
    assert broken.returncode == 1
    assert f"{AUDIT}/run.json: FAILED" in broken.stdout
    assert f"{SNAPSHOT}/brokers.parquet: FAILED open or read" in broken.stdout


@pytest.mark.parametrize("hostile", [False, True])
def test_every_command_of_the_readme_says_what_the_readme_says_that_it_does(tmp_path: Path, hostile: bool) -> None:
    bare_audit(tmp_path / "root", EARLIER_ID)
    folder = unpacked(packed(sealed_audit(tmp_path / "root", hostile=hostile), tmp_path / "a.zip"), tmp_path / "out")
    whole, sealed, judged, chained, witness, reports = steps(folder)
    for script in (whole, sealed):
        done = shell(script, folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    manifests = [SNAPSHOT, f"audits/{CLUSTER}/{EARLIER_ID}", AUDIT]
    for script, of, lines in zip((judged, chained, witness), manifests, (2, 2, 1), strict=True):
        done = shell(script, folder)
        sha256 = hashlib.sha256((folder / of / "manifest.json").read_bytes()).hexdigest()
        assert [sha256 in line for line in done.stdout.splitlines()] == [True] * lines
    again = {one.file for one in REPORT_FILES.values()} - {path.name for path in (folder / AUDIT / "report").iterdir()}
    assert shell(reports, folder).stdout.splitlines() == [f"not sealed: reports/{name}" for name in sorted(again)]


def test_the_readmes_second_step_finds_files_that_agree_with_the_list_but_not_with_the_seal(tmp_path: Path) -> None:
    """One who changes files of a package makes SHA256SUMS fit; the manifests show it."""
    folder = unpacked(packed(sealed_audit(tmp_path / "root"), tmp_path / "a.zip"), tmp_path / "out")
    (folder / AUDIT / "run.json").write_text("{}")
    (folder / AUDIT / "gate" / "evidence.json").unlink()
    one, other = folder / SNAPSHOT / "brokers.parquet", folder / SNAPSHOT / "groups.parquet"
    swapped = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(swapped)
    _list_again(folder)
    whole, sealed, *_ = steps(folder)
    assert shell(whole, folder).stdout == ""
    assert shell(sealed, folder).stdout.splitlines() == [
        f"not as it was sealed: {AUDIT}/run.json",
        f"files were changed, removed or added: {AUDIT}",
        f"not as it was sealed: {SNAPSHOT}/brokers.parquet",
        f"not as it was sealed: {SNAPSHOT}/groups.parquet",
    ]


def _list_again(folder: Path) -> None:
    shell("find . -type f ! -name SHA256SUMS | sed 's,^./,,' | sort | xargs -d '\\n' sha256sum > SHA256SUMS", folder)


def test_a_sealed_file_that_was_replaced_is_found_although_the_list_names_another_one_twice_in_its_place(tmp_path: Path) -> None:
    folder = unpacked(packed(sealed_audit(tmp_path / "root"), tmp_path / "a.zip"), tmp_path / "out")
    (folder / AUDIT / "report" / "report.html").write_text("PASSED")
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    twice = next(line for line in lines if line.endswith(f"  {AUDIT}/run.json"))
    (folder / "SHA256SUMS").write_text("".join(f"{twice if line.endswith('/report/report.html') else line}\n" for line in lines))
    whole, sealed, *_ = steps(folder)
    assert shell(whole, folder).stdout == f"not listed: ./{AUDIT}/report/report.html\n"
    assert f"not as it was sealed: {AUDIT}/report/report.html" in shell(sealed, folder).stdout


@pytest.mark.parametrize("name", ["report/read me first.html", "report/a%41.html", "report/.hidden"])
def test_a_file_that_was_added_to_a_package_is_found(tmp_path: Path, name: str) -> None:
    folder = unpacked(packed(sealed_audit(tmp_path / "root"), tmp_path / "a.zip"), tmp_path / "out")
    shutil.copy(folder / AUDIT / "run.json", folder / AUDIT / name)
    whole, sealed, *_ = steps(folder)
    assert shell(whole, folder).stdout == f"not listed: ./{AUDIT}/{name}\n"
    _list_again(folder)
    assert shell(whole, folder).stdout == ""
    assert f"files were changed, removed or added: {AUDIT}\n" in shell(sealed, folder).stdout


def test_the_readme_names_a_report_that_is_not_the_sealed_one(tmp_path: Path) -> None:
    """Whoever changes reports/ makes SHA256SUMS fit, and no seal covers it."""
    folder = unpacked(packed(sealed_audit(tmp_path / "root"), tmp_path / "a.zip"), tmp_path / "out")
    (folder / "reports" / "report.html").write_text("PASSED")
    _list_again(folder)
    assert "not sealed: reports/report.html" in shell(steps(folder)[5], folder).stdout.splitlines()


def test_the_same_audit_gives_the_same_bytes_in_another_place_and_after_a_later_audit(tmp_path: Path) -> None:
    first = packed(sealed_audit(tmp_path / "root"), tmp_path / "a.zip")
    shutil.copytree(tmp_path / "root", tmp_path / "copy", copy_function=shutil.copy)  # with other times
    bare_audit(tmp_path / "copy", LATER_ID)
    second = packed(tmp_path / "copy" / AUDIT, tmp_path / "b.zip")
    assert first.read_bytes() == second.read_bytes()


def test_times_rights_and_order_in_the_package_are_fixed(tmp_path: Path) -> None:
    with zipfile.ZipFile(packed(sealed_audit(tmp_path / "root"), tmp_path / "a.zip")) as package:
        entries = package.infolist()
    assert {one.date_time for one in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {one.external_attr >> 16 for one in entries} == {stat.S_IFREG | 0o644}
    assert {one.compress_type for one in entries} == {zipfile.ZIP_STORED}
    assert (entries[0].filename, entries[-1].filename) == (f"{TOP}/README.txt", f"{TOP}/SHA256SUMS")


def test_a_signed_audit_brings_its_signature_which_openssl_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = new_key(tmp_path / "seal.key")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    audit = sealed_audit(tmp_path / "root")
    folder = unpacked(packed(audit, tmp_path / "a.zip"), tmp_path / "out")
    shutil.copy(public, folder / "seal.key.pub")
    signature = steps(folder)[-1]
    assert (folder / AUDIT / "manifest.dsse.json").is_file()
    assert shell(steps(folder)[1], folder).stdout == ""
    if shutil.which("jq") and shutil.which("openssl"):
        said = shell(signature, folder).stdout
        assert "Verified Successfully" in said
        assert said.splitlines()[-1] == FileHashes().of(audit / "manifest.json")[0]
    other = new_key(tmp_path / "other.key")
    assert export(audit, tmp_path / "b.zip", "--key", public).exit_code == 0
    assert refused(audit, tmp_path / "c.zip", "--key", other)[0] == 5


def reviewed(root: Path, minutes: int, answer: dict[str, object]) -> Path:
    """The folder of a review of the audit of ``sealed_audit``, with this record and no check of the answer."""
    made = EvidenceRoot(path=root)
    seal = sealed_as(root / AUDIT)
    assert seal is not None
    about = {"cluster": CLUSTER, "dag_id": "kafka_reliability_audit", "run_id": "manual__1", "task_id": "review"}
    review_id = review_id_of(seal, ASKED + timedelta(minutes=minutes))
    seal_review(made, CLUSTER, review_id, seal, {RECORD: record_of(read_answer(answer), review_id, seal, **about)})
    return made.reviews(CLUSTER) / review_id


def verify(folder: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", str(folder)])
    assert isinstance(done.exception, AuditError), done.output
    return done.exception.exit_code, f"{done.output}{done.exception}"


def test_verify_in_an_unpacked_package_says_what_is_not_in_it_and_still_finds_what_was_changed(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root", compared=True)
    folder = unpacked(packed(audit, tmp_path / "a.zip"), tmp_path / "out")
    code, said = verify(folder / AUDIT)
    assert code == 4
    assert f"absent   earlier snapshot {EARLIER_SNAPSHOT}: is not in this package" in said
    assert "is intact as far as this evidence package goes" in said
    assert "cannot be relied on" not in said
    shutil.move(folder / "evidence" / CLUSTER / SNAPSHOT_ID, tmp_path / "judged")
    assert verify(folder / AUDIT)[0] == 5, "the snapshot that was judged belongs into the package"
    shutil.move(tmp_path / "judged", folder / "evidence" / CLUSTER / SNAPSHOT_ID)
    (folder / AUDIT / "run.json").write_text("{}")
    assert verify(folder / AUDIT)[0] == 5


def test_an_earlier_snapshot_that_is_gone_from_a_root_is_no_package(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root", compared=True)
    folder = unpacked(packed(audit, tmp_path / "a.zip"), tmp_path / "out")
    shutil.rmtree(tmp_path / "root" / "evidence" / CLUSTER / EARLIER_SNAPSHOT)
    assert verify(audit)[0] == 5
    (folder / "chain.json").write_text((folder / "chain.json").read_text() + " ")
    assert verify(folder / AUDIT)[0] == 5, "SHA256SUMS does not list this chain.json"


def test_reviews_are_packed_and_the_readme_checks_them_like_the_audit(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root")
    folders = [reviewed(tmp_path / "root", minute, rejection(minute)) for minute in range(2)]
    folder = unpacked(packed(audit, tmp_path / "a.zip"), tmp_path / "out")
    whole, sealed, *_, reviews = steps(folder)
    assert shell(whole, folder).stdout == shell(sealed, folder).stdout == ""
    found = [FileHashes().of(audit / "manifest.json")[0], *(FileHashes().of(one / "manifest.json")[0] for one in folders)]
    lines = shell(reviews, folder).stdout.splitlines()
    assert [sha256 in line for sha256, line in zip([found[0], *found], lines, strict=True)] == [True] * 4
    assert all(sha256 in (folder / "README.txt").read_text() for sha256 in found)
    (folder / "reviews" / CLUSTER / folders[1].name / "review.json").write_text("{}")
    _list_again(folder)
    assert f"not as it was sealed: reviews/{CLUSTER}/{folders[1].name}/review.json" in shell(sealed, folder).stdout


def test_a_review_that_was_changed_is_left_out_and_readme_and_command_say_so(tmp_path: Path) -> None:
    audit, kept = sealed_audit(tmp_path / "root"), reviewed(tmp_path / "root", 0, rejection())
    changed = reviewed(tmp_path / "root", 1, rejection(1))
    (changed / "review.json").write_text("{}")
    code, said = refused(audit, tmp_path / "a.zip")
    assert (code, changed.name in said, kept.name in said) == (5, True, False)
    folder = unpacked(tmp_path / "a.zip", tmp_path / "out")
    assert [path.name for path in (folder / "reviews" / CLUSTER).iterdir()] == [kept.name]
    assert f"Missing: {changed.name}, because it is not as it was sealed" in (folder / "README.txt").read_text()


def test_a_hostile_name_becomes_no_path(tmp_path: Path) -> None:
    with zipfile.ZipFile(packed(sealed_audit(tmp_path / "root", hostile=True), tmp_path / "a.zip")) as package:
        names = package.namelist()
    assert all(
        re.fullmatch(r"[A-Za-z0-9_.~ +=,@()%/-]+", name) and ".." not in name.split("/") and name.startswith(f"{TOP}/") for name in names
    )
    assert f"{TOP}/{AUDIT}/inputs/policy/{inner_name(HOSTILE_FILE)}" in names


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a//b", "a/./b", "a/..", ""])
def test_a_name_that_leads_out_of_its_folder_is_never_packed(name: str) -> None:
    with pytest.raises(IntegrityError, match="leads out of its folder"):
        inner_name(name)


def test_different_names_stay_different_in_the_package() -> None:
    names = ["a\\b", "a%5Cb", "a:b", "a\nb", "a\u202eb", "a b", "a\udc80b"]
    assert len({inner_name(name) for name in names}) == len(names)


def test_a_file_that_is_there_is_not_overwritten_and_nothing_is_left_of_a_refused_package(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root")
    (tmp_path / "a.zip").write_text("mine")
    assert refused(audit, tmp_path / "a.zip")[0] == 2
    assert (tmp_path / "a.zip").read_text() == "mine"
    (tmp_path / "b.zip").symlink_to(tmp_path / "nowhere")
    assert refused(audit, tmp_path / "b.zip")[0] == 2
    assert refused(audit, audit / "c.zip")[0] == 2
    assert refused(audit, tmp_path / "no folder" / "c.zip")[0] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"root", "root-controls", "root-policy", "a.zip", "b.zip"}


def test_an_audit_that_is_not_sealed_or_was_changed_is_not_packed(tmp_path: Path) -> None:
    assert refused(sealed_audit(tmp_path / "open", seal=False), tmp_path / "a.zip")[0] == 5
    audit = sealed_audit(tmp_path / "root")
    (audit / "report" / "report.html").write_text("other")
    assert refused(audit, tmp_path / "a.zip")[0] == 5
    assert not (tmp_path / "a.zip").exists()


def test_a_file_that_changes_while_it_is_packed_stops_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = sealed_audit(tmp_path / "root")
    monkeypatch.setattr("kafka_audit.report.evidence_package.report_of", lambda found: _changed(audit, found))
    code, said = refused(audit, tmp_path / "a.zip")
    assert (code, "was changed while it was read" in said) == (5, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root", "root-controls", "root-policy"]


def _changed(audit: Path, found: object) -> object:
    from kafka_audit.report.sealed_report import report_of

    report = report_of(found)  # type: ignore[arg-type]
    (audit / "gate" / "findings.json").write_text("{}")
    return report

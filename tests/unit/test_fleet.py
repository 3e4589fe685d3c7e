"""``kafka-audit fleet``: one matrix of controls by clusters; a cluster that could not be audited keeps its row and says why."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fleet_audits import RULES, all_pass, fleet_audit, fleet_of_all_kinds
from report_audit import AUDIT_ID, HOSTILE_GROUPS, finding
from sealed_audits import forge
from test_report_html import Page
from typer.testing import CliRunner, Result

from kafka_audit.cli.main import app
from kafka_audit.errors import AuditError
from kafka_audit.report.fleet import Fleet, FleetCluster, read_fleet
from kafka_audit.report.fleet.document import content
from kafka_audit.report.fleet.page import as_html
from kafka_audit.report.fleet.states import STATES, state_of
from kafka_audit.report.fleet.table import as_csv
from kafka_audit.store.chain_state import read_state, write_state
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.signing import new_key, read_public_key

EARLIER = "20261101T231600Z-0badcafe0badcafe"
LATER = "20261121T231600Z-0badcafe0badcafe"


@pytest.fixture(autouse=True)
def _no_clusters_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_AUDIT_CLUSTERS", raising=False)
    monkeypatch.delenv("KAFKA_AUDIT_CLUSTER", raising=False)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet") / "root"
    fleet_of_all_kinds(root)
    return root


def read(root: Path, *expected: str) -> Fleet:
    return read_fleet(EvidenceRoot(path=root), expected)


def one(fleet: Fleet, name: str) -> FleetCluster:
    return next(cluster for cluster in fleet.clusters if cluster.name == name)


def states(fleet: Fleet, name: str) -> dict[str, str]:
    return {control.code: state_of(one(fleet, name), control) for control in fleet.controls}


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(content.decode("utf-8-sig").splitlines()))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["fleet", *(str(one) for one in arguments)])


def refused(*arguments: object) -> tuple[int, str]:
    problem = run(*arguments).exception
    assert isinstance(problem, AuditError)
    return problem.exit_code, str(problem)


def test_every_cluster_keeps_its_row_and_those_that_were_not_audited_say_why(mixed: Path) -> None:
    fleet = read(mixed, "listed")
    said = {cluster.name: (cluster.verdict, cluster.audited, " ".join(cluster.why)) for cluster in fleet.clusters}
    assert list(said) == ["changed", "crashed", "failing", "healthy", "listed", "seen-only", "void"]
    assert said["healthy"] == ("PASSED", True, "")
    assert said["failing"] == ("FAILED", True, "")
    assert said["listed"] == said["seen-only"] == ("NO AUDIT", False, "No audit of it is sealed.")
    assert said["void"] == ("VOID", False, "evidence: no")
    assert said["crashed"][:2] == ("ERROR", False) and said["crashed"][2].startswith("Step verify failed: Spark died")
    assert said["changed"][:2] == ("UNUSABLE", False)
    assert "cannot be used" in said["changed"][2] and "gate/findings.json" in said["changed"][2] and "\n" not in said["changed"][2]


def test_the_states_of_a_control_stay_apart(mixed: Path, tmp_path: Path) -> None:
    fleet = read(mixed)
    assert states(fleet, "healthy") == {"TOP-01": "pass", "BRK-01": "pass", "CON-01": "pass"}
    assert states(fleet, "failing") == {"TOP-01": "fail", "BRK-01": "not_assessed", "CON-01": "not_applicable"}
    assert set(states(fleet, "void").values()) == set(states(fleet, "seen-only").values()) == {"unknown"}
    fleet_audit(tmp_path / "root", "no-lag", all_pass, lag=False, gates=(("PASS", 0), ("FAIL", 4)))
    fleet_audit(tmp_path / "root", "few", lambda found: [finding(found[RULES[0]], "a", "error")], rules=RULES[:1])
    fleet_audit(tmp_path / "root", "waived", lambda found: [finding(found[RULES[0]], "a", waiver="W-1")], rules=RULES[:1])
    fleet = read(tmp_path / "root")
    assert states(fleet, "no-lag")["CON-01"] == "did_not_run"
    assert states(fleet, "few") == {"TOP-01": "error", "BRK-01": "not_in_audit", "CON-01": "not_in_audit"}
    assert states(fleet, "waived")["TOP-01"] == "fail_waived"
    assert one(fleet, "no-lag").why[0] == "findings: no"


def test_a_control_passes_in_part_if_results_of_it_were_set_aside(tmp_path: Path) -> None:
    aside = {"reason": "there is no earlier snapshot to compare with"}
    fleet_audit(
        tmp_path / "root",
        "a",
        lambda found: [finding(found[RULES[0]], "x", "pass"), finding(found[RULES[0]], "y", "not_applicable", **aside)],
        rules=RULES[:1],
    )
    fleet = read(tmp_path / "root")
    assert states(fleet, "a") == {"TOP-01": "pass_in_part"}
    assert [row["status"] for row in rows_of(as_csv(fleet))] == ["pass_in_part"]
    page = Page(as_html(fleet).decode())
    assert "passes in part" in page.text.split("Controls by cluster")[-1].split("TOP-01")[1]


def test_coverage_says_how_many_controls_did_not_run(tmp_path: Path) -> None:
    fleet_audit(tmp_path / "root", "no-lag", all_pass, lag=False, gates=(("PASS", 0), ("FAIL", 3)))
    fleet_audit(tmp_path / "root", "whole", all_pass)
    fleet = read(tmp_path / "root")
    assert [(one.name, one.not_run) for one in fleet.clusters] == [("no-lag", 1), ("whole", 0)]
    assert Page(as_html(fleet).decode()).text.count("100.0%1 control did not run") == 1
    assert [one["not_run"] for one in content(fleet)["clusters"]] == ["1 control did not run", None]  # type: ignore[attr-defined]


def test_failures_show_their_number_and_how_many_are_waived(mixed: Path) -> None:
    fleet = read(mixed)
    failing = one(fleet, "failing")
    assert (failing.failed["critical"].results, failing.failed["critical"].waived) == (3, 1)
    (cell,) = (cell for cell in failing.cells.values() if cell.standing == "fail")
    assert (cell.number, cell.counts and cell.counts.waived, cell.worst) == (3, 1, "critical")
    text = Page(as_html(fleet).decode()).text
    assert "3 fails1 waived" in text
    assert "1 not assessed" in text and "not applicable" in text


def test_a_void_audit_shows_neither_failures_nor_coverage(mixed: Path) -> None:
    void = one(read(mixed), "void")
    assert (void.cells, void.failed, void.applicable, void.audit_id) == ({}, {}, 0, AUDIT_ID)


def test_a_newer_audit_that_is_not_sealed_is_named(tmp_path: Path) -> None:
    audit = fleet_audit(tmp_path / "root", "a", all_pass)
    write_json(audit.parent / LATER / "run.json", {"audit_id": LATER})
    fleet = read(tmp_path / "root")
    assert (one(fleet, "a").verdict, one(fleet, "a").why) == (
        "PASSED",
        (f"A newer audit, {LATER}, is not sealed: it runs still, or was cut short.",),
    )
    write_json(tmp_path / "root" / "audits" / "b" / LATER / "run.json", {"audit_id": LATER})
    assert one(read(tmp_path / "root"), "b").why == ("An audit of it was begun, and none is sealed.",)


def test_an_audit_that_was_removed_is_missed_and_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    shutil.rmtree(fleet_audit(tmp_path / "root", "a", all_pass))
    found = one(read(tmp_path / "root"), "a")
    assert found.verdict == "UNUSABLE"
    assert f"audit {AUDIT_ID}, which was sealed last, is gone" in found.why[0]


def test_a_changed_snapshot_makes_the_audit_unusable(tmp_path: Path) -> None:
    fleet_audit(tmp_path / "root", "a", all_pass)
    file = next((tmp_path / "root" / "evidence" / "a").rglob("groups.parquet"))
    file.write_bytes(file.read_bytes() + b"#")
    found = one(read(tmp_path / "root"), "a")
    assert found.verdict == "UNUSABLE"
    assert "cannot be relied on: snapshot" in found.why[0]


@pytest.mark.parametrize("broken", [{"verdict": "PASSED"}, {"controls": []}, {"audit_id": LATER}, {"verdict": "GREAT"}])
def test_a_report_that_cannot_be_read_makes_the_audit_unusable(tmp_path: Path, broken: dict[str, object]) -> None:
    audit = fleet_audit(tmp_path / "root", "a-b", all_pass)
    whole = (audit / "report" / "report.json").read_text()
    value = broken if broken == {"verdict": "PASSED"} else {**json.loads(whole), **broken}
    (audit / "report" / "report.json").write_text(json.dumps(value))
    forge(audit)
    (audit.parent / ".chain.json").unlink()
    found = one(read(tmp_path / "root"), "a-b")
    assert (found.verdict, "report.json" in found.why[0]) == ("UNUSABLE", True)


def test_a_folder_whose_name_is_no_clusters_name_is_shown_as_unusable(tmp_path: Path) -> None:
    (tmp_path / "root" / "audits" / "<b>Bad\u202e").mkdir(parents=True)
    fleet = read(tmp_path / "root")
    assert [cluster.verdict for cluster in fleet.clusters] == ["UNUSABLE"]
    page = as_html(fleet).decode()
    assert "<b>Bad" not in page and "\u202e" not in page
    assert "nothing is known of any control" in page


def test_a_link_in_the_place_of_an_audit_is_not_followed(tmp_path: Path) -> None:
    audit = fleet_audit(tmp_path / "root", "a", all_pass)
    audit.rename(tmp_path / "elsewhere")
    audit.symlink_to(tmp_path / "elsewhere")
    assert one(read(tmp_path / "root"), "a").verdict == "UNUSABLE"


def test_with_a_key_an_audit_without_its_signature_is_unusable(tmp_path: Path) -> None:
    fleet_audit(tmp_path / "root", "a", all_pass)
    key = read_public_key(new_key(tmp_path / "seal.key"))
    assert one(read_fleet(EvidenceRoot(path=tmp_path / "root"), keys=[key]), "a").verdict == "UNUSABLE"


@pytest.mark.parametrize("title", HOSTILE_GROUPS)
def test_a_hostile_title_is_shown_as_text_and_runs_nothing(tmp_path: Path, title: str) -> None:
    fleet_audit(tmp_path / "root", "a", all_pass, title=title)
    fleet = read(tmp_path / "root")
    page = Page(as_html(fleet).decode())
    assert {tag for tag, _ in page.tags} & {"script", "img", "a"} == {"a"}
    assert [attributes["href"] for tag, attributes in page.tags if tag == "a"] == ["#clusters", "#clusters", "#matrix", "#cluster-1"]
    assert not any(name.startswith("on") or name in {"src", "style"} for _, attributes in page.tags for name in attributes)
    assert not any(character in page.text for character in "\u202e\u2066\u200b\x1b\x00\x85\u034f\U000e0100")
    shown = next(row["title"] for row in rows_of(as_csv(fleet)) if row["code"] == "TOP-01")
    assert not shown.startswith(("=", "+", "-", "@")) and shown.isprintable()


def test_the_page_has_a_policy_that_lets_it_load_and_run_nothing(mixed: Path) -> None:
    page = Page(as_html(read(mixed)).decode())
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert policy and policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in policy
    assert all(attributes["href"].startswith("#") for tag, attributes in page.tags if attributes.get("href"))


def test_headings_go_down_one_level_at_a_time_and_all_headers_have_a_scope(mixed: Path) -> None:
    page = Page(as_html(read(mixed)).decode())
    assert [tag for tag, _ in page.tags if tag in {"h1", "h2", "h3"}] == ["h1", "h2", "h2"]
    headers = [attributes for tag, attributes in page.tags if tag == "th"]
    assert headers and all(attributes.get("scope") in {"col", "row", "rowgroup"} for attributes in headers)


def test_the_csv_has_one_row_for_each_cluster_and_control(mixed: Path) -> None:
    rows = rows_of(as_csv(read(mixed)))
    assert len(rows) == 6 * 3
    by_place = {(row["cluster"], row["code"]): row for row in rows}
    failing = by_place["failing", "TOP-01"]
    assert [failing[name] for name in ("status", "failed", "waived", "errored", "passed")] == ["fail", "3", "1", "1", "1"]
    unknown = by_place["seen-only", "TOP-01"]
    assert [unknown[name] for name in ("status", "verdict", "failed", "passed")] == ["unknown", "NO AUDIT", "", ""]
    assert "was changed" in by_place["changed", "CON-01"]["why"]


def test_a_fleet_without_any_usable_audit_has_a_row_for_each_cluster(tmp_path: Path) -> None:
    (tmp_path / "root" / "audits" / "a").mkdir(parents=True)
    (row,) = rows_of(as_csv(read(tmp_path / "root")))
    assert (row["cluster"], row["status"], row["code"]) == ("a", "unknown", "")


def test_the_same_fleet_gives_the_same_bytes(mixed: Path) -> None:
    assert as_html(read(mixed)) == as_html(read(mixed))
    assert as_csv(read(mixed)) == as_csv(read(mixed))


def test_every_state_is_explained_on_the_page(mixed: Path) -> None:
    text = Page(as_html(read(mixed)).decode()).text
    assert all(f"{state.words} {state.means}" in text for state in STATES)


def test_the_command_writes_the_files_and_says_each_verdict(mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "healthy=a,not-audited=b")
    done = run("--root", mixed, "--to", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["fleet.csv", "fleet.html", "fleet.pdf"]
    assert "healthy: PASSED\n" in done.output
    assert "not-audited: NO AUDIT: No audit of it is sealed.\n" in done.output
    assert run("--root", mixed, "--to", tmp_path / "csv", "--formats", "csv").exit_code == 0
    assert [path.name for path in (tmp_path / "csv").iterdir()] == ["fleet.csv"]


def test_nothing_is_written_among_sealed_folders_or_over_a_file(mixed: Path, tmp_path: Path) -> None:
    for place in ("audits/healthy/new", "evidence", f"audits/healthy/{AUDIT_ID}/report", "history/x"):
        code, said = refused("--root", mixed, "--to", mixed / place)
        assert (code, "among sealed evidence" in said) == (2, True)
    (tmp_path / "fleet.csv").write_text("mine")
    code, said = refused("--root", mixed, "--to", tmp_path)
    assert (code, "fleet.csv is there already" in said) == (2, True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("fleet.csv", "mine")]


def test_unknown_formats_and_an_empty_root_are_refused(mixed: Path, tmp_path: Path) -> None:
    assert refused("--root", mixed, "--formats", "html,docx")[0] == 2
    assert refused("--root", tmp_path / "none")[0] == 2
    assert refused("--root", tmp_path)[0] == 2


def test_a_root_that_is_not_there_still_shows_the_clusters_that_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=kafka_orders")
    done = run("--root", tmp_path / "none", "--to", tmp_path / "out")
    assert (done.exit_code, "orders: NO AUDIT" in done.output) == (0, True)
    assert "orders" in Page((tmp_path / "out" / "fleet.html").read_text()).text


def test_an_audit_that_was_sealed_later_although_it_began_earlier_is_named(tmp_path: Path) -> None:
    audit = fleet_audit(tmp_path / "root", "a", all_pass)
    shutil.copytree(audit, audit.parent / EARLIER)
    state = read_state(audit.parent)
    assert state and state.head
    state.head = replace(state.head, audit_id=EARLIER, sequence=2)
    state.last = 2
    write_state(audit.parent, state)
    found = one(read(tmp_path / "root"), "a")
    assert found.audit_id == AUDIT_ID
    assert found.why[-1].startswith(f"Audit {EARLIER} was sealed after it, although it began earlier by its clock")

"""``kafka-audit verify AUDIT`` finds results that were not judged by the rules that the audit keeps."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sealed_audits import WholeAudit, forge
from typer.testing import CliRunner

from kafka_audit.audit.judged_rules import other_rules
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.cli.main import app
from kafka_audit.errors import IntegrityError


@pytest.fixture
def whole(tmp_path: Path) -> WholeAudit:
    return WholeAudit(tmp_path / "root")


def verified(whole: WholeAudit) -> str:
    """What the command prints of the audit after its manifest was made to fit the files again."""
    forge(whole.audit.path)
    return CliRunner().invoke(app, ["verify", str(whole.audit.path)]).output


def test_results_of_the_kept_rules_are_intact(whole: WholeAudit) -> None:
    text = CliRunner().invoke(app, ["verify", str(whole.audit.path)]).output
    rule_set = load_catalogue([whole.controls]).rule_set_sha256
    assert f"intact   results: each was judged by the rule in the audit's copy of its control; all rules have the sha256 {rule_set}" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rule_sha256": "0" * 64}, "log_dirs_healthy was judged by the rule '000"),
        ({"rule_set_sha256": "0" * 64}, "was judged by the rule set '000"),
        ({"rule_sha256": "\u202e\x1b[31m"}, "log_dirs_healthy was judged by the rule '\\u202e\\x1b[31m', and"),
        ({"control_id": "of_nobody\x1b[31m"}, "has results of control 'of_nobody\\x1b[31m', of which the audit keeps no copy"),
        ({"rule_sha256": None}, "log_dirs_healthy was judged by the rule None"),
        ({"control_id": None}, "has results of control 'None', of which"),
    ],
)
def test_a_finding_of_another_rule_is_found(whole: WholeAudit, change: dict[str, str], said: str) -> None:
    whole.write_findings(**change)
    text = verified(whole)
    assert f"changed  settings/findings.parquet: {said}" in text
    assert "intact   results" not in text


def test_a_rule_changed_in_the_audits_copy_after_it_judged_is_found(whole: WholeAudit) -> None:
    file = whole.audit.inputs / "controls" / "log_dirs_healthy.yaml"
    file.write_text(file.read_text().replace("\npass_when: ", "\npass_when: true or "))
    text = verified(whole)
    assert "settings/findings.parquet: log_dirs_healthy was judged by the rule" in text
    assert "rules: those of the audit's copies of its controls have the sha256" in text


def test_a_summary_is_checked_like_the_findings(whole: WholeAudit) -> None:
    (whole.audit.lag / "summary.parquet").mkdir()
    rows = pa.table({"control_id": ["declared_groups_alive"], "rule_sha256": ["ff"]})
    pq.write_table(rows, whole.audit.lag / "summary.parquet" / "part-00000.parquet")
    assert "lag/summary.parquet: declared_groups_alive was judged by the rule 'ff', and the audit's copy has" in verified(whole)


def test_a_table_without_hashes_or_that_is_broken_is_not_passed_over(whole: WholeAudit) -> None:
    rules = load_catalogue([whole.controls]).rules
    pq.write_table(pa.table({"control_id": ["log_dirs_healthy"]}), whole.findings)
    assert "the results cannot be checked: settings/findings.parquet: has no columns rule_set_sha256, rule_sha256" in verified(whole)
    whole.findings.write_bytes(b"PAR1 broken")
    with pytest.raises(IntegrityError, match=r"settings/findings\.parquet: cannot be read as Parquet"):
        list(other_rules(whole.audit, rules))


def test_a_long_table_is_looked_at_to_its_end(whole: WholeAudit) -> None:
    rows = pq.read_table(whole.findings).slice(0, 1)
    other = rows.set_column(rows.schema.get_field_index("rule_sha256"), "rule_sha256", pa.array(["ab"]))
    pq.write_table(pa.concat_tables([*[rows] * 70_000, other]), whole.findings)
    [problem] = other_rules(whole.audit, load_catalogue([whole.controls]).rules)
    assert "was judged by the rule 'ab'" in problem


def test_an_audit_that_left_no_results_has_none_to_check(whole: WholeAudit) -> None:
    whole.findings.unlink()
    (whole.audit.path / "manifest.json").unlink()
    whole.seal()
    text = CliRunner().invoke(app, ["verify", str(whole.audit.path)]).output
    assert "note     results: the audit left none" in text
    assert "intact   results" not in text

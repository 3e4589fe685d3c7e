"""The trend shows no audit as better because it was void, saw less, covered less, asked less, or was of another cluster."""

import shutil
from pathlib import Path

import pytest
from compared_audits import CONTROLS, GROUP, TOPIC, Shop, row
from report_audit import LAG_PARTITIONS, group_partition, spark_folder
from test_report_html import Page

from kafka_audit.report import html, pdf
from kafka_audit.report.pdf import front
from kafka_audit.report.tally import AssessedShare
from kafka_audit.report.trend_charts import failures_chart


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


FAILS = [row(TOPIC, "orders"), row(GROUP, "billing")]


@pytest.mark.parametrize("less", [{"evidence": ("FAIL", 4)}, {"parts": ("settings",)}, {"parts": ()}])
def test_failures_and_coverage_of_an_audit_that_was_void_or_not_whole_are_not_known_and_no_zero(
    shop: Shop, less: dict[str, object]
) -> None:
    shop.audit(FAILS)
    shop.audit(FAILS, **less)
    report = shop.judge(FAILS).read()
    assert [point.failed for point in report.trend] == [2, None, 2]
    assert [point.coverage for point in report.trend] == [1.0, None, 1.0]
    assert str(failures_chart(report.trend)).count('class="gap"') == 1
    assert Page(html.render(report)).text.count("\N{EN DASH}\N{EN DASH}\N{EN DASH}\N{EN DASH}\N{EN DASH}") >= 1
    assert [one["total"] for one in front.content(report)["trend"]] == [2, None, 2]  # type: ignore[attr-defined]
    assert pdf.render(report).startswith(b"%PDF")


def test_an_audit_of_another_kafka_cluster_under_the_same_name_is_no_point_of_the_trend(shop: Shop) -> None:
    first, other = shop.audit(FAILS), shop.audit([], cluster_id="two")
    report = shop.judge(FAILS).read()
    assert [point.audit_id for point in report.trend[:-1]] == [first.id]
    assert f"Audit {other.id} is missing in the trend: it is of another Kafka cluster (two)." in report.comparison.notes  # type: ignore[union-attr]


def test_an_audit_that_began_later_is_no_point_of_the_trend(shop: Shop) -> None:
    shop.audit(FAILS)
    sealed_late = shop.judge(FAILS)
    later = shop.audit(FAILS)
    report = sealed_late.read()
    assert later.id not in {point.audit_id for point in report.trend}


def test_a_point_says_what_it_asked_or_covered_otherwise_than_the_one_before(shop: Shop) -> None:
    shop.audit(FAILS)
    shop.audit(FAILS[:1], scope=("orders", "*"), topics={"orders": 1})
    shop.audit(FAILS[:1], scope=("orders", "*"), controls=CONTROLS[:3])
    policy = shop.own_policy()
    tiers = policy / "tiers.yaml"
    tiers.write_text(tiers.read_text() + "# changed\n")
    shop.load(policy)
    shop.audit(FAILS[:1], scope=("orders", "*"), controls=CONTROLS[:3])
    report = shop.judge(FAILS[:1], scope=("orders", "*"), controls=CONTROLS).read()
    assert [point.differs for point in report.trend] == [(), ("scope",), ("controls",), ("policy",), ("controls",)]
    assert "other scope than the audit before" in Page(html.render(report)).text
    assert "Some asked or covered something else than the one before." in str(failures_chart(report.trend))


def test_lost_records_of_which_nothing_is_known_are_not_0(shop: Shop) -> None:
    made = shop.judge(FAILS)
    shutil.rmtree(made.audit.lag / "group_partitions.parquet")
    unread = [group_partition("billing", "orders", 0, lost=None, lag=None, committed=None, has_commit=None)]
    spark_folder(made.audit.lag / "group_partitions.parquet", unread, LAG_PARTITIONS)
    assert made.read().trend[-1].lost_records is None


@pytest.mark.parametrize(("missing", "ratio"), [(0, 1.0), (1, 0.999999), (7_000_000, 0.3)])
def test_a_ratio_is_1_only_if_nothing_is_missing(missing: int, ratio: float) -> None:
    assert AssessedShare(assessed=10_000_000 - missing, applicable=10_000_000).ratio == ratio

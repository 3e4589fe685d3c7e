"""What the pages of one group, control and topic read: bounded, checked, and with a reason for whatever is not known."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared_audits import CLUSTER, TOPIC, Shop, row
from lag_rows import group_sla, sla_table
from report_audit import FakeAudit, control, group_partition

from kafka_audit.airflow.web.group_pages import _charts, burn_of
from kafka_audit.catalogue.load import shipped_controls
from kafka_audit.errors import IntegrityError
from kafka_audit.index.control_text import control_text
from kafka_audit.index.group_charts import figure_chart, figures
from kafka_audit.index.group_history import group_history
from kafka_audit.index.group_tables import LISTED_OF_ONE, write_group_tables
from kafka_audit.index.overview import GROUPS, OVERVIEW
from kafka_audit.index.partitions import Partitions
from kafka_audit.index.read import open_index
from kafka_audit.index.shown import pinned_audit, shown_audit
from kafka_audit.index.topic import PARTITIONS_SHOWN, topic_evidence
from kafka_audit.report.lag import read_lag
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import seal_audit, unseal_audit


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "root")


def anyone(audit_id: str) -> bool:
    return True


def tables_of(tmp_path: Path, partitions: list[dict[str, object]], slas: list[dict[str, object]]) -> dict[str, list[dict[str, object]]]:
    """The rows of the tables that an audit with these partitions writes."""
    fake = FakeAudit(tmp_path / "root", (control("lag_within_sla", "CON-01", subject="group"),))
    fake.lag([], partitions, group_slas=sla_table(slas))
    groups = read_lag(fake.audit.lag, fake.snapshot.dataset("groups")).every_group
    folder = tmp_path / "index"
    folder.mkdir()
    write_group_tables(folder, groups, Partitions(fake.audit.lag / "group_partitions.parquet").tables(), None)
    return {path.stem: pq.read_table(path).to_pylist() for path in folder.iterdir()}


def test_the_worst_partitions_of_a_group_and_readers_of_a_topic_are_listed(tmp_path: Path) -> None:
    wide = [group_partition("a-wide", "orders", number, lag=number, status="OK") for number in range(LISTED_OF_ONE + 50)]
    wide[7] |= {"status": "LOST", "lost": 3, "lag": None}
    many = [group_partition(f"reader-{number:04}", "clicks", 0, lag=None, status="NOT_ASSESSED") for number in range(LISTED_OF_ONE + 1)]
    tables = tables_of(tmp_path, [*wide, *many], [group_sla("a-wide")])
    listed = [one for one in tables["partitions"] if one["group_id"] == "a-wide"]
    assert [one["place"] for one in listed] == list(range(1, LISTED_OF_ONE + 1))
    assert [one["partition"] for one in listed[:3]] == [7, LISTED_OF_ONE + 49, LISTED_OF_ONE + 48]
    readers = [one for one in tables["readers"] if one["topic"] == "clicks"]
    assert (len(readers), readers[0]["readers"]) == (LISTED_OF_ONE, LISTED_OF_ONE + 1)
    assert (readers[0]["lag"], readers[0]["known"]) == (None, 0)
    [reader] = [one for one in tables["readers"] if one["topic"] == "orders"]
    assert (reader["status"], reader["partitions"], reader["known"], reader["lost"]) == ("LOST", 250, 249, 3)
    assert [one["sla"] for one in tables["slas"]] == ["interactive"]


def test_a_gap_in_a_groups_history_says_why(shop: Shop) -> None:
    gone = shop.audit([], groups=["billing"])
    changed = shop.audit([], groups=["billing"])
    void = shop.audit([], groups=["billing"], evidence=("FAIL", 4))
    newest = shop.audit([], groups=["billing"])
    (changed.audit.path / GROUPS).write_bytes(b"")
    shutil.rmtree(gone.audit.path)
    past = group_history(shop.root, open_index(newest.audit), "billing", anyone)
    assert [one.audit_id for one in past] == [gone.id, changed.id, void.id, newest.id]
    assert [one.known("lost") for one in past] == [None, None, None, 7]
    words = ("is not there any more", "was changed after the audit was sealed", "is void", "")
    assert all(word in one.why for word, one in zip(words, past, strict=True))
    assert str(shop.root.path) not in "".join(one.why for one in past)
    assert [one.why for one in group_history(shop.root, open_index(newest.audit), "nobody", anyone)][-1] == "the audit saw no such group"


def test_charts_hatch_what_is_not_known_draw_a_zero_and_mark_what_breaks_the_limit(shop: Shop) -> None:
    shop.audit([], groups=["billing"], evidence=("FAIL", 4))
    newest = shop.audit([], groups=["billing"])
    past = group_history(shop.root, open_index(newest.audit), "billing", anyone)
    [lag] = [one for one in figures(None, None, None) if one.column == "lag"]
    drawn = figure_chart(lag, past)
    assert drawn.count('class="gap"') == drawn.count('class="column"') == 1
    assert 'height="1.5"' in drawn
    assert "In the newest 0 records." in drawn
    [lost] = [one for one in figures(3, None, None) if one.column == "lag"]
    over = [one if one.row is None else type(one)(**{**vars(one), "row": {**one.row, "lag": 4}}) for one in past]
    assert 'class="column broken"' in figure_chart(lost, over)
    assert "The SLA is broken in 1 of 1." in figure_chart(lost, over)


def test_a_figure_that_may_be_larger_is_not_counted_as_within_the_limit(shop: Shop) -> None:
    newest = shop.audit([], groups=["billing"])
    [one] = group_history(shop.root, open_index(newest.audit), "billing", anyone)
    assert one.row is not None
    [time] = [figure for figure in figures(None, 9_000, None) if figure.column == "lag_ms"]
    within, beyond = (replace(one, row={**one.row, "lag_ms": lag, "lag_ms_is_bound": True}) for lag in (5_000, 10_000))
    drawn = figure_chart(time, [within, beyond])
    assert "The SLA is broken in 1 of 1. In 2 the true figure may be larger." in drawn
    assert "at least 5 seconds" in drawn


def test_several_slas_have_no_one_limit_that_their_common_figures_could_break(shop: Shop) -> None:
    newest = shop.audit([], groups=["billing"])
    past = [
        replace(one, row={**one.row, "availability_percent": 95.0})
        for one in group_history(shop.root, open_index(newest.audit), "billing", anyone)
        if one.row
    ]
    loose, strict = ({"max_lag_ms": 1, "target_percent": target} for target in (90.0, 99.9))
    [(_, alone)] = [one for one in _charts(past, [strict], None) if one[0] == "Time within the SLA"]
    [(_, both)] = [one for one in _charts(past, [loose, strict], None) if one[0] == "Time within the SLA"]
    assert "column broken" in alone and "column broken" not in both


def test_the_newest_audit_that_can_be_shown_is_shown_and_newer_ones_say_why_not(shop: Shop) -> None:
    assert shown_audit(shop.root, CLUSTER, anyone).index is None
    good = shop.audit([row(TOPIC, "orders")])
    void = shop.audit([row(TOPIC, "orders")], evidence=("FAIL", 4))
    older = shop.audit([row(TOPIC, "orders")])
    unseal_audit(older.audit)
    write_json(older.audit.path / OVERVIEW, {**read_json(older.audit.path / OVERVIEW), "schema_version": 0})
    seal_audit(shop.root, CLUSTER, older.id, {})
    running = shop.judge([row(TOPIC, "orders")])
    shown = shown_audit(shop.root, CLUSTER, anyone)
    assert shown.index is not None
    assert shown.index.overview.audit_id == good.id
    assert [one.audit_id for one in shown.passed_over] == [running.id, older.id, void.id]
    words = ("is not sealed", "has schema version 0", "is void")
    assert all(word in one.why for word, one in zip(words, shown.passed_over, strict=True))
    only_older = shown_audit(shop.root, CLUSTER, lambda audit_id: audit_id < older.id)
    assert [one.audit_id for one in only_older.passed_over] == [void.id]
    pinned = pinned_audit(shop.root, CLUSTER, good.id, anyone)
    assert pinned is not None and pinned.overview.audit_id == good.id
    assert pinned_audit(shop.root, CLUSTER, running.id, anyone) is None
    assert pinned_audit(shop.root, CLUSTER, "../../elsewhere", anyone) is None


def test_a_controls_text_is_the_audits_own_copy_or_says_that_it_is_not(shop: Shop) -> None:
    name = "lag_within_sla"
    judged = shop.judge([row(TOPIC, "orders")])
    copies = judged.audit.inputs / "controls"
    copies.mkdir(parents=True)
    text = (shipped_controls() / f"{name}.yaml").read_text(encoding="utf-8")
    (copies / f"{name}.yaml").write_text(text.replace("title: ", "title: Ours, "), encoding="utf-8")
    judged.seal()
    index = open_index(judged.audit)
    own = control_text(index, name)
    assert own.control is not None and own.control.title.startswith("Ours, ") and own.why == ""
    (copies / f"{name}.yaml").write_text(text + "\n", encoding="utf-8")
    shipped = control_text(index, name)
    assert shipped.control is not None and not shipped.control.title.startswith("Ours, ")
    assert "cannot be read" in shipped.why and "shipped with this release" in shipped.why
    assert "keeps no copy" in control_text(index, "min_insync_replicas_sufficient").why
    assert control_text(index, "nothing_of_this_name").control is None


def test_a_topic_has_its_own_settings_first_and_partitions_in_trouble_first(shop: Shop) -> None:
    source = {"topic": "orders", "is_sensitive": False}
    configs = [
        {**source, "name": "a.default", "value": "1", "source": "DEFAULT_CONFIG"},
        {**source, "name": "z.own", "value": "2", "source": "DYNAMIC_TOPIC_CONFIG"},
        {**source, "topic": "other", "name": "z.own", "value": "3", "source": "DYNAMIC_TOPIC_CONFIG"},
    ]
    places = [{"topic": "orders", "partition": number, "leader": 1, "replicas": [1, 2], "isr": [1, 2]} for number in range(205)]
    places[9] |= {"isr": [1]}
    places[11] |= {"leader": -1}
    judged = shop.audit([row(TOPIC, "orders")], topics={"orders": 205}, datasets={"topic_configs": configs, "partitions": places})
    found = topic_evidence(shop.root, open_index(judged.audit), "orders")
    assert [one["name"] for one in found.settings] == ["z.own", "a.default"]
    assert [one["partition"] for one in found.partitions[:3]] == [9, 11, 0]
    assert (len(found.partitions), found.partition_count, found.not_in_sync) == (PARTITIONS_SHOWN, 205, 2)
    assert found.about is not None and found.about["partition_count"] == 205
    assert topic_evidence(shop.root, open_index(judged.audit), "nobody").about is None
    other = judged.snapshot.dataset("topic_configs")
    shutil.copy(judged.snapshot.dataset("partitions"), other)
    assert "was changed after" in topic_evidence(shop.root, open_index(judged.audit), "orders").why
    shutil.rmtree(judged.snapshot.path)
    assert topic_evidence(shop.root, open_index(judged.audit), "orders").why == "is not kept any more: it was deleted or moved away"


@pytest.mark.parametrize(
    ("minutes", "used", "burn"),
    [
        ((50, 0, 50), 108.0, 1.0),
        ((25, 25, 50), 108.0, 1.0),
        ((100, 0, 0), 108.0, 0.5),
        ((0, 0, 100), 0.0, None),
        ((50, None, 0), 1.0, None),
    ],
)
def test_a_budget_burns_by_the_share_of_the_window_that_was_measured(
    minutes: tuple[int | None, ...], used: float, burn: float | None
) -> None:
    names = ("minutes_in", "minutes_out", "minutes_not_assessed")
    sla = {**dict(zip(names, minutes, strict=True)), "minutes_quiet": 0, "budget_allowed_minutes": 216.0, "budget_used_minutes": used}
    assert burn_of(sla) == burn
    assert burn_of({**sla, "budget_allowed_minutes": 0.0}) is None


def test_numbers_that_are_none_are_refused(shop: Shop) -> None:
    judged = shop.judge([], groups=["billing"])
    judged.write()
    path = judged.audit.path / GROUPS
    table = pq.read_table(path)
    column = pa.array([float("nan")] * table.num_rows)
    pq.write_table(table.set_column(table.column_names.index("budget_used_share"), table.schema.field("budget_used_share"), column), path)
    seal_audit(shop.root, CLUSTER, judged.id, {})
    with pytest.raises(IntegrityError, match="budget_used_share holds numbers that are none"):
        open_index(judged.audit).group("billing")


def test_a_table_of_another_release_is_refused(shop: Shop) -> None:
    judged = shop.judge([], groups=["billing"])
    judged.write()
    path = judged.audit.path / GROUPS
    pq.write_table(pq.read_table(path).drop_columns(["place"]), path)
    seal_audit(shop.root, CLUSTER, judged.id, {})
    with pytest.raises(IntegrityError, match="has other columns than this release reads"):
        open_index(judged.audit).groups()

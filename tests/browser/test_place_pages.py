"""The pages of groups, controls and topics in a real browser: no barriers, nothing sideways, and hostile names that stay names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compared_audits as audits
import lag_rows as lag
import pytest
import report_audit as made
from chromium import LOWEST_CONTRAST, NEEDS_BROWSER, opened

from kafka_audit.airflow.web.answers import render
from kafka_audit.airflow.web.asked import Answer, Asked
from kafka_audit.airflow.web.group_pages import group_page, groups_page
from kafka_audit.airflow.web.place_pages import control_page, topic_page
from kafka_audit.audit.request import DAG_ID
from kafka_audit.store.durable_files import read_json, write_json

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

pytestmark = NEEDS_BROWSER

PHONE, DESKTOP, DARK = (390, "light"), (1280, "light"), (1280, "dark")
PAGES = ("groups", "group", "control", "topic", "nothing")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each page of a cluster with hostile names, whose newest audit still runs; one of its three audits is void."""
    folder = tmp_path_factory.mktemp("places")
    shop, names = audits.Shop(folder / "root"), made.HOSTILE_GROUPS
    huge = dict.fromkeys(("lost", "lag", "margin", "time_to_loss_ms", "lag_ms", "committed", "log_start", "log_end"), 2**48)
    partitions = [made.group_partition(name, names[1], 0, status="LOST", status_reason=name * 3, **huge) for name in names]
    series = [lag.lag_bucket(name, hour, 2**48, in_sla_share=hour % 2, known_share=0.5) for name in names for hour in (0, 1, 2, 5)]
    slas = [lag.group_sla(name, sla=name, budget_used_minutes=500.0, budget_left_minutes=-284.0) for name in names]
    configs = [{"topic": names[1], "name": name, "value": name, "source": name, "is_sensitive": False} for name in names]
    places = [{"topic": names[1], "partition": 0, "leader": -1, "replicas": [1, 2, 3], "isr": [1], "error": names[2]}]
    datasets = {"topic_configs": configs, "partitions": places}
    failing = [audits.row(audits.TOPIC, name, observed=name, expected=name, waiver=name, topic=names[1]) for name in names]
    for number in range(4):
        judged = shop.judge(
            failing, groups=names, topics={names[1]: 1}, datasets=datasets, evidence=("FAIL", 4) if number == 1 else ("PASS", 0)
        )
        write_json(judged.audit.run_file, {**read_json(judged.audit.run_file), "dag_id": DAG_ID, "run_id": "r"})
        for name, rows, schema in (
            ("group_partitions", partitions, made.LAG_PARTITIONS),
            ("group_slas", slas, lag.GROUP_SLAS),
            ("lag_series", series, lag.LAG_SERIES),
        ):
            for part in (judged.audit.lag / f"{name}.parquet").iterdir():
                part.unlink()
            (judged.audit.lag / f"{name}.parquet").rmdir()
            made.spark_folder(judged.audit.lag / f"{name}.parquet", rows, schema)
        if number < 3:
            judged.seal()
    asked = Asked(root=shop.root, cluster=audits.CLUSTER, may_read=lambda dag_id: True, up="../../../")
    answers: dict[str, Answer] = {
        "groups": groups_page(asked),
        "group": group_page(asked, names[1]),
        "control": control_page(asked, audits.TOPIC.id),
        "topic": topic_page(asked, names[1]),
        "nothing": group_page(asked, f"{names[1]} {names[4]}"),
    }
    for name, answer in answers.items():
        (folder / f"{name}.html").write_text(render(answer.template, up=asked.up, **answer.facts), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in answers}


@pytest.fixture
def page(browser: Any, files: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[Any]:
    """One page in a window as wide and as dark as the test asks; ``page.seen`` lists its requests, messages and dialogs."""
    name, window = request.param
    with opened(browser, files[name].as_uri(), window) as shown:
        shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        yield shown


def on(*windows: tuple[int, str], of: tuple[str, ...] = PAGES) -> pytest.MarkDecorator:
    cases = [(name, window) for name in of for window in windows]
    return pytest.mark.parametrize("page", cases, indirect=True, ids=[f"{name}-{width}-{scheme}" for name, (width, scheme) in cases])


@on(PHONE, DESKTOP, DARK)
def test_axe_finds_no_barrier_and_all_text_has_enough_contrast(page: Any) -> None:
    violations = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == []
    contrast, text = page.evaluate(LOWEST_CONTRAST)
    assert contrast >= 4.5, text


@on(PHONE, DESKTOP)
def test_no_page_scrolls_sideways(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@on(DESKTOP)
def test_hostile_names_are_shown_run_nothing_and_load_nothing(page: Any, files: dict[str, Path]) -> None:
    assert page.title().endswith("\u00b7 Kafka reliability")
    # The one script is the product's own: it takes over Airflow's light or dark mode.
    assert page.evaluate("document.querySelectorAll('body script, img, iframe, [onerror], [onclick]').length") == 0
    assert page.get_by_text("<script>document.title='owned'</script>").first.is_visible()
    assert [one for one in page.seen if not one.startswith("file:")] == []
    assert len(page.seen) == 1


@on(DESKTOP)
def test_every_page_says_that_a_newer_audit_is_not_shown_and_why(page: Any) -> None:
    assert "is not sealed" in page.get_by_role("note").first.inner_text()


@on(PHONE, DESKTOP, of=("group",))
def test_charts_are_drawn_with_words_that_stand_for_them(page: Any) -> None:
    charts = page.get_by_role("img").all()
    assert len(charts) >= 3
    for chart in charts:
        box = chart.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= page.viewport_size["width"] + 1
    gaps = page.evaluate("document.querySelectorAll('.charts .gap').length")
    assert gaps >= 2, "the void audit is a gap in each chart"

"""The report in a real browser: it loads nothing, runs no scripts, cuts nothing off, has no barriers, and is legible on screen and paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lag_rows as lag
import pytest
import report_audit as made
from chromium import LOWEST_CONTRAST, NEEDS_BROWSER, opened

from kafka_audit.report import write_report

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    topic, group = made.control("replication_factor_sufficient", "TOP-01"), made.control("lag_within_sla", "CON-01", subject="group")
    fake = made.FakeAudit(tmp_path_factory.mktemp("audit"), (group, topic))
    names = made.HOSTILE_GROUPS
    fake.take_snapshot({"groups": [{"group_id": name} for name in names]}, "20261120T231501Z-ab12cd35ab12cd35")
    fake.settings([made.finding(topic, f"a.rather.long.topic.name.without.any.space.in.it.{number:03}" * 4) for number in range(25)])
    unassessed = [made.finding(group, f"{number}{name}", "not_assessed", reason=name) for number, name in enumerate(names)]
    failing = [made.finding(group, name, observed=name, expected=name, evidence=name) for name in names]
    words = ("status", "status_reason", "burrow", "time_to_loss_by", "lag_ms_method")
    huge = {**dict.fromkeys(words, "w" * 300), **dict.fromkeys(("lost", "lag", "margin", "time_to_loss_ms", "lag_ms"), 2**62)}
    partitions = [made.group_partition(name, "t" * 249, 0, **huge) for name in names]
    series = [lag.lag_bucket(name, hour, 2**62, in_sla_share=hour % 2, known_share=0.5) for name in names for hour in (0, 1, 2, 5)]
    slas = [lag.group_sla(name, sla=name, max_lag_records=2**61) for name in names]
    fake.lag([*failing, *unassessed], partitions, group_slas=lag.sla_table(slas), lag_series=lag.series_table(series))
    fake.gates(reasons=list(names))
    write_report(*fake.inputs.args, **fake.inputs.kwargs)
    return fake.audit.report / "report.html"


@pytest.fixture
def open_page(browser: Any, page_file: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The report in a window as wide and as dark as the test asks; ``page.seen`` lists its requests and console messages."""
    with opened(browser, page_file.as_uri(), getattr(request, "param", (1280, "light"))) as page:
        yield page


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report as of a cluster in a bad state: 60 failing controls on 10 topics each, the same cause, and 12 groups."""
    topics = tuple(made.control(f"control_{number:02}", f"TOP-{number:02}") for number in range(60))
    fake = made.FakeAudit(tmp_path_factory.mktemp("large"), topics)
    fake.settings([made.finding(one, f"topic-{number}") for one in topics for number in range(10)])
    groups = [made.group_partition(f"group-{number}", "orders", 0, lag=9, lost=5, time_to_loss_ms=9, status="LOST") for number in range(12)]
    fake.lag([], groups)
    fake.gates()
    write_report(*fake.inputs.args, **fake.inputs.kwargs)
    return fake.audit.report / "report.html"


def test_the_page_asks_for_nothing_but_itself(open_page: Any, page_file: Path) -> None:
    open_page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    open_page.wait_for_load_state("networkidle")
    assert open_page.seen == [page_file.as_uri()]


def test_hostile_names_run_nothing(open_page: Any) -> None:
    assert open_page.title() == "FAILED \u00b7 Kafka reliability audit of orders-prod"
    assert open_page.evaluate("document.querySelectorAll('script, img, iframe, [onerror], [onclick]').length") == 0
    assert open_page.locator(".front .where").get_by_text("<script>document.title='owned'</script>").first.is_visible()


def test_the_style_is_applied_under_the_strict_policy(open_page: Any) -> None:
    assert open_page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"


@pytest.mark.parametrize("open_page", [(390, "light"), (1280, "light")], indirect=True, ids=["phone", "desktop"])
def test_the_verdict_is_seen_without_scrolling(open_page: Any) -> None:
    verdict = open_page.get_by_label("Verdict", exact=True)
    assert verdict.is_visible()
    assert "FAILED" in verdict.inner_text()
    assert verdict.bounding_box()["y"] < 400


@pytest.mark.parametrize("open_page", [(1280, "light")], indirect=True, ids=["desktop"])
def test_the_first_screen_has_verdict_loss_coverage_change_and_the_worst(open_page: Any, large_file: Path) -> None:
    open_page.goto(large_file.as_uri())
    for words in ("FAILED", "Loss that has happened", "About to be lost", "Coverage", "Since the previous audit", "The three worst things"):
        assert open_page.locator(".front").get_by_text(words).bounding_box()["y"] < 700, words
    assert open_page.locator(".front li").last.bounding_box()["y"] < 760
    assert open_page.get_by_role("navigation", name="Contents").is_visible()


def test_a_folded_page_is_below_12_screens(open_page: Any, large_file: Path) -> None:
    open_page.goto(large_file.as_uri())
    assert open_page.evaluate("document.documentElement.scrollHeight") < 12 * 800


def test_the_links_of_the_contents_unfold_what_they_lead_to(open_page: Any) -> None:
    for link, words in (
        ("Gates", "Evidence gate"),
        ("Waivers", "The policy has no waiver."),
        ("Evidence and hashes", "How to verify this report"),
    ):
        assert not open_page.get_by_text(words).first.is_visible()
        open_page.get_by_role("navigation").get_by_text(link, exact=True).click()
        assert open_page.get_by_text(words).first.is_visible(), link


@pytest.mark.parametrize("unfolded", [False, True], ids=["folded", "unfolded"])
@pytest.mark.parametrize("open_page", [(1280, "light"), (1280, "dark"), (390, "light")], indirect=True, ids=["light", "dark", "phone"])
def test_axe_finds_no_barrier(open_page: Any, unfolded: bool) -> None:
    if unfolded:
        open_page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    violations = axe.Axe().run(open_page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == []


@pytest.mark.parametrize(
    "open_page", [(320, "light"), (390, "light"), (768, "light"), (1280, "light")], indirect=True, ids=lambda one: str(one[0])
)
def test_nothing_scrolls_sideways_even_with_everything_opened(open_page: Any) -> None:
    open_page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    wide = open_page.evaluate(
        """[...document.querySelectorAll('body *')].filter(one => !one.closest('thead, .skip'))
        .filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 120))"""
    )
    assert wide == []
    assert open_page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("open_page", [(1280, "light"), (1280, "dark"), (390, "light")], indirect=True, ids=["light", "dark", "phone"])
def test_all_text_has_enough_contrast(open_page: Any) -> None:
    open_page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    contrast, text = open_page.evaluate(LOWEST_CONTRAST)
    assert contrast >= 4.5, text


def test_printing_opens_what_is_folded(open_page: Any) -> None:
    folded = "[...document.querySelectorAll('details')].filter(one => !one.lastElementChild.getBoundingClientRect().height).length"
    hidden = "[...document.querySelectorAll('details')].filter(one => !one.lastElementChild.checkVisibility()).length"
    assert open_page.evaluate(hidden) > 0
    open_page.emulate_media(media="print")
    assert open_page.evaluate("document.querySelectorAll('details').length") > 0
    assert open_page.evaluate(hidden) == 0
    assert open_page.evaluate(folded) == 0


def test_a_printed_page_fits_its_paper_and_uses_ink_on_white(open_page: Any) -> None:
    open_page.emulate_media(media="print", color_scheme="dark")
    open_page.set_viewport_size({"width": 680, "height": 1000})  # A4 less its margins, in CSS pixels
    assert open_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert open_page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert open_page.pdf(prefer_css_page_size=True).startswith(b"%PDF-")

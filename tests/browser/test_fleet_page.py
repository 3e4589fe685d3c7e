"""The page of a fleet in a real browser: no barriers, tables that scroll within their boxes, headers that stay, links that lead somewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fleets
import pytest
from chromium import LOWEST_CONTRAST, NEEDS_BROWSER, opened
from report_audit import HOSTILE_GROUPS

from kafka_audit.report.fleet.page import as_html

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

pytestmark = NEEDS_BROWSER

PHONE, DESKTOP, DARK = (390, "light"), (1280, "light"), (1280, "dark")
MATRIX = ".tall"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of 3 and of 40 clusters, and of 14, nearly all of which have hostile names."""
    made = {
        "few": fleets.fleet_of(3),
        "many": fleets.fleet_of(40, controls=fleets.shipped()[::3]),
        "hostile": fleets.fleet_of(14, "W" * 249, *HOSTILE_GROUPS, controls=fleets.shipped()[::3]),
    }
    folder = tmp_path_factory.mktemp("fleets")
    for name, fleet in made.items():
        (folder / f"{name}.html").write_bytes(as_html(fleet))
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture
def page(browser: Any, files: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page of one fleet in a window as wide and as dark as the test asks; ``page.seen`` lists its requests, messages and dialogs."""
    name, window = request.param
    with opened(browser, files[name].as_uri(), window) as shown:
        yield shown


def on(*windows: tuple[int, str], of: tuple[str, ...] = ("few", "many", "hostile")) -> pytest.MarkDecorator:
    cases = [(name, window) for name in of for window in windows]
    return pytest.mark.parametrize("page", cases, indirect=True, ids=[f"{name}-{width}-{scheme}" for name, (width, scheme) in cases])


@on(PHONE, DESKTOP, DARK, of=("few", "hostile"))
def test_axe_finds_no_barrier_and_all_text_has_enough_contrast(page: Any) -> None:
    violations = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == []
    contrast, text = page.evaluate(LOWEST_CONTRAST)
    assert contrast >= 4.5, text


@on(DESKTOP, of=("hostile",))
def test_hostile_names_run_nothing_and_load_nothing(page: Any, files: dict[str, Path]) -> None:
    assert page.title() == "Kafka reliability audits of 14 clusters"
    assert page.evaluate("document.querySelectorAll('script, img, iframe, [onerror], [onclick]').length") == 0
    assert page.get_by_role("rowheader", name="<script>document.title='owned'</script>").first.is_visible()
    assert page.seen == [files["hostile"].as_uri()]


@on(PHONE, DESKTOP)
def test_the_page_never_scrolls_sideways_and_wide_tables_scroll_within_their_boxes(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for box in page.locator(".scroll").all():
        left, right = box.evaluate("one => [one.getBoundingClientRect().left, one.getBoundingClientRect().right]")
        assert 0 <= left < right <= page.viewport_size["width"]
        box.evaluate("one => one.scrollLeft = one.scrollWidth")
        last = box.locator("thead th").last.bounding_box()
        assert last["x"] + last["width"] <= right + 1, "the last column can be scrolled into the box"


@on(DESKTOP)
def test_the_boxes_are_as_wide_as_their_tables_or_the_page(page: Any) -> None:
    for box in page.locator(".scroll").all():
        assert box.evaluate("one => one.scrollWidth <= one.clientWidth + 1 || one.clientWidth > innerWidth - 100")


@on(PHONE, DESKTOP)
def test_headers_stay_in_sight_and_are_not_painted_over(page: Any) -> None:
    page.evaluate(f"""() => {{
        const box = document.querySelector('{MATRIX}');
        box.scrollIntoView();
        box.scrollTop = 600;
        box.scrollLeft = 150;
    }}""")
    box = page.locator(MATRIX).bounding_box()
    corner = page.locator(f"{MATRIX} thead th.control").bounding_box()
    assert (corner["x"] - box["x"], corner["y"] - box["y"]) == pytest.approx((1, 1), abs=1)
    assert corner["width"] < 0.6 * box["width"] and corner["height"] < 0.4 * box["height"], "most of the box is left for the cells"
    seen = page.evaluate(f"""() => {{
        const box = document.querySelector('{MATRIX}').getBoundingClientRect(), corner = document.querySelector('{MATRIX} thead th')
            .getBoundingClientRect();
        const at = (x, y) => document.elementFromPoint(x, y).closest('th')?.className;
        const row = document.elementFromPoint(corner.left + 20, (corner.bottom + box.bottom) / 2).closest('th');
        return [at(corner.left + 9, corner.bottom - 9), at(corner.right + 40, corner.bottom - 15), row !== null];
    }}""")
    assert seen == ["control", "of", True]


@on(DESKTOP, PHONE, of=("many", "hostile"))
def test_the_name_above_a_column_fits_and_leads_to_the_row_of_its_cluster(page: Any) -> None:
    heads = page.locator(f"{MATRIX} thead th.of")
    cut = heads.evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1).map(one => one.textContent)"
    )
    assert cut == []
    for place in (0, 9):
        link = heads.nth(place).get_by_role("link")
        assert link.get_attribute("href") == f"#cluster-{place + 1}"
        link.click()
        row = page.locator(":target")
        assert row.bounding_box()["y"] < 900
        name = row.get_by_role("rowheader").locator(".name").inner_text()
        assert name.startswith(link.inner_text().rstrip("\u2026 "))


@on(PHONE, of=("many",))
def test_the_links_at_the_top_lead_to_both_tables(page: Any) -> None:
    for name in ("Controls by cluster", "Clusters"):
        page.locator(".jump").get_by_role("link", name=name, exact=True).click()
        assert 0 <= page.get_by_role("heading", name=name, exact=True).bounding_box()["y"] < 100


@on(PHONE, of=("many",))
def test_the_reason_of_a_cluster_is_read_without_scrolling_sideways(page: Any) -> None:
    reason = page.get_by_text("so the evidence is not fit to judge").first.bounding_box()
    assert reason["x"] >= 0
    assert reason["x"] + reason["width"] <= 390

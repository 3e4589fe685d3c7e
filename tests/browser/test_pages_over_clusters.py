"""The pages over clusters in a real browser: no barriers, no page that scrolls sideways, Airflow's light or dark mode, hostile names."""

from collections.abc import Iterator
from typing import Any

import pytest
from chromium import LOWEST_CONTRAST, NEEDS_BROWSER
from overviews import NOW, begun, overview, sealed

from kafka_audit.airflow.web import facts
from kafka_audit.airflow.web.answers import PAGE_POLICY, render
from kafka_audit.airflow.web.newest import read_clusters
from kafka_audit.airflow.web.past_audits import past_audits
from kafka_audit.index.overview import OVERVIEW
from kafka_audit.store.layout import EvidenceRoot

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

pytestmark = NEEDS_BROWSER

PHONE, DESKTOP = (390, "light"), (1280, "light")
HOSTILE = "<script>document.title='owned'</script>\u202e" + "W" * 249
SITE = "http://pages.test/kafka-audit/"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Address -> page, of nine clusters in all states, one of them with hostile names everywhere."""
    root = EvidenceRoot(path=tmp_path_factory.mktemp("root"))
    for name, verdict, age in (("orders", "FAILED", 1), ("passed", "PASSED", 1), ("stopped", "PASSED", 90), ("void", "VOID", 1)):
        sealed(root, overview(name, verdict=verdict, age_hours=age))
    sealed(root, overview("a" * 63, verdict="INCOMPLETE", said=HOSTILE))
    sealed(root, overview("sample", verdict="PASSED", sample=True))
    (sealed(root, overview("changed")).path / OVERVIEW).write_text("{}")
    begun(root, overview("orders", age_hours=0.1))
    begun(root, overview("begun"))
    known = read_clusters(root, lambda _: True, [], NOW)
    made = {
        "": render("clusters.html.j2", up="", **facts.of_clusters(known, {})),
        "waivers/": render("waivers.html.j2", up="../", **facts.of_waivers(known, NOW)),
        "matrix/": render("matrix.html.j2", up="../", **facts.of_matrix(known * 3)),
    }
    for one in known:
        address, up = f"clusters/{one.name}/", "../../"
        made[address] = render("cluster.html.j2", up=up, **facts.of_cluster(one, {}, "/dags/d/runs/r"))
        shown = past_audits(root, one.name, lambda _: True)
        made[f"{address}audits/"] = render("cluster_audits.html.j2", up=f"{up}../", **facts.of_audits(one, shown, {}))
    return made


@pytest.fixture
def opened(browser: Any, pages: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Any]:
    """A window as wide and as dark as the test asks, to which the pages are served with their policy; ``seen``: messages and dialogs."""
    width, scheme = getattr(request, "param", DESKTOP)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.seen = []
    page.on("console", lambda message: page.seen.append(message.text))
    page.on("dialog", lambda dialog: page.seen.append(dialog.message))

    def answer(route: Any) -> None:
        body = pages.get(route.request.url.removeprefix(SITE))
        if body is None:
            page.seen.append(route.request.url)
        headers = {"Content-Security-Policy": PAGE_POLICY, "Content-Type": "text/html; charset=utf-8"}
        route.fulfill(status=200 if body else 404, headers=headers, body=body or "")

    page.route("**/*", answer)
    yield page
    context.close()


def on(*windows: tuple[int, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("opened", windows, indirect=True, ids=[f"{width}-{scheme}" for width, scheme in windows])


@on(PHONE, DESKTOP)
def test_no_page_scrolls_sideways_and_names_from_a_cluster_run_nothing(opened: Any, pages: dict[str, str]) -> None:
    for address in pages:
        opened.goto(SITE + address)
        opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        assert "Kafka reliability" in opened.title()
        assert opened.evaluate("document.querySelectorAll('script').length") == 1
    assert opened.seen == []


@on(PHONE, DESKTOP, (1280, "dark"))
def test_axe_finds_no_barrier_and_all_text_has_enough_contrast(opened: Any) -> None:
    for address in ("", "waivers/", "matrix/", "clusters/orders/", f"clusters/{'a' * 63}/", "clusters/changed/", "clusters/orders/audits/"):
        opened.goto(SITE + address)
        opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        # axe is put into the page by the test, past the page's policy.
        violations = axe.Axe().run(opened).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == [], address
        contrast, text = opened.evaluate(LOWEST_CONTRAST)
        assert contrast >= 4.5, (address, text)


def test_the_page_is_as_dark_as_airflow_and_follows_it(opened: Any) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    dark, light = "rgb(22, 24, 26)", "rgb(252, 252, 251)"
    opened.goto(SITE)
    assert opened.evaluate(background) == light, "without a choice the system's mode holds"
    for chosen, seen in (("dark", dark), ("light", light), ("system", light), ("<b>", light)):
        opened.evaluate("chosen => localStorage.setItem('theme', chosen)", chosen)
        opened.reload()
        assert opened.evaluate(background) == seen, chosen
    other = opened.context.new_page()
    other.route("**/*", lambda route: route.fulfill(status=200, body="<p>Airflow", content_type="text/html"))
    other.goto(SITE)
    other.evaluate("localStorage.setItem('theme', 'dark')")
    opened.wait_for_function(f"{background} === '{dark}'")


@on(DESKTOP)
def test_the_first_screen_has_every_figure_of_the_worst_clusters(opened: Any) -> None:
    opened.goto(SITE)
    row = opened.get_by_role("row").filter(has=opened.get_by_role("link", name="orders", exact=True))
    assert row.bounding_box()["y"] < 700
    for words in ("FAILED", "41 high", "97.5%", "48,211 records", "142.0% used", "1 h old"):
        assert words in row.inner_text(), words
    stopped = opened.get_by_role("row").filter(has=opened.get_by_role("link", name="stopped"))
    assert "stale" in stopped.inner_text() and stopped.locator(".is-good").count() == 0
    assert row.get_by_role("img").get_attribute("aria-label").startswith("24 audits in 30 days")


@on(PHONE)
def test_on_a_phone_each_figure_of_a_cluster_stands_beside_its_name(opened: Any) -> None:
    opened.goto(SITE)
    row = opened.get_by_role("row").filter(has=opened.get_by_role("link", name="orders", exact=True))
    for cell in row.get_by_role("cell").all():
        box = cell.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert cell.evaluate("one => getComputedStyle(one, '::before').content") not in ("none", "normal")


@on(PHONE)
def test_the_names_of_controls_stay_in_sight_while_the_matrix_scrolls(opened: Any) -> None:
    opened.goto(f"{SITE}matrix/")
    box = opened.locator(".tall")
    box.evaluate("one => one.scrollLeft = 300")
    control = opened.locator(".matrix tbody th.control").first.bounding_box()
    assert control["x"] == pytest.approx(box.bounding_box()["x"], abs=2)
    assert control["width"] < 0.6 * box.bounding_box()["width"]

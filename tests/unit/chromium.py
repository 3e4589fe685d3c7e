"""The browser that the tests drive, and what they measure in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NEEDS_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: apt-get install chromium"),
]

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--disable-sync",
]

# The lowest contrast of any text on the page with what is painted behind it (WCAG 2.2, 1.4.3), and the text that has it.
LOWEST_CONTRAST = """() => {
  const parse = value => (value.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let worst = [21, ''];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.getClientRects().length) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < worst[0]) worst = [contrast, texts.currentNode.data.trim()];
  }
  return worst;
}"""


_PAGES: WeakKeyDictionary[Any, dict[tuple[int, str], Any]] = WeakKeyDictionary()
"""The page of each browser and window: a new one for each test would start a process of the browser's and take four times as long."""


@contextmanager
def opened(browser: Any, address: str, window: tuple[int, str]) -> Iterator[Any]:
    """A page in a window as wide and as dark as ``window`` says; ``page.seen`` lists its requests, messages and dialogs.

    It is one that was used before, with nothing of what was opened in it then.
    """
    pages = _PAGES.setdefault(browser, {})
    width, scheme = window
    if window not in pages:
        pages[window] = _new_page(browser)
    page = pages[window]
    page.seen = []
    page.goto("about:blank")
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(media="null", color_scheme=scheme)
    page.seen = []
    page.goto(address)
    yield page


def _new_page(browser: Any) -> Any:
    page = browser.new_context().new_page()
    page.on("request", lambda sent: page.seen.append(sent.url))
    page.on("console", lambda message: page.seen.append(message.text))
    page.on("dialog", lambda dialog: page.seen.append(dialog.message))
    return page

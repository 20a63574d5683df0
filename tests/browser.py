"""A headless Chromium for tests of pages, or the reason why there is none."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

HOST = [  # no sandbox in containers, no GPU, and nothing that reaches for the network by itself
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP, PHONE = 1280, 390
HEIGHTS = {DESKTOP: 900, PHONE: 844}


def chromium():
    """The path of a Chromium or Chrome of this machine, or None."""
    names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
    return next(filter(None, map(shutil.which, names)), None)


def skip_without_chromium():
    """Called by modules that need a browser before they use one."""
    pytest.importorskip("playwright", reason="playwright is missing: pip install playwright")
    if chromium() is None:
        pytest.skip("there is no chromium on the PATH", allow_module_level=True)


@contextmanager
def browser():
    """A browser of its own, with a fresh profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium(), args=HOST)
        try:
            yield running
        finally:
            running.close()


@contextmanager
def open_page(path_or_url, width=DESKTOP, running=None):
    """A page that has loaded, in a window of this width.

    It is playwright's: `page.evaluate("document.title")` runs JavaScript and
    `page.screenshot(path=..., full_page=True)` takes a picture. Beside that, `page.errors` has what
    scripts failed of, and `page.asked` the addresses that were requested. There is no network, so a
    page that needs one shows it. `running` is a browser to use, otherwise one is started.
    """
    if running is None:
        with browser() as own, open_page(path_or_url, width, own) as page:
            yield page
        return
    viewport = {"width": width, "height": HEIGHTS.get(width, 900)}
    context = running.new_context(viewport=viewport, offline=True)
    try:
        page = context.new_page()
        page.errors, page.asked = [], []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(_address(path_or_url))
        yield page
    finally:
        context.close()


def _address(path_or_url):
    if "://" in os.fspath(path_or_url):
        return path_or_url
    return Path(path_or_url).resolve().as_uri()


def overflow(page):
    """How many pixels something sticks out of the window at its right; 0 where nothing does.

    Clipped text counts as well, which a scroll bar would not tell. What stands in a box that
    scrolls by itself does not count, unless the box holds the heading, that is, the page.
    """
    return page.evaluate(
        """() => {
            const width = document.documentElement.clientWidth;
            const seen = {visibilityProperty: true, opacityProperty: true};
            const scrolls = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX)
                && !e.querySelector("h1");
            let most = document.scrollingElement.scrollWidth - width;
            for (const element of document.body.querySelectorAll("*")) {
                const out = element.getBoundingClientRect().right - width;
                if (out <= Math.max(most, 1) || !element.checkVisibility(seen)) continue;
                let box = element.parentElement;
                while (box !== document.body && !scrolls(box)) box = box.parentElement;
                if (box === document.body) most = out;
            }
            return most;
        }"""
    )


def foreign_requests(page):
    """Addresses outside of this machine that the page asked for."""
    return [url for url in page.asked if not url.startswith(("file:", "data:", "blob:"))]

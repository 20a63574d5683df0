"""The site that `make docs` built: links, and how its pages look in a browser."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser import (
    DESKTOP,
    PHONE,
    browser,
    foreign_requests,
    open_page,
    overflow,
    skip_without_chromium,
)

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
if not (SITE / "index.html").exists():
    pytest.skip("the site is not built: run make docs first", allow_module_level=True)
PAGES = sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)
GUIDE = [page for page in PAGES if "generated" not in page.parts]
API = SITE / "generated"
pytestmark = pytest.mark.site


class Links(HTMLParser):
    """The addresses that a page points to, those it loads, and the places it can be entered at."""

    def __init__(self, page):
        super().__init__()
        self.targets, self.loaded, self.places = [], [], {"", "top"}
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given.get("id"), given.get("name") if tag == "a" else None}
        if tag == "a" and "href" in given:
            self.targets.append(given["href"])
        loads = given.get("src") if tag != "link" else given.get("href")
        if loads and given.get("rel") not in ("canonical", "index", "search", "next", "prev"):
            self.loaded.append(loads)


def broken(site):
    """Addresses on pages that lead nowhere, and what they load from other machines."""
    pages = {page: Links(page) for page in site.rglob("*.html") if "_static" not in page.parts}
    lost, outside = [], []
    for page, links in pages.items():
        for address in links.targets + links.loaded:
            parts = urlsplit(address)
            if parts.scheme:
                outside += [(page, address)] if address in links.loaded else []
                continue
            file = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
            file = file / "index.html" if file.is_dir() else file
            known = pages[file].places if file in pages else None
            if not file.exists() or (known and unquote(parts.fragment) not in known):
                lost.append((page.name, address))
    return lost, [address for _, address in outside if not address.startswith("data:")]


def test_no_link_is_broken_and_nothing_is_loaded_from_elsewhere():
    assert len(PAGES) > 50
    lost, outside = broken(SITE)
    assert lost == []
    assert outside == []


def test_a_broken_link_is_noticed(tmp_path):
    links = ["a.html", "a.html#here", "b.html", "a.html#there", "https://example.org"]
    (tmp_path / "a.html").write_text(
        "<h1 id=here></h1><script src='https://example.org/x.js'></script>"
        + "".join(f"<a href='{link}'></a>" for link in links)
    )
    lost, outside = broken(tmp_path)
    assert [address for _, address in lost] == ["b.html", "a.html#there"]
    assert outside == ["https://example.org/x.js"]


@pytest.fixture(scope="module")
def running():
    skip_without_chromium()
    with browser() as one:
        yield one


def looked_at():
    """All pages of guide and gallery, and of the API a class, a function and a long name."""
    names = [
        "CraftMap",
        "scale.blocks.read",
        "diagnose.bounds.gaussian_products_components_all_pairs",
    ]
    return GUIDE + [API / f"craftmaps.{name}.html" for name in names]


@pytest.mark.parametrize("page", looked_at(), ids=lambda page: str(page.relative_to(SITE)))
def test_pages_fit_a_phone_and_a_desktop(page, running):
    with open_page(page, PHONE, running) as opened:
        assert overflow(opened) <= 0
        size = opened.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
        assert size >= 14, "too small to read"
        opened.set_viewport_size({"width": DESKTOP, "height": 900})
        assert overflow(opened) <= 0
        assert opened.errors == []
        assert foreign_requests(opened) == []


def test_a_page_that_sticks_out_is_noticed(tmp_path, running):
    page = tmp_path / "wide.html"
    page.write_text("<meta name=viewport content='width=device-width'><p style='width:800px'>x")
    with open_page(page, PHONE, running) as opened:
        assert overflow(opened) > 300
        opened.set_viewport_size({"width": DESKTOP, "height": 900})
        assert overflow(opened) <= 0
    for box, sticks_out in (("hidden", True), ("auto", False)):
        page.write_text(f"<div style='overflow-x:{box}'><p style='width:800px'>x</p></div>")
        with open_page(page, PHONE, running) as opened:
            assert (overflow(opened) > 300) == sticks_out, box


def test_formulas_and_pictures_are_drawn(running):
    with open_page(SITE / "maps" / "craft.html", DESKTOP, running) as opened:
        heights = opened.evaluate(
            "[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)"
        )
        assert len(heights) > 5
        assert min(heights) > 5
    for page in (SITE / "gallery").glob("plot_*.html"):
        with open_page(page, DESKTOP, running) as opened:
            widths = opened.evaluate(
                "[...document.querySelectorAll('img.sphx-glr-single-img,img.sphx-glr-multi-img')]"
                ".map(i => i.naturalWidth)"
            )
        assert widths, f"{page.name} shows no plot"
        assert min(widths) > 100


def test_every_command_has_its_help():
    text = (SITE / "command_line.html").read_text()
    for command in ("fit", "predict", "evaluate", "compare", "info", "export", "bench", "demo"):
        assert re.search(rf'<section id="craftmaps-{command}">', text), command
        assert f"Usage: craftmaps {command}" in text

"""The page of the gallery that reads drawn digits: an exported model in a real browser.

`.ci/npm` installs onnxruntime-web, which runs the model there.
"""

import runpy
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from browser import browser, skip_without_chromium

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / ".venv" / "npm" / "node_modules" / "onnxruntime-web" / "dist"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
FIVE = [(170, 50), (100, 50), (95, 120), (150, 115), (170, 150), (150, 195), (90, 200)]
pytestmark = [pytest.mark.slow, pytest.mark.site]


class Quiet(SimpleHTTPRequestHandler):
    """A web server for the files of a folder that does not write about requests."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def example():
    """What the example of the gallery has made: its model, its rows and the folder of its site."""
    matplotlib = pytest.importorskip("matplotlib")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT / "examples")
        matplotlib.use("Agg")
        made = runpy.run_path("plot_19_browser.py")
    made["plt"].close("all")
    yield made
    shutil.rmtree(made["site"].parent)


@pytest.fixture(scope="module")
def page(example):
    skip_without_chromium()
    if not RUNTIME.is_dir():
        pytest.skip("there is no onnxruntime-web in .venv/npm: run .ci/npm")
    for name in FILES:
        shutil.copy(RUNTIME / name, example["site"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=example["site"]))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with browser() as running:
            page = running.new_page(viewport={"width": 640, "height": 480})
            page.asked, page.errors = [], []
            page.on("request", lambda request: page.asked.append(request.url))
            page.on("pageerror", lambda error: page.errors.append(str(error)))
            page.address = f"http://127.0.0.1:{server.server_port}/"
            page.goto(page.address)
            page.wait_for_function("window.predict !== undefined", timeout=60_000)
            yield page
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_browser_gives_the_numbers_of_python(page, example):
    model, X = example["model"], example["X"][1400:1460]
    found = [page.evaluate("pixels => window.predict(pixels)", row.tolist()) for row in X]
    expected = model.predict_proba(X)
    probabilities = np.array([one["probabilities"] for one in found])
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-4)
    first, second = np.sort(expected, axis=1)[:, :-3:-1].T
    clear = first - second > 1e-3
    assert clear.mean() > 0.9
    labels = np.array([one["label"] for one in found])
    np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])


def test_a_drawing_is_read(page, tmp_path):
    corner = page.locator("#paper").bounding_box()
    (x, y), *rest = [(corner["x"] + x, corner["y"] + y) for x, y in FIVE]
    page.mouse.move(x, y)
    page.mouse.down()
    for x, y in rest:
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    page.wait_for_function("document.querySelector('#said').textContent.startsWith('This is')")
    assert page.locator("#said").text_content() == "This is a 5."
    page.screenshot(path=tmp_path / "browser.png")
    page.locator("#clear").click()
    assert "Draw" in page.locator("#said").text_content()


def test_nothing_leaves_the_machine(page):
    assert page.errors == []
    assert len(page.asked) >= 5  # the page, three files of the runtime, and the model
    outside = [url for url in page.asked if not url.startswith((page.address, "blob:", "data:"))]
    assert outside == []

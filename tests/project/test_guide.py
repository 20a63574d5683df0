"""The code of the guide's pages runs, and prints what stands under it."""

import shutil
from pathlib import Path

import pytest

import craftmaps
from craftmaps import diagnose
from markdown_examples import check_output, examples, run

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.glob("**/*.md") if "reproduction" not in page.parts)
WITH_CODE = [page for page in PAGES if examples(page)]

if not PAGES:
    pytest.skip("the folder docs is not here", allow_module_level=True)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(DOCS)))
def test_code_runs_and_prints_what_stands_under_it(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples may write files
    (tmp_path / "examples").mkdir()
    shutil.copy(DOCS.parent / "examples" / "flats.csv", tmp_path / "examples")
    run(page)


def test_the_page_of_each_map_has_code():
    """A block that is not called python would not be run."""
    pages = {page for page in (DOCS / "maps").glob("*.md") if page.stem != "index"}
    assert pages
    assert pages - set(WITH_CODE) == set()


def test_another_output_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint('0.95 right')\n```\n```\n0.70 right\n```\n")
    with pytest.raises(AssertionError):
        run(page)
    page.write_text("```python\nprint('0.95 right')\n```\n```\n0.951 right\n```\n")
    run(page)
    with pytest.raises(AssertionError):
        check_output("0.95 right", "0.95 wrong")


def test_the_api_page_has_every_public_name():
    listed = set((DOCS / "api.rst").read_text().split())
    names = [*craftmaps.__all__]
    names += [f"diagnose.{name}" for name in diagnose.__all__ if name != "bounds"]
    names += [f"diagnose.bounds.{name}" for name in diagnose.bounds.__all__]
    assert set(names) - listed == set()

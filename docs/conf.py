"""The site: `make docs` builds it, from Markdown, docstrings and the gallery in examples/."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the extension beside this file

import craftmaps

project = "craftmaps"
author = "The craftmaps developers"
version = release = craftmaps.__version__
html_title = f"craftmaps {release}"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "site_parts",
]
exclude_patterns = ["_build", "**/sg_execution_times.rst", "sg_execution_times.rst"]
suppress_warnings = ["config.cache"]  # the gallery's settings cannot be pickled

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
highlight_language = "none"  # what code prints has no language

default_role = "py:obj"
smartquotes = False  # quotes are code here
templates_path = ["_templates"]
autosummary_generate = True
numpydoc_show_class_members = False
autodoc_default_options = {"inherited-members": True}
autodoc_typehints = "none"  # numpydoc says it in words
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "craftmaps"},
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "measured": []}
copyright = author

# Workers of Spark run the Python that builds the site, and talk to this machine alone.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(.*/)?(?!plot_)[^/]*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": True,
    # With several examples at a time, the seconds that they print are of a busy machine.
    "parallel": int(os.environ.get("GALLERY_PROCESSES", "0")) or False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1000,
    "default_thumb_file": str(Path(__file__).parent / "mnist.png"),
    "reference_url": {"craftmaps": None},
    "doc_module": ("craftmaps",),
    "backreferences_dir": None,
}

# Methods that modules of the package call on each other, and users do not need.
INTERNAL = {
    "add_constant_targets",
    "add_sums",
    "after_fork",
    "encode",
    "fits_encoder",
    "for_checkpoint",
    "is_like",
    "lent",
    "pass_blocks",
    "share_work",
    "solve_passes",
    "sums",
    "with_sums",
}


def skip_internal(app, what, name, obj, skip, options):
    """Leave internal methods out of the pages of classes."""
    return True if name in INTERNAL else None


def setup(app):
    app.connect("autodoc-skip-member", skip_internal)

"""Sphinx reads this file in the folder that `build.py` assembles."""

from __future__ import annotations

import os
from pathlib import Path

import gallery  # `build.py` puts docs/site, with this and the extensions, on the path

import regretless

HERE = Path(os.environ["REGRETLESS_SITE"])  # docs/site

project = "regretless"
author = "The regretless founders"
project_copyright = "2026, the regretless founders. BSD-3-Clause"
version = release = regretless.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "docstrings",
    "mathml",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py", "gallery/**/*.md5"]
suppress_warnings = ["config.cache"]  # the settings of the gallery hold functions
default_role = "py:obj"
html_math_renderer = "mathml"
numfig = False

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
add_module_names = False

intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", str(HERE / "inventories" / "numpy.inv")),
    "scipy": ("https://docs.scipy.org/doc/scipy/", str(HERE / "inventories" / "scipy.inv")),
    "sklearn": ("https://scikit-learn.org/stable/", str(HERE / "inventories" / "sklearn.inv")),
}
intersphinx_disabled_reftypes = ["std:*"]

sphinx_gallery_conf = gallery.settings(Path(os.environ["REGRETLESS_EXAMPLES"]), int(os.environ["REGRETLESS_SITE_JOBS"]))
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "regretless"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "benchmarks": []}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

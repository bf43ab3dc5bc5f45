"""How Sphinx builds the site: `make site`, from the Markdown of the whole repository, without a network.

The folder of sources is the top of the repository, so that one relative link leads to the same place in the site and
on any view of the files. What Sphinx and MyST do not do by themselves is in building.py beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import opinionsim

sys.path.insert(0, str(Path(__file__).parent))

project = "opinionsim"
author = "opinionsim contributors"
copyright = "opinionsim contributors, MIT licence"
version = release = opinionsim.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_parser", "building"]
include_patterns = ["*.md", "docs/**.md", "notebooks/*.md", "notebooks/*.py"]
include_patterns += [f"{folder}/**.md" for folder in ("benchmarks", "experiments", "opinionsim", "personas", "topics")]
include_patterns += ["studies/README.md", "studies/published/*/README.md"]
exclude_patterns = ["opinionsim/*/templates/*"]
source_suffix = {".md": "markdown", ".py": "markdown"}
root_doc = "docs/index"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# A price in dollars is no formula.
myst_dmath_allow_digits = myst_dmath_allow_space = False

# Docstrings state types in words, and names in single backticks.
autodoc_typehints = "none"
default_role = "literal"
napoleon_use_ivar = True

#: Pages whose marked blocks are run by the build, which puts what they print and draw below them.
run_pages = ["docs/tutorial", "docs/gallery", "notebooks/*"]

html_theme = "furo"
html_title = "opinionsim"
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"

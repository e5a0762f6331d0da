"""How the manual is built: ``python -m sphinx -W --keep-going -n docs build/docs``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from duckanon import __version__

project = "duckanon"
author = "The duckanon authors"
project_copyright = author
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4

# Options such as --sql and quotes in code must stay as they are.
smartquotes = False

html_theme = "furo"
html_title = f"duckanon {version}"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_copy_source = False
html_show_sphinx = False

# Types stand in the docstrings, in words.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Types in words ("sequence of str") are no links; all other references must lead somewhere.
nitpick_ignore_regex = [("py:(class|obj|exc)", ".*")]
suppress_warnings = ["myst.strikethrough"]

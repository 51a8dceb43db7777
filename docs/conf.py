"""Sphinx: Markdown pages through MyST, the reference from the docstrings."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one that is there

import smmd

project = "smmd"
author = "The smmd developers"
release = version = smmd.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"smmd {version}"
exclude_patterns = ["_build", "reproduction/*"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
suppress_warnings = ["myst.xref_missing", "myst.header"]  # pages link to files, too; tables' titles

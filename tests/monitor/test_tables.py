"""The pages' tables are what their command computes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["monitoring.md", "sigreg.md"])
def test_tables_are_up_to_date(page):
    spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    text = (DOCS / page).read_text()
    assert text.count("<!-- table:") == sum(name == page for name, _ in tables.TABLES)
    assert tables.filled(page, text) == text
    assert tables.filled(page, text.replace("| 64 |", "| 65 |")) == text  # the test can fail

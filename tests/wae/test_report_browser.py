"""The report in a real browser: nothing to complain about, and the explorer answers.

Runs where Chromium is found; ``python -m benchmarks.browser report.html`` does the same by hand.
"""

from __future__ import annotations

import pytest

from benchmarks import browser
from smmd.wae import report
from tests.wae.standin import Linear, Normal, some_digits, tinted

pytestmark = pytest.mark.skipif(browser.find() is None, reason="no Chromium on this machine")


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: Linear(folder, some_digits(), 3),
        lambda folder: Normal(folder, tinted(side=18, n=120), 1),
    ],
    ids=["three dimensions", "one dimension, colour"],
)
def test_the_explorer_answers_to_mouse_touch_and_keyboard(tmp_path, make):
    path = report.write(make(tmp_path / "run"))
    assert browser.check(path) == []

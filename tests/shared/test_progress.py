"""The bar is drawn on a terminal during long waits, and nowhere else."""

import io

import pytest

from smmd import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    made = _Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def _drawn(
    monkeypatch: pytest.MonkeyPatch, clock: _Clock, stream: io.StringIO, seconds: float
) -> str:
    monkeypatch.setattr(progress.sys, "stderr", stream)
    bar = progress.Bar(10, "counting")
    for _ in range(10):
        clock.now += seconds / 10.0
        bar.advance()
    bar.close()
    return stream.getvalue()


def test_a_long_wait_on_a_terminal_shows_share_and_time_left(
    monkeypatch: pytest.MonkeyPatch, clock: _Clock
) -> None:
    text = _drawn(monkeypatch, clock, _Terminal(), 100.0)
    assert "counting: [####...." in text
    assert " 50%, 0:50 left" in text
    assert text.endswith("\r")  # wiped


def test_a_short_wait_shows_nothing(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    assert _drawn(monkeypatch, clock, _Terminal(), 2.0) == ""


def test_nothing_is_drawn_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, clock: _Clock
) -> None:
    assert _drawn(monkeypatch, clock, io.StringIO(), 100.0) == ""


def test_hours_are_told_as_hours(monkeypatch: pytest.MonkeyPatch, clock: _Clock) -> None:
    assert "1:30:00 left" in _drawn(monkeypatch, clock, _Terminal(), 10_800.0)

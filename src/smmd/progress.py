"""A bar for long waits."""

from __future__ import annotations

import sys
import time

#: A bar is drawn once this many seconds are expected in all, and redrawn this often.
PATIENCE, REDRAW = 5.0, 0.2


class Bar:
    """A line of text on stderr, drawn only on a terminal and only when the wait is long.

    >>> bar = Bar(100, "simulating")
    >>> bar.advance(10)
    >>> bar.close()
    """

    def __init__(self, total: int, label: str = "smmd") -> None:
        self.total, self.done, self.label = max(1, total), 0, label
        self.start = self.drawn = time.monotonic()
        self.shown = False

    def advance(self, steps: int = 1) -> None:
        """Count ``steps`` more as done."""
        self.done += steps
        now = time.monotonic()
        if now - self.drawn < REDRAW or not self.done or not sys.stderr.isatty():
            return
        self.drawn, spent = now, now - self.start
        expected = spent * self.total / self.done
        if not self.shown and (expected <= PATIENCE or spent < 2 * REDRAW):
            return
        self.shown = True
        share = min(1.0, self.done / self.total)
        filled = int(40 * share)
        line = f"\r{self.label}: [{'#' * filled}{'.' * (40 - filled)}] {share:4.0%}"
        sys.stderr.write(f"{line}, {_clock(max(0.0, expected - spent))} left ")
        sys.stderr.flush()

    def close(self) -> None:
        """Wipe the line."""
        if self.shown:
            sys.stderr.write("\r" + " " * (66 + len(self.label)) + "\r")
            sys.stderr.flush()
            self.shown = False


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"

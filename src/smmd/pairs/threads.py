"""Work for all cores: a pool that survives forks, rounds of tasks, and a bar for long waits."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

Task = Callable[[], None]

#: A bar is drawn once this many seconds are expected in all, and redrawn this often.
PATIENCE, REDRAW = 5.0, 0.2


def cores() -> int:
    """The number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not Linux
        return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=cores(), thread_name_prefix="smmd")


if hasattr(os, "register_at_fork"):  # a forked child has the pool but none of its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def run_rounds(rounds: Iterable[Sequence[Task]], total: int) -> None:
    """Run the tasks of each round side by side, one round after another.

    ``total`` is the number of tasks in all rounds.  Tasks must not themselves use the pool.
    """
    bar = Bar(total)
    alone = cores() == 1
    for tasks in rounds:
        if alone or len(tasks) == 1:
            for task in tasks:
                task()
                bar.advance(1)
            continue
        for future in [_pool().submit(task) for task in tasks]:
            future.result()
            bar.advance(1)
    bar.close()


def all_pairs(count: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair i ≤ j of ``count`` players in rounds where nobody plays twice.

    So the tasks of a round may add to their two players' rows without locks, and the order in
    which a row receives its parts does not depend on timing: the result has the same bits each
    time.  (The circle method: one player stays, the others move round a table.)
    """
    yield [(i, i) for i in range(count)]
    seats = list(range(count)) + ([-1] if count % 2 else [])
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        met = zip(seats[:half], reversed(seats[half:]), strict=True)
        yield [(min(i, j), max(i, j)) for i, j in met if min(i, j) >= 0]
        seats = [seats[0], seats[-1], *seats[1:-1]]


class Bar:
    """A line of text on stderr, drawn only on a terminal and only when the wait is long."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self.start = self.drawn = time.monotonic()
        self.shown = False

    def advance(self, steps: int) -> None:
        """Count ``steps`` more as done."""
        self.done += steps
        now = time.monotonic()
        if now - self.drawn < REDRAW or not sys.stderr.isatty():
            return
        self.drawn, spent = now, now - self.start
        expected = spent * self.total / self.done
        if not self.shown and (expected <= PATIENCE or spent < 2 * REDRAW):
            return
        self.shown = True
        share = self.done / self.total
        filled = int(40 * share)
        line = f"\rsmmd: [{'#' * filled}{'.' * (40 - filled)}] {share:4.0%}"
        sys.stderr.write(f"{line}, {_clock(expected - spent)} left ")
        sys.stderr.flush()

    def close(self) -> None:
        """Wipe the line."""
        if self.shown:
            sys.stderr.write("\r" + " " * 70 + "\r")
            sys.stderr.flush()


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"

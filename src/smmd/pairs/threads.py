"""Work for all cores: a pool that survives forks, and rounds of tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from smmd.progress import Bar

Task = Callable[[], None]


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

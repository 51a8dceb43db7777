"""The stepwise learning rate: (epochs, rate) stages, one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

Stages = tuple[tuple[int, float], ...]


def checked(stages: Sequence[Sequence[float]]) -> Stages:
    """The stages as tuples, or a ``ValueError``."""
    taken = []
    for stage in stages:
        if len(stage) != 2 or int(stage[0]) != stage[0] or stage[0] < 1:
            raise ValueError(f"a stage is a pair (epochs, learning rate), got {stage!r}")
        if not (math.isfinite(stage[1]) and stage[1] > 0):
            raise ValueError(f"a learning rate must be positive and finite, got {stage[1]!r}")
        taken.append((int(stage[0]), float(stage[1])))
    if not taken:
        raise ValueError("stages is empty: pass at least one pair (epochs, learning rate)")
    return tuple(taken)


def epochs(stages: Stages) -> int:
    """How long the whole schedule lasts."""
    return sum(length for length, _ in stages)


def rate(stages: Stages, epoch: int) -> float:
    """The learning rate of ``epoch``, counted from 1."""
    for length, value in stages:
        if epoch <= length:
            return value
        epoch -= length
    raise ValueError(f"the schedule ended {epoch} epochs ago")


def stretched(stages: Stages, total: int) -> Stages:
    """The same rates over ``total`` epochs, each stage's share kept; short ones may vanish."""
    if total < 1:
        raise ValueError(f"epochs must be at least 1, got {total}")
    whole, ends, passed = epochs(stages), [0], 0
    for length, _ in stages:
        passed += length
        ends.append(round(total * passed / whole))
    spans = zip(ends, ends[1:], stages, strict=False)
    return tuple((end - start, value) for start, end, (_, value) in spans if end > start)

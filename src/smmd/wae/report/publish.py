"""Runs evaluated and shown: what ``smmd evaluate`` does, and ``smmd train`` at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from smmd.wae import spread
from smmd.wae.evaluation import Evaluation, Trained, evaluate
from smmd.wae.report.write import write, write_spread


def publish(
    runs: Trained | Sequence[Trained], top: Path, *, pages: bool = True
) -> tuple[list[Evaluation], str]:
    """Evaluate the run kept in ``top``, or the several seeds' runs in folders below it.

    Writes evaluation.json and, with ``pages``, report.html into each folder, and for several seeds
    their spread into ``top``.  Returns the evaluations and the text to show.
    """
    several = isinstance(runs, Sequence)
    found = []
    for run in runs if isinstance(runs, Sequence) else [runs]:
        found.append(evaluate(run))
        if pages:
            write(run, found[-1])
    if not several:
        return found, str(found[0])
    spread.write(top, found)
    if pages:
        write_spread(top, found)
    return found, spread.text(found)

"""Sums over pairs on the CPU: NumPy, blocks of the upper triangle, all cores.

A block's powers come out of one matrix product (``distances``), are exponentiated in place and
summed while they are in the cache; its slopes are multiplied with the points, once for its rows
and once, transposed, for its columns.  Memory is linear in n, the result does not depend on the
timing of threads, and sums over blocks are float64.  Which distances are used, and with which
error, is decided in ``plan``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from smmd.pairs import plan
from smmd.pairs.distances import Differences, Distances, Gram
from smmd.pairs.functions import Function, uniform_parts
from smmd.pairs.threads import Task, all_pairs, cores, run_rounds
from smmd.radial import Radial

#: A task is a square of at most this many rows and columns, cut into blocks.
TASK = 1024
#: How many numbers the blocks of a group of small samples hold together: 512 KB in float64.
GROUP = 1 << 16
#: Small samples of so many pairs together are cut, to leave out mirrored blocks.
CUT = 1 << 14
#: Up to so many points a gradient in float64 is taken from differences, which cost little there.
EXACT_GRADIENT = 256


def pair_sum(
    z: np.ndarray, radial: Radial, *, gradient: bool = False, single: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Σ_{i≠j} f(‖z_i − z_j‖²) for z (…, n, d), and its gradient if asked, in float64.

    ``single`` says that the data have single precision, so that the sums may too where the error
    stays as small as ``plan`` says.
    """
    totals, slopes = _sums(z, None, radial, gradient, single)
    return totals, None if slopes is None else 4.0 * slopes


def cross_sum(
    rows: np.ndarray,
    cols: np.ndarray,
    radial: Radial,
    *,
    gradient: bool = False,
    single: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Σ_ij f(‖rows_i − cols_j‖²), and its gradient in ``rows`` if asked; batches must agree."""
    totals, slopes = _sums(rows, np.asarray(cols), radial, gradient, single)
    return totals, None if slopes is None else 2.0 * slopes


def _sums(
    rows: np.ndarray, cols: np.ndarray | None, radial: Radial, gradient: bool, single: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    rows = np.asarray(rows)
    shape, batch = rows.shape, rows.shape[:-2]
    samples = math.prod(batch)  # −1 is ambiguous where a rank holds no rows
    x = np.asarray(rows, dtype=np.float64).reshape(samples, *shape[-2:])
    y = None
    if cols is not None:
        y = np.asarray(cols, dtype=np.float64).reshape(samples, *cols.shape[-2:])
    totals, slopes = np.zeros(len(x)), np.zeros(x.shape) if gradient else None
    if x.size and (y is None or y.size):
        choice, centred_x, centred_y = prepare(x, y, radial, single, gradient)
        for part, function in uniform_parts(radial, batch):
            picked = None if centred_y is None else centred_y[part]
            sums, pull = _Job(centred_x[part], picked, function, choice.path).run(gradient)
            totals[part] = sums
            if slopes is not None:
                slopes[part] = pull
    return totals.reshape(batch), None if slopes is None else slopes.reshape(shape)


def prepare(
    x: np.ndarray, y: np.ndarray | None, radial: Radial, single: bool, gradient: bool = False
) -> tuple[plan.Choice, np.ndarray, np.ndarray | None]:
    """The path for these points, and the points centred if it wants them so."""
    with np.errstate(over="ignore", invalid="ignore"):
        centre = (x if y is None else y).mean(axis=-2, keepdims=True)
        sides = [v - centre for v in (x, y) if v is not None]
        radius2 = max(float(np.einsum("...k,...k->...", v, v).max()) for v in sides)
    n = x.shape[-2] if y is None else y.shape[-2]
    choice = plan.choose(radius2, (len(x), n, x.shape[-1]), radial, single)
    if gradient and not single and n <= EXACT_GRADIENT and plan.forced() is None:
        # A Gram gradient Σ f'·x − Σ f'·y is off by ε|x|, near-duplicates' own may be far smaller.
        choice = plan.Choice("difference", "the gradient of a small float64 sample", 0.0)
    if choice.path == "difference":
        return choice, x, y
    return choice, sides[0], None if y is None else sides[1]


class _Job:
    """One kernel over a stack of samples, cut into tasks."""

    def __init__(self, x: np.ndarray, y: np.ndarray | None, function: Function, path: str) -> None:
        self.x, self.y, self.function, self.path = x, y, function, path

    def run(self, gradient: bool) -> tuple[np.ndarray, np.ndarray | None]:
        """The weighted sums, and Σ_j f'(r²_ij)(x_i − y_j)."""
        samples, m = self.x.shape[:2]
        n = m if self.y is None else self.y.shape[1]
        self.sums = np.zeros(samples)
        self.slopes = np.zeros(self.x.shape) if gradient else None
        edge = self._edge(samples, m, n)
        per_task = max(1, min(GROUP // (min(m, edge) * min(n, edge)), -(-samples // cores())))
        groups = range(0, samples, per_task)
        if m * n <= self.function.edge**2 or len(groups) >= 4 * cores():
            run_rounds(
                [[partial(self._group, slice(s, s + per_task), edge) for s in groups]], len(groups)
            )
        else:
            for sample in range(samples):
                self._large(sample)
        self.sums *= self.function.weight_of(samples)
        if self.slopes is not None:
            self.slopes *= np.reshape(self.function.slope_weight_of(samples), (-1, 1, 1))
        return self.sums, self.slopes

    def _edge(self, samples: int, m: int, n: int) -> int:
        """The block size of small samples: cut in three, they leave out three of nine blocks."""
        edge, longest = self.function.edge, max(m, n)
        if self.y is None and longest > 40 and samples * m * n >= CUT:
            edge = min(edge, -(-longest // 3))
        return min(edge, longest)

    def _distances(self, part: slice, gradient: bool) -> Distances:
        y = None if self.y is None else self.y[part]
        c0, c1 = self.function.affine(part)
        if self.path == "difference":
            return Differences(self.x[part], y, c0, c1, slopes=gradient)
        dtype = np.float32 if self.path == "gram32" else np.float64
        return Gram(self.x[part], y, c0, c1, dtype=dtype, slopes=gradient)

    def _group(self, part: slice, edge: int) -> None:
        """A task: every block of a few samples."""
        distances = self._distances(part, self.slopes is not None)
        m = self.x.shape[1]
        cols = range(m if self.y is None else self.y.shape[1])
        self.sums[part] = self._square(distances, part, range(m), cols, edge)
        if self.slopes is not None:
            self.slopes[part] = distances.gradient()

    def _large(self, sample: int) -> None:
        """One large sample: squares of the upper triangle, shared out among the cores."""
        part, m = slice(sample, sample + 1), self.x.shape[1]
        distances = self._distances(part, self.slopes is not None)
        edge = self.function.edge
        # Four tasks or more for each core, none smaller than a block.
        size = max(edge, min(TASK, m // (8 * cores()) // edge * edge))
        parts: list[float] = []
        if self.y is None:
            starts = [range(i, min(i + size, m)) for i in range(0, m, size)]
            total = len(starts) * (len(starts) + 1) // 2
            rounds: Iterator[Any] = (
                [(starts[i], starts[j]) for i, j in meetings] for meetings in all_pairs(len(starts))
            )
        else:
            size = max(16, min(edge, -(-m // (4 * cores()))))
            cols = range(self.y.shape[1])
            stripes = [(range(i, min(i + size, m)), cols) for i in range(0, m, size)]
            total, rounds = len(stripes), iter([stripes])

        def tasks() -> Iterator[list[Task]]:
            for squares in rounds:
                first = len(parts)
                parts.extend([0.0] * len(squares))
                yield [partial(task, first + k, r, c) for k, (r, c) in enumerate(squares)]

        def task(place: int, rows: range, cols: range) -> None:
            parts[place] = float(self._square(distances, part, rows, cols, edge)[0])

        run_rounds(tasks(), total)
        self.sums[sample] = math.fsum(parts)
        if self.slopes is not None:
            self.slopes[part] = distances.gradient()

    def _square(
        self, distances: Distances, part: slice, rows: range, cols: range, edge: int
    ) -> np.ndarray:
        """Σ f over a square of pairs of each sample; slopes are left with ``distances``."""
        samples = len(self.x[part])
        gradient = self.slopes is not None
        totals = np.zeros(samples)
        room = np.empty(samples * edge * edge, distances.dtype)
        for i in range(rows.start, rows.stop, edge):
            r = slice(i, min(i + edge, rows.stop))
            first = max(i, cols.start) if self.y is None else cols.start
            for j in range(first, cols.stop, edge):
                c = slice(j, min(j + edge, cols.stop))
                shape = samples, r.stop - i, c.stop - j
                g = room[: math.prod(shape)].reshape(shape)
                distances.fill(r, c, g)
                diagonal = self.y is None and i == j
                sums = self.function.apply(g, part, diagonal=diagonal, slopes=gradient)
                totals += sums if diagonal or self.y is not None else 2.0 * sums
                if gradient:
                    distances.collect(g, r, c)
        return totals

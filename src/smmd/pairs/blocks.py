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
from smmd.pairs.series import shortened
from smmd.pairs.threads import Task, all_pairs, cores, run_rounds
from smmd.radial import Radial, SeriesRadial

#: A task is a square of at most this many rows and columns, cut into blocks.
TASK = 1024
#: How many numbers the blocks of a group of small samples hold together: 512 KB in float64.
GROUP = 1 << 16
#: Small samples of so many pairs together are cut, to leave out mirrored blocks.
CUT = 1 << 17
#: Up to so many points a float64 gradient whose terms cancel is taken from differences.
EXACT_GRADIENT = 256


def pair_sum(
    z: np.ndarray, radial: Radial, *, gradient: bool = False, single: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Σ_{i≠j} f(‖z_i − z_j‖²) for z (…, n, d), and its gradient if asked, in float64.

    ``single`` says that the data have single precision, so that the sums may too where the error
    stays as small as ``plan`` says.
    """
    return _sums(z, None, radial, gradient, single)


def cross_sum(
    rows: np.ndarray,
    cols: np.ndarray,
    radial: Radial,
    *,
    gradient: bool = False,
    single: bool = False,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Σ_ij f(‖rows_i − cols_j‖²), and its gradient in ``rows`` if asked; batches must agree."""
    return _sums(rows, np.asarray(cols), radial, gradient, single)


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
        choice, centred_x, centred_y, radius2 = prepare(x, y, radial, single)
        dimension = x.shape[-1] if choice.path == "gram32" else 0
        for part, function in uniform_parts(radial, batch, 4.0 * radius2, dimension):
            picked = None if centred_y is None else centred_y[part]
            job = _Job(centred_x[part], picked, function, choice.path)
            sums, slope = job.run(gradient, 0.0 if single else math.sqrt(radius2))
            if job.cancelled and plan.forced() is None:
                picked = None if y is None else y[part]
                sums, slope = _Job(x[part], picked, function, "difference").run(gradient)
            if isinstance(part, slice):  # all of them
                totals, slopes = sums, slope
            else:
                totals[part] = sums
                if slopes is not None:
                    slopes[part] = slope
    return totals.reshape(batch), None if slopes is None else slopes.reshape(shape)


def prepare(
    x: np.ndarray, y: np.ndarray | None, radial: Radial, single: bool, gradient: bool = False
) -> tuple[plan.Choice, np.ndarray, np.ndarray | None, float]:
    """The path for these points, the points, centred if it wants them so, and their radius².

    The latter is the largest squared distance from the mean.  ``gradient`` adds to the reason
    what a gradient asks for.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        of = x if y is None else y
        centre = np.add.reduce(of, axis=-2, keepdims=True) / of.shape[-2]
        sides = [v - centre for v in (x, y) if v is not None]
        radius2 = max(float(np.einsum("...k,...k->...", v, v).max()) for v in sides)
    n = of.shape[-2]
    shape = len(x), n, x.shape[-1]
    choice = plan.choose(radius2, shape, radial, single)
    if (
        choice.path == "gram32"
        and isinstance(radial, SeriesRadial)
        and shortened(radial, 4.0 * radius2, shape[-1]) is None
    ):
        choice = plan.choose(radius2, shape, radial, False)
    if gradient and not single and n <= EXACT_GRADIENT and choice.because == plan.GRAM:
        choice = choice._replace(because=f"{plan.GRAM}; gradients that cancel go by 'difference'")
    if choice.path == "difference":
        return choice, x, y, radius2
    return choice, sides[0], None if y is None else sides[1], radius2


class _Job:
    """One kernel over a stack of samples, cut into tasks."""

    def __init__(self, x: np.ndarray, y: np.ndarray | None, function: Function, path: str) -> None:
        self.x, self.y, self.function, self.path = x, y, function, path

    def run(self, gradient: bool, radius: float = 0.0) -> tuple[np.ndarray, np.ndarray | None]:
        """The sums, and their gradient.

        With the points' ``radius``, ``cancelled`` tells whether a small sample's gradient may have
        lost digits.
        """
        samples, m = self.x.shape[:2]
        n = m if self.y is None else self.y.shape[1]
        self.cancelled, self.radius = False, radius if max(m, n) <= EXACT_GRADIENT else 0.0
        edge = self._edge(samples, m, n)
        if edge == max(m, n) and samples * m * n <= GROUP:
            self._at_once(gradient)
        else:
            self.sums = np.zeros(samples)
            self.slopes = np.zeros(self.x.shape) if gradient else None
            self._by_tasks(samples, m, n, edge)
        self.sums *= self.function.weight_of(samples)
        if self.slopes is not None:
            # A pair moves both its points, and Σ_{i≠j} counts it twice.
            weight = (4.0 if self.y is None else 2.0) * self.function.slope_weight_of(samples)
            self.slopes *= np.reshape(weight, (-1, 1, 1)) if np.ndim(weight) else weight
        return self.sums, self.slopes

    def _at_once(self, gradient: bool) -> None:
        """A single block."""
        everything, m = slice(None), self.x.shape[1]
        shape = len(self.x), m, m if self.y is None else self.y.shape[1]
        distances = self._distances(everything, gradient, alone=True)
        room = np.empty((1 + self.function.rows(gradient), math.prod(shape)), distances.dtype)
        g = room[0].reshape(shape)
        distances.fill(everything, everything, g)
        self.sums = self.function.apply(
            g, room[1:], everything, diagonal=self.y is None, slopes=gradient
        )
        self.slopes = None
        if gradient:
            distances.collect(g, everything, everything)
            self.slopes = self._gradient(distances)

    def _by_tasks(self, samples: int, m: int, n: int, edge: int) -> None:
        """Many small samples, or the squares of large ones."""
        per_task = max(1, min(GROUP // (min(m, edge) * min(n, edge)), -(-samples // cores())))
        groups = range(0, samples, per_task)
        if m * n <= self.function.edge**2 or len(groups) >= 4 * cores():
            run_rounds(
                [[partial(self._group, slice(s, s + per_task), edge) for s in groups]], len(groups)
            )
        else:
            for sample in range(samples):
                self._large(sample)

    def _edge(self, samples: int, m: int, n: int) -> int:
        """The block size of small samples: cut in three, they leave out three of nine blocks."""
        edge, longest = self.function.edge, max(m, n)
        if self.y is None and longest > 40 and samples * m * n >= CUT:
            edge = min(edge, -(-longest // 3))
        return min(edge, longest)

    def _distances(self, part: slice, gradient: bool, *, alone: bool = False) -> Distances:
        y = None if self.y is None else self.y[part]
        c0, c1 = self.function.affine(part)
        if self.path == "difference":
            return Differences(self.x[part], y, c0, c1, slopes=gradient)
        dtype = np.float32 if self.path == "gram32" else np.float64
        return Gram(self.x[part], y, c0, c1, dtype=dtype, slopes=gradient, alone=alone)

    def _group(self, part: slice, edge: int) -> None:
        """A task: every block of a few samples."""
        distances = self._distances(part, self.slopes is not None)
        m = self.x.shape[1]
        cols = range(m if self.y is None else self.y.shape[1])
        self.sums[part] = self._square(distances, part, range(m), cols, edge)
        if self.slopes is not None:
            self.slopes[part] = self._gradient(distances)

    def _gradient(self, distances: Distances) -> np.ndarray:
        """What has been collected."""
        found = distances.gradient()
        if self.radius and isinstance(distances, Gram) and distances.cancels(found, self.radius):
            self.cancelled = True
        return found

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
            self.slopes[part] = self._gradient(distances)

    def _square(
        self, distances: Distances, part: slice, rows: range, cols: range, edge: int
    ) -> np.ndarray:
        """Σ f over a square of pairs of each sample; slopes are left with ``distances``."""
        samples = len(self.x[part])
        gradient = self.slopes is not None
        totals = np.zeros(samples)
        room = np.empty((1 + self.function.rows(gradient), samples * edge * edge), distances.dtype)
        for i in range(rows.start, rows.stop, edge):
            r = slice(i, min(i + edge, rows.stop))
            first = max(i, cols.start) if self.y is None else cols.start
            for j in range(first, cols.stop, edge):
                c = slice(j, min(j + edge, cols.stop))
                shape = samples, r.stop - i, c.stop - j
                count = math.prod(shape)
                g = room[0, :count].reshape(shape)
                distances.fill(r, c, g)
                diagonal = self.y is None and i == j
                sums = self.function.apply(
                    g, room[1:, :count], part, diagonal=diagonal, slopes=gradient
                )
                totals += sums if diagonal or self.y is not None else 2.0 * sums
                if gradient:
                    distances.collect(g, r, c)
        return totals

"""The directions in which projected data look least normal, and what they are worth.

Searching for a direction finds one in any sample, however normal.  So the rows are split: the
directions are found on one half, by ascent along the closed-form gradient of the one-dimensional
SMMD², and judged on the other half, where they are directions fixed in advance.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from smmd import measure
from smmd.kernels import Kernel
from smmd.normality import reference, statistics
from smmd.normality.multiplicity import holm
from smmd.normality.prepare import TiesWarning, prepare, standardized

#: Rows that the search looks at; it costs their square.
_SEARCHED = 800
_RANDOM_STARTS, _GUESSING, _CLIMBERS, _STEPS = 24, 20, 6, 40
#: Fewer rows than this in a half say nothing about a direction.
LEAST_HALF = 20


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction and how normal the data are along it.

    ``weights`` apply to the columns in their own units; ``loadings`` to columns divided by their
    standard deviations, and have unit length.  ``found`` is SMMD² on the half of the rows on
    which the direction was found, ``statistic`` and the p-values are of the other half.
    """

    weights: np.ndarray
    loadings: np.ndarray
    found: float
    statistic: float
    pvalue: float
    adjusted: float


def worst(
    values: np.ndarray,
    null: str,
    kernel: Kernel,
    rng: np.random.Generator,
    *,
    count: int,
    method: str,
) -> tuple[tuple[Direction, ...], str]:
    """The ``count`` worst directions, each orthogonal to the former, or why there are none."""
    n, d = values.shape
    if d < 2:
        return (), ""
    half = n // 2
    if half < max(LEAST_HALF, d + 2):
        return (), (
            f"No directions were searched for: {half} rows, half of the sample, are too few for "
            f"d = {d}."
        )
    order = rng.permutation(n)
    first, second = values[order[:half]], values[order[half:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiesWarning)
        try:
            known = prepare(first, null)
        except ValueError as error:
            return (), f"No directions were searched for: {error}."
    found = climb(known.z[:_SEARCHED], kernel, rng, min(count, d))
    # What is estimated from a half for itself; nothing for "standard".
    own = "standard" if null == "standard" else "normal"
    smmd = statistics.STATISTICS["smmd"]
    law = reference.find(smmd, kernel, own, len(second), 1, method=method)
    spread = standardized(values)[2]
    rows = []
    for w in found:
        weights = known.transform @ w
        line = second @ weights
        if own == "normal":
            line = (line - line.mean()) / line.std(ddof=1)
        value = float(measure.smmd(line[:, None], kernel=kernel))
        inside = float(measure.smmd((known.z @ w)[:, None], kernel=kernel))
        loadings = weights * spread
        loadings = loadings / np.linalg.norm(loadings)
        turn = np.sign(loadings[np.argmax(np.abs(loadings))])
        rows.append((weights * turn, loadings * turn, inside, value, law.pvalue(value)))
    adjusted = holm([row[4] for row in rows])
    made = [Direction(*row, p) for row, p in zip(rows, adjusted, strict=True)]
    return tuple(sorted(made, key=lambda item: item.pvalue)), ""


def climb(z: np.ndarray, kernel: Kernel, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Unit vectors w that make SMMD² of z·w large, one after another, each orthogonal to the last.

    Projected gradient ascent from the best of the axes and of directions with extreme moments; a
    step shrinks until it climbs.
    """
    smmd = statistics.STATISTICS["smmd"]
    basis = np.eye(z.shape[1])
    found: list[np.ndarray] = []
    for _ in range(count):
        room = basis.shape[1]
        inside = z @ basis
        starts = np.concatenate([np.eye(room), _guesses(inside, rng)])
        starts /= np.linalg.norm(starts, axis=1, keepdims=True)
        values = np.asarray(smmd.value(_lines(inside, starts), kernel))
        chosen = starts[np.argsort(-values)[:_CLIMBERS]]
        w, _ = _ascend(inside, chosen, kernel)
        best = basis @ w
        found.append(best / np.linalg.norm(best))
        if room == 1:
            break
        # What is orthogonal to the direction found, within the space searched so far.
        basis = basis @ np.linalg.svd(w[None, :])[2][1:].T
    return found


def _guesses(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Directions at which the third or fourth moment is extreme, from random starts.

    The fixed-point iterations of Hyvärinen and Oja (1997): cheap, and they see far.
    """
    guesses = []
    for power, pull in ((2, 0.0), (3, 3.0)):
        w = rng.standard_normal((_RANDOM_STARTS, z.shape[1]))
        for _ in range(_GUESSING):
            w /= np.linalg.norm(w, axis=1, keepdims=True)
            w = ((z @ w.T) ** power).T @ z / len(z) - pull * w
        guesses.append(w)
    return np.concatenate(guesses)


def _lines(z: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((z @ directions.T).T[:, :, None])


def _ascend(z: np.ndarray, w: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, float]:
    """The best of several climbers, all moved at once."""
    step = np.full(len(w), 0.3)
    value, slope = _value_and_slope(z, w, kernel)
    for _ in range(_STEPS):
        norm = np.linalg.norm(slope, axis=1)
        moving = (norm > 1e-8) & (step > 1e-3)
        if not moving.any():
            break
        unit = slope / np.where(norm > 0.0, norm, 1.0)[:, None]
        trial = np.cos(step)[:, None] * w + np.sin(step)[:, None] * unit
        new_value, new_slope = _value_and_slope(z, trial, kernel)
        better = moving & (new_value > value)
        w = np.where(better[:, None], trial, w)
        slope = np.where(better[:, None], new_slope, slope)
        value = np.where(better, new_value, value)
        step = np.where(better, 1.3 * step, 0.4 * step)
    top = int(np.argmax(value))
    return w[top], float(value[top])


def _value_and_slope(z: np.ndarray, w: np.ndarray, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    """SMMD² along each direction and its gradient on the sphere."""
    value, pull = measure.value_and_grad(_lines(z, w), kernel)
    slope = np.asarray(pull)[:, :, 0] @ z
    slope -= (slope * w).sum(axis=1, keepdims=True) * w
    return np.atleast_1d(value), slope

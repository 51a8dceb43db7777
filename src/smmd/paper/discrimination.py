"""The discrimination experiment of section 4, for any alternative: how large is τ?

For each method, kernel scale and dimension: the estimate on ``repeats`` samples of n = 100 points
from N(0, I) and on as many from the alternative, and

    τ = |Mean₁ − Mean₂| / ((SD₁ + SD₂)/2).

The paper uses 200 repeats, so that its τ is itself a random number.  Ours come from many more; the
same samples serve all methods and scales, so that the differences between methods are sharper than
each number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from smmd import effect_size
from smmd.kernels import IMQ, Gaussian, HenzeZirkler, Kernel, Sliced
from smmd.paper import many
from smmd.paper.many import Batch
from smmd.paper.model import Cell, Table, rounding
from smmd.paper.work import DIMENSIONS, Draw, N, Work

#: The paper's repeats for each τ.
PAPER_REPEATS = 200
#: With so many repetitions of the paper's experiment its spread is measured, not derived.
ENOUGH_GROUPS = 30

RBF_SCALES = ("2", "1", "1/2", "1/4", "1/8", "1/16", "1/32")
IMQ_SCALES = (*RBF_SCALES, "1/64", "1/128", "1/256", "1/512", "1/1024")
HZ, HZ_FORMULA = "HZ", "HZ as in its formula"


@dataclass(frozen=True)
class Method:
    """An estimator and the kernels it is tried with."""

    name: str
    label: str
    scales: tuple[str, ...]
    kernel: Callable[[str, int], Kernel]
    sampled: bool = False


def number(scale: str) -> float:
    top, _, bottom = scale.partition("/")
    return float(top) / float(bottom or 1)


def _rbf(scale: str, d: int) -> Kernel:
    if scale == HZ_FORMULA:
        return HenzeZirkler()
    if scale == HZ:  # the paper's tables: γ² := γ_{d,n}, the square was forgotten
        return Gaussian(gamma=math.sqrt(HenzeZirkler.gamma(N, d)))
    return Gaussian(number(scale))


def _imq(scale: str, d: int) -> Kernel:
    return IMQ(number(scale))


def _sliced(scale: str, d: int) -> Kernel:
    # A projection has one dimension: γ² = s·1.
    return Sliced(math.sqrt(number(scale)))


METHODS = (
    Method("an RBF", "Analytic RBF", (*RBF_SCALES, HZ, HZ_FORMULA), _rbf),
    Method("emp RBF", "Empirical RBF", (*RBF_SCALES, HZ, HZ_FORMULA), _rbf, sampled=True),
    Method("emp IMQ", "Empirical IMQ", IMQ_SCALES, _imq, sampled=True),
    Method("an IMQ", "Analytic IMQ (new)", IMQ_SCALES, _imq),
    Method("an sliced", "Exact sliced (new)", RBF_SCALES, _sliced),
)
#: Methods that share kernels, and with them the sums over the sample's own pairs.
FAMILIES = (METHODS[:2], METHODS[2:4], METHODS[4:])


def taus(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """τ, its standard error, and the standard error of a τ from the paper's 200 repeats.

    The last is the root mean square distance, from τ, of the signed τ of groups of 200 repeats:
    the sampling law itself.  With too few groups it is the delta method's.
    """
    tau = float(effect_size(first, second))
    error = delta_error(first, second, len(first), len(second))
    groups = min(len(first), len(second)) // PAPER_REPEATS
    if groups < ENOUGH_GROUPS:
        return tau, error, delta_error(first, second, PAPER_REPEATS, PAPER_REPEATS)
    a, b = (v[: groups * PAPER_REPEATS].reshape(groups, PAPER_REPEATS) for v in (first, second))
    signs = np.sign(a.mean(axis=1) - b.mean(axis=1)) * np.sign(first.mean() - second.mean())
    each = signs * np.asarray(effect_size(a, b))
    return tau, error, float(np.sqrt(np.mean((each - tau) ** 2)))


def delta_error(first: np.ndarray, second: np.ndarray, *repeats: float) -> float:
    """The standard error of τ from so many values on either side, to first order in 1/repeats.

    With skewness g and kurtosis k, Var(SD) = SD²(k − 1 + 2/(R−1))/(4R), Cov(mean, SD) = SD²·g/(2R).
    """
    tau = float(effect_size(first, second))
    sds, variance, of_sds, covariance = [], 0.0, 0.0, 0.0
    towards = 1.0 if first.mean() >= second.mean() else -1.0
    for values, sign, count in zip((first, second), (towards, -towards), repeats, strict=True):
        centred = values - values.mean()
        sd = float(values.std(ddof=1))
        skewness, kurtosis = (float(np.mean(centred**k)) / sd**k for k in (3, 4))
        sds.append(sd)
        variance += sd**2 / count
        of_sds += sd**2 * (kurtosis - 1.0 + 2.0 / (count - 1.0)) / (4.0 * count)
        covariance += sign * sd**2 * skewness / (2.0 * count)
    mean_sd = 0.5 * sum(sds)
    total = variance + tau**2 * of_sds / 4.0 - tau * covariance
    return math.sqrt(max(total, 0.0)) / mean_sd


Values = dict[str, dict[str, np.ndarray]]


def estimates(work: Work, d: int, repeats: int, draw: Draw | None, key: object = "") -> Values:
    """{method: {scale: values}} on one side; ``draw`` None is N(0, I).

    All methods and scales see the same samples, and the sampled ones the same references.
    """
    side = "normal" if draw is None else "alternative"
    ours, theirs = work.draws(d, side, key), work.draws(d, side, "reference", key)
    parts: dict[str, dict[str, list[np.ndarray]]] = {
        method.name: {scale: [] for scale in method.scales} for method in METHODS
    }
    for z in work.batches(ours, repeats, d, draw):
        batch, reference = Batch(z), Batch(theirs.normal(*z.shape))
        across = batch.to(reference)
        for family in FAMILIES:
            for scale in family[0].scales:
                kernel = family[0].kernel(scale, d)
                between = batch.mean_of_pairs(kernel)
                for method in family:
                    if method.sampled:
                        found = many.two_sample(batch, reference, across, kernel, between)
                    else:
                        found = batch.closed_form(kernel, between=between)
                    parts[method.name][scale].append(many.to_numpy(found))
    return {
        method: {scale: np.concatenate(found) for scale, found in scales.items()}
        for method, scales in parts.items()
    }


def compare(first: Values, second: Values) -> dict[str, dict[str, dict[str, Any]]]:
    """{method: {scale: τ, errors, and the five numbers of both boxes}} at one dimension."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for method, scales in first.items():
        found[method] = {}
        for scale, a in scales.items():
            b = second[method][scale]
            tau, error, of_paper = taus(a, b)
            found[method][scale] = {
                "tau": tau,
                "error": error,
                "paper_error": of_paper,
                "common": delta_error(a, b, len(a), math.inf),
                "boxes": [five_numbers(v[:PAPER_REPEATS]) for v in (a, b)],
            }
    return found


def experiment(work: Work, d: int, draw: Draw) -> dict[str, dict[str, dict[str, Any]]]:
    """The whole comparison at one dimension against one alternative."""
    repeats = work.sizes.repeats
    return compare(estimates(work, d, repeats, None), estimates(work, d, repeats, draw))


def five_numbers(values: np.ndarray) -> list[float]:
    return [float(q) for q in np.quantile(values, [0.0, 0.25, 0.5, 0.75, 1.0])]


def table(
    name: str,
    title: str,
    found: dict[int, dict[str, dict[str, dict[str, Any]]]],
    printed: dict[str, dict[str, tuple[str, ...]]],
) -> Table:
    """Ours beside the printed; ``printed`` has a tuple over DIMENSIONS for a method and scale."""
    cells = []
    for method in METHODS:
        for scale in method.scales:
            row = printed.get(method.name, {}).get(scale)
            for d, results in found.items():
                one = results[method.name][scale]
                paper = None if row is None else row[DIMENSIONS.index(d)]
                theirs = None
                if paper is not None:
                    theirs = math.hypot(one["paper_error"], rounding(paper))
                cells.append(
                    Cell(
                        (method.name, scale),
                        f"d={d}",
                        one["tau"],
                        one["error"],
                        None if paper is None else float(paper),
                        theirs,
                    )
                )
    return Table(name, title, ("Method", "Kernel scale"), tuple(cells), bold="max")


def best_scale(results: dict[str, dict[str, Any]]) -> str:
    """The scale with the largest τ (the paper's reading of HZ not counted twice)."""
    return max((s for s in results if s != HZ_FORMULA), key=lambda s: results[s]["tau"])


def boxes(results: dict[str, dict[str, dict[str, Any]]], alternative: str) -> dict[str, Any]:
    """What the box plot needs: for each method its best scale and both boxes."""
    shown = []
    for method in METHODS:
        if method.name in results:
            scale = best_scale(results[method.name])
            one = results[method.name][scale]
            shown.append(
                {"label": method.label, "scale": scale, "tau": one["tau"], "boxes": one["boxes"]}
            )
    return {"alternative": alternative, "methods": shown}

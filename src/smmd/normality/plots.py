"""Figures of results: the null law with the statistic in it, Q–Q plots of distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from smmd import figures
from smmd.normality.rows import distance_law
from smmd.nulls.montecarlo import SimulatedNull

if TYPE_CHECKING:
    from smmd.normality.result import NormalityResult

#: A Q–Q plot shows at most so many points: the largest, and evenly spaced others.
_SHOWN = 2000


def of_result(result: NormalityResult) -> Any:
    """The figure of ``NormalityResult.plot``."""
    with figures.look() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), width_ratios=(1.25, 1.0))
        null_law(left, result)
        distances(right, result.distances, result.n, result.d, result.null)
        plt.close(figure)  # out of pyplot's list, so that it is neither leaked nor shown twice
    return figure


def null_law(ax: Any, result: NormalityResult) -> None:
    """The density of the statistic under the null, its upper tail, and where the sample is."""
    law, value = result.null_distribution, result.statistic
    if result.statistic_name == "mardia-kurtosis":
        value = abs(value)
    low, high = float(law.isf(0.999)), float(law.isf(0.001))
    if not np.isfinite(high) or isinstance(law, SimulatedNull):
        low, high = float(law.values[0]), float(law.values[-1])  # type: ignore[attr-defined]
    span = high - low
    off_scale = value > high + 2.0 * span
    # A value far out in the tail keeps its place beside the law, marked as off the scale.
    shown = high + 0.35 * span if off_scale else value
    left, right = min(low, shown) - 0.05 * span, max(high, shown) + 0.08 * span
    if isinstance(law, SimulatedNull):
        ax.hist(law.values, bins=60, density=True, color=figures.PALE)
        beyond = law.values[law.values > result.threshold]
        share = np.full(beyond.size, 60.0 / (span * law.values.size))
        bins = np.linspace(low, high, 61)
        ax.hist(beyond, bins=bins, weights=share, color=figures.RED, alpha=0.35)
    else:
        x = np.linspace(left, min(right, high + 0.3 * span), 500)
        y = np.asarray(law.pdf(x))  # type: ignore[attr-defined]
        ax.plot(x, y, color=figures.INK)
        ax.fill_between(x, y, color=figures.PALE, alpha=0.6, lw=0)
        tail = x >= result.threshold
        ax.fill_between(x[tail], y[tail], color=figures.RED, alpha=0.35, lw=0)
    top = ax.get_ylim()[1]
    colour = figures.RED if result.rejected else figures.BLUE
    ax.axvline(result.threshold, color=figures.GREY, lw=0.9, ls=(0, (4, 3)))
    # Beside the tail where there is room between the two lines, else above the curve.
    before = result.threshold < shown < result.threshold + 0.25 * (right - left)
    ax.annotate(
        f"threshold {result.threshold:.3g}\n(level {result.alpha:g})",
        (result.threshold, (1.06 if before else 0.62) * top), (-4 if before else 4, 0),
        textcoords="offset points", color=figures.GREY, fontsize=8,
        ha="right" if before else "left",
    )  # fmt: skip
    ax.plot([shown, shown], [0, 1.17 * top], color=colour, lw=2.0)
    beside = shown > left + 0.7 * (right - left)
    ax.annotate(
        f"{result.label} = {result.statistic:.3g}{' →' * off_scale}\n{_p(result.pvalue)}",
        (shown, 1.17 * top), (-4 if beside else 4, 0), textcoords="offset points",
        va="top", color=colour, ha="right" if beside else "left",
    )  # fmt: skip
    ax.set(xlim=(left, right), ylim=(0.0, 1.2 * top), yticks=[], xlabel=result.label)
    ax.spines["left"].set_visible(False)
    ax.set_title("What a normal sample of this size gives, and this one")


def _p(p: float) -> str:
    return "p < 1e-300" if p < 1e-300 else f"p = {p:.2g}"


def distances(ax: Any, squared: np.ndarray, n: int, d: int, null: str) -> None:
    """Q–Q plot of the rows' Mahalanobis distances with a pointwise 95 % band."""
    law = distance_law(n, d, null)
    ranks = np.arange(1, n + 1)
    if n > _SHOWN:
        thin = np.linspace(1, n, _SHOWN // 2).astype(int)
        ranks = np.unique(np.concatenate([thin, ranks[-_SHOWN // 2 :]]))
    observed = np.sqrt(np.sort(squared)[ranks - 1])
    expected = np.sqrt(law.ppf((ranks - 0.5) / n))
    band = [np.sqrt(law.ppf(stats.beta.ppf(q, ranks, n + 1 - ranks))) for q in (0.025, 0.975)]
    ax.fill_between(expected, *band, color=figures.PALE, alpha=0.7, lw=0, label="95 % pointwise")
    ax.plot(expected, expected, color=figures.GREY, lw=0.9)
    out = (observed < band[0]) | (observed > band[1])
    ax.plot(expected[~out], observed[~out], ".", ms=3.5, color=figures.BLUE)
    ax.plot(expected[out], observed[out], ".", ms=3.5, color=figures.RED)
    largest = max(float(observed[-1]), float(expected[-1]))
    if largest > 6.0 * float(expected[-1]):
        ax.set_yscale("log")
    ax.set(xlabel="distance expected of a normal sample", ylabel="Mahalanobis distance of the rows")
    ax.set_title("Distances of the rows from the centre")
    ax.legend(loc="upper left", fontsize=8)

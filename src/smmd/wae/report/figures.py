"""The report's figures: training curves with bands, Q–Q plots, scatter plots of codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from smmd.figures import BLUE, GREY, INK, PALE, RED, encode, look
from smmd.wae.data import Dataset
from smmd.wae.evaluation import Evaluation
from smmd.wae.report import labels

#: A point in each of so many places of a Q–Q plot; more would only make the page heavier.
QUANTILES = 200
#: Q–Q plots of at most this many axes, and dots in a scatter plot.
MOST_PLOTS, MOST_DOTS = 16, 4000


def qq_axes(codes: np.ndarray, evaluation: Evaluation) -> bytes:
    """A Q–Q plot of each axis against N(0, 1), with the band that 99 % of normal samples' points
    keep, one point at a time."""
    d = codes.shape[1]
    shown = range(d)
    if d > MOST_PLOTS:
        worst = sorted(range(d), key=lambda k: -evaluation.axes[k].smmd)[:MOST_PLOTS]
        shown = sorted(worst)  # type: ignore[assignment]
    columns = min(4, len(shown))
    rows = -(-len(shown) // columns)
    n = len(codes)
    level = _levels(n)
    expected = special.ndtri(level)
    low, high = (special.ndtri(_order_band(level, n, p)) for p in (0.005, 0.995))
    with look() as plt:
        figure, grid = plt.subplots(
            rows,
            columns,
            figsize=(2.3 * columns, 2.15 * rows),
            squeeze=False,
            sharex=True,
            sharey=True,
        )
        for place, ax in enumerate(grid.flat):
            if place >= len(shown):
                ax.axis("off")
                continue
            axis = evaluation.axes[shown[place]]
            ax.fill_between(expected, low, high, color=PALE, lw=0)
            ax.plot([-4.5, 4.5], [-4.5, 4.5], color=GREY, lw=0.6)
            found = np.quantile(codes[:, shown[place]], level, method="hazen")
            ax.plot(expected, found, ".", ms=3, color=RED if axis.departs else BLUE)
            ax.set(xlim=(-4.2, 4.2), ylim=(-4.2, 4.2), xticks=(-3, 0, 3), yticks=(-3, 0, 3))
            title = f"z{axis.axis}   SMMD² {axis.smmd:.1f}".replace("-", "−")
            ax.set_title(title, color=RED if axis.departs else INK)
        figure.supxlabel("quantile of N(0, 1)", fontsize=9)
        figure.supylabel("quantile of the codes", fontsize=9)
        return _done(plt, figure)


def qq_radius(codes: np.ndarray) -> bytes:
    """Distances from the origin against those of N(0, I): the root of χ²_d."""
    n, d = codes.shape
    level = _levels(n)

    def root(p: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(stats.chi2.ppf(p, d)))

    expected = root(level)
    found = np.sort(np.linalg.norm(codes, axis=1))
    middle = np.quantile(found, level, method="hazen")
    with look() as plt:
        figure, ax = plt.subplots(figsize=(3.3, 3.2))
        band = [root(_order_band(level, n, p)) for p in (0.005, 0.995)]
        ax.fill_between(expected, *band, color=PALE, lw=0)
        top = 1.05 * max(float(expected[-1]), float(found[-1]))
        ax.plot([0, top], [0, top], color=GREY, lw=0.6)
        ax.plot(expected, middle, ".", ms=3, color=BLUE)
        last = np.arange(max(0, n - 10), n)
        ax.plot(root((last + 0.5) / n), found[last], ".", ms=3, color=BLUE)
        low = 0.9 * min(float(expected[0]), float(found[0]))
        ax.set(xlim=(low, top), ylim=(low, top))
        ax.set(xlabel="distance under N(0, I)", ylabel="distance of the codes")
        return _done(plt, figure)


def scatter(data: Dataset, codes: np.ndarray, evaluation: Evaluation) -> bytes:
    """Codes in the first two axes and in the two that depart most, by class."""
    d = codes.shape[1]
    if d == 1:
        return _histogram(codes[:, 0])
    worst = sorted(sorted(range(d), key=lambda k: -evaluation.axes[k].smmd)[:2])
    pairs = [(0, 1)] if d == 2 or worst == [0, 1] else [(0, 1), (worst[0], worst[1])]
    rows = np.arange(len(codes))
    if len(rows) > MOST_DOTS:
        rows = np.linspace(0, len(rows) - 1, MOST_DOTS).astype(int)
    places = np.array(labels.colour_indices(data, rows))
    reach = max(3.3, min(6.0, 1.03 * float(np.abs(codes[rows]).max())))
    with look() as plt:
        width = 4.1 * len(pairs) + (0.6 if data.test_labels is not None else 0)
        figure, grid = plt.subplots(1, len(pairs), figsize=(width, 4.1), squeeze=False)
        for ax, (a, b) in zip(grid.flat, pairs, strict=True):
            for place in np.unique(places):
                chosen = rows[places == place]
                ax.plot(
                    codes[chosen, a],
                    codes[chosen, b],
                    ".",
                    ms=3.6,
                    alpha=0.7,
                    mew=0,
                    color=labels.PALETTE[place],
                    rasterized=True,
                )
            for radius in (1, 2, 3):
                ax.add_patch(plt.Circle((0, 0), radius, fill=False, ec=INK, lw=0.5, alpha=0.7))
            ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
            ax.set(xlabel=f"z{a + 1}", ylabel=f"z{b + 1}")
            if (a, b) != (0, 1):
                ax.set_title("the two axes that depart most")
        _legend(figure, data, plt)
        return _done(plt, figure)


def _legend(figure: Any, data: Dataset, plt: Any) -> None:
    if data.test_labels is None:
        return
    present = np.unique(data.test_labels)
    if len(present) > len(labels.PALETTE):
        return
    handles = [
        plt.Line2D([], [], ls="", marker="o", ms=4, color=labels.PALETTE[k], label=label)
        for k, label in enumerate(labels.name_of(data, int(label)) for label in present)
    ]
    figure.legend(handles=handles, loc="outside right center", handletextpad=0.1)


def _histogram(column: np.ndarray) -> bytes:
    with look() as plt:
        figure, ax = plt.subplots(figsize=(5.2, 2.8))
        ax.hist(column, bins=60, range=(-4.5, 4.5), density=True, color=PALE)
        x = np.linspace(-4.5, 4.5, 200)
        ax.plot(x, np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi), color=BLUE, label="N(0, 1)")
        ax.set(xlabel="z1", ylabel="density", xlim=(-4.5, 4.5))
        ax.legend()
        return _done(plt, figure)


def seeds(evaluations: Sequence[Evaluation]) -> bytes:
    """A dot for each seed: test error, B with its exact band, kurtosis, samples' distance."""
    low, high = evaluations[0].b.exact
    shown: tuple[tuple[str, list[float], tuple[float, float] | None], ...] = (
        ("test MSE", [one.mse for one in evaluations], None),
        ("B-statistic", [one.b.value for one in evaluations], (low, high)),
        (
            "normalized kurtosis",
            [one.kurtosis for one in evaluations],
            (-3 * evaluations[0].kurtosis_sd, 3 * evaluations[0].kurtosis_sd),
        ),
        ("Fréchet distance, samples", [one.quality.samples for one in evaluations], None),
    )
    with look() as plt:
        figure, grid = plt.subplots(1, len(shown), figsize=(9.6, 2.5))
        for ax, (title, values, band) in zip(grid, shown, strict=True):
            if band is not None:
                ax.axhspan(*band, color=PALE, lw=0)
            ax.axhline(float(np.mean(values)), color=GREY, lw=0.8)
            ax.plot(range(len(values)), values, "o", ms=5, color=BLUE)
            ax.set_title(title)
            ax.set_xticks(range(len(values)), [str(one.seed) for one in evaluations])
            ax.set(xlabel="seed", xlim=(-0.6, len(values) - 0.4))
        return _done(plt, figure)


def _levels(n: int) -> np.ndarray:
    """Probabilities of a Q–Q plot's points, closer together in the tails."""
    if n <= QUANTILES:
        return np.asarray((np.arange(n) + 0.5) / n)
    edge = special.ndtri(0.5 / n)
    return np.asarray(special.ndtr(np.linspace(edge, -edge, QUANTILES)))


def _order_band(level: np.ndarray, n: int, p: float) -> np.ndarray:
    """Quantile p of the order statistic at each level: Beta(k, n + 1 − k)."""
    k = level * n + 0.5
    return np.asarray(stats.beta.ppf(p, k, n + 1 - k))


def _done(plt: Any, figure: Any) -> bytes:
    picture = encode(figure)["svg"]
    plt.close(figure)
    return picture

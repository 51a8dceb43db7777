"""The figure of a diagnosis: its columns, its worst direction, its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from smmd import figures
from smmd.normality.diagnosis_text import combination

if TYPE_CHECKING:
    from smmd.normality.diagnosis import Diagnosis

_COLUMNS_SHOWN = 12
_POINTS_SHOWN = 4000


def of(diagnosis: Diagnosis) -> Any:
    """Three panels; where there are no directions, two."""
    panels = [_columns, _direction, _rows] if diagnosis.directions else [_columns, _rows]
    with figures.look() as plt:
        figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.5))
        for draw, ax in zip(panels, axes, strict=True):
            draw(ax, diagnosis)
        plt.close(figure)
    return figure


def _columns(ax: Any, diagnosis: Diagnosis) -> None:
    """Q–Q curves of the columns, one above the other: straight where normal."""
    listed = sorted(diagnosis.columns, key=lambda column: column.pvalue)[:_COLUMNS_SHOWN]
    names = list(diagnosis.names)
    n = len(diagnosis.values)
    ranks = np.unique(np.linspace(0, n - 1, min(n, 400)).astype(int))
    expected = stats.norm.ppf((ranks + 0.5) / n)
    for height, column in enumerate(reversed(listed)):
        values = np.sort(diagnosis.values[:, names.index(column.name)])
        spread = values.std(ddof=1) or 1.0
        curve = (values[ranks] - values.mean()) / spread
        colour = figures.RED if column.rejected else figures.BLUE
        # Departure from the straight line, on a scale shared by all columns.
        ax.plot(expected, height + np.clip((curve - expected) / 2.0, -0.6, 0.6), color=colour)
        ax.axhline(height, color=figures.PALE, lw=0.8, zorder=0)
    ax.set_yticks(range(len(listed)))
    ax.set_yticklabels([_short(column.name) for column in reversed(listed)])
    ax.set_ylim(-0.7, len(listed) - 0.3)
    ax.set(xlabel="normal quantile")
    ax.set_title("Columns: departure from\nnormal quantiles")


def _short(name: str, limit: int = 14) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"


def _direction(ax: Any, diagnosis: Diagnosis) -> None:
    worst = diagnosis.directions[0]
    line = diagnosis.values @ worst.weights
    spread = line.std(ddof=1) or 1.0
    line = (line - line.mean()) / spread
    low, high = np.clip([line.min(), line.max()], -6.0, 6.0)
    bins = np.linspace(low, high, int(np.clip(2.0 * len(line) ** 0.4, 10, 60)))
    colour = figures.RED if worst.adjusted <= diagnosis.test.alpha else figures.BLUE
    ax.hist(line, bins=bins, density=True, color=colour, alpha=0.35)
    x = np.linspace(min(low, -3.0), max(high, 3.0), 300)
    ax.plot(x, stats.norm.pdf(x), color=figures.INK, label="normal")
    ax.set(yticks=[], xlabel=combination(worst, [_short(n) for n in diagnosis.names], limit=2))
    ax.spines["left"].set_visible(False)
    ax.legend(loc="upper right", fontsize=8)
    ax.set_title(f"The worst direction\n(p = {worst.pvalue:.2g} on rows not searched)")


def _rows(ax: Any, diagnosis: Diagnosis) -> None:
    parts = diagnosis.parts
    n = len(parts.share)
    shown = np.arange(n)
    if n > _POINTS_SHOWN:
        striking = np.argsort(-parts.distance)[:200]
        shown = np.unique(np.concatenate([np.linspace(0, n - 1, _POINTS_SHOWN).astype(int),
                                          striking]))  # fmt: skip
    far = parts.pvalue <= 0.01
    for group, colour in ((~far, figures.BLUE), (far, figures.RED)):
        some = shown[group[shown]]
        ax.plot(parts.distance[some], parts.share[some], ".", ms=3.5, color=colour)
    ax.axhline(0.0, color=figures.GREY, lw=0.7)
    marked = {*np.argsort(-parts.share)[:1], *np.flatnonzero(far)[:3]}
    for k in marked:
        ax.annotate(str(diagnosis.labels[k]), (parts.distance[k], parts.share[k]), (3, 3),
                    textcoords="offset points", fontsize=7, color=figures.GREY)  # fmt: skip
    if parts.distance.max() > 8.0 * np.median(parts.distance):
        ax.set_xscale("log")
    ax.set(xlabel="Mahalanobis distance", ylabel="what the row adds to SMMD²")
    title = "Rows: too much mass around\nthose above the line"
    ax.set_title(title)

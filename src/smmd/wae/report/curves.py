"""Training curves, from the log's rows, with the bands that normal codes keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from smmd.figures import BLUE, GREEN, GREY, INK, PALE, RED, encode, look

Log = Sequence[Mapping[str, Any]]

CAPTION = (
    "Left: reconstruction error of training and test images; grey lines mark new learning rates. "
    "Middle: the B-statistic of test codes in each epoch, with its three-sigma band. "
    "Right: the E-statistic of training batches with its band, each batch counted by its own law "
    "(a batch that is normalized by its own mean and variance lies lower than one that is not)."
)


def draw(log: Log) -> bytes:
    """Errors, B- and E-statistic by epoch."""
    with look() as plt:
        figure, (errors, b, e) = plt.subplots(1, 3, figsize=(9.6, 2.7))
        _line(errors, log, "mse", BLUE, "training")
        _line(errors, log, "val_mse", RED, "test")
        errors.set_yscale("log")
        _plain_ticks(errors, plt)
        errors.legend()
        errors.set_title("mean squared error")
        _band(b, log, "b", GREEN)
        b.set_title("B-statistic, test")
        _band(e, log, "e", BLUE)
        e.set_title("E-statistic, training")
        changes = _rate_changes(log)
        for ax in (errors, b, e):
            for epoch in changes:
                ax.axvline(epoch, color=PALE, lw=0.8, zorder=0)
            ax.set_xlabel("epoch")
            ax.xaxis.set_major_locator(plt.MaxNLocator(5, integer=True, min_n_ticks=1))
        picture = encode(figure)["svg"]
        plt.close(figure)
        return picture


def _line(ax: Any, log: Log, name: str, colour: str, label: str | None = None) -> np.ndarray:
    epochs, values = _column(log, name)
    marker = "." if len(epochs) < 30 else None
    ax.plot(epochs, values, color=colour, label=label, marker=marker, ms=4)
    return values


def _band(ax: Any, log: Log, name: str, colour: str) -> None:
    """A statistic and the band of its three sigmas; early values far above are cut off."""
    epochs, low = _column(log, f"{name}_low")
    _, high = _column(log, f"{name}_high")
    if len(epochs) == len(low) == len(high) > 0:
        if len(epochs) == 1:
            epochs, low, high = epochs + np.array([-0.5, 0.5]), low.repeat(2), high.repeat(2)
        ax.fill_between(epochs, low, high, color=PALE, lw=0)
    ax.axhline(0.0, color=GREY, lw=0.6)
    values = _line(ax, log, name, colour)
    if len(values) and len(high):
        settled = np.sort(values)[: max(1, int(0.8 * len(values)))]
        top = max(4.0 * float(high.max()), 1.15 * float(settled.max()))
        if values.max() > 1.3 * top:
            bottom = min(1.5 * float(low.min()), float(values.min()))
            ax.set_ylim(bottom - 0.05 * (top - bottom), top)
            ax.annotate(
                f"up to {values.max():.3g}",
                (0.98, 0.98),
                xycoords="axes fraction",
                ha="right",
                va="top",
                color=INK,
                fontsize=8,
            )


def _plain_ticks(ax: Any, plt: Any) -> None:
    """0.02 instead of 2 × 10⁻²."""
    low, high = ax.get_ylim()
    if high < 10 * low:
        ax.yaxis.set_major_locator(plt.LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 6, 8), numticks=6))
        ax.yaxis.set_minor_locator(plt.NullLocator())
    ax.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))


def _rate_changes(log: Log) -> list[float]:
    """Where an epoch's learning rate is not that of the epoch before."""
    epochs, rates = _column(log, "rate")
    return [float(epochs[k]) - 0.5 for k in range(1, len(rates)) if rates[k] != rates[k - 1]]


def _column(log: Log, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Epochs and values of one field, where it is a number."""
    found = [(row["epoch"], row[name]) for row in log if isinstance(row.get(name), int | float)]
    pairs = np.array(found, dtype=float).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    return pairs[:, 0], pairs[:, 1]

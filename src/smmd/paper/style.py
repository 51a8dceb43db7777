"""One restrained look for all figures: thin lines, four colours that everyone can tell apart."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from smmd.errors import MissingExtra

INK, GREY, PALE = "#22303c", "#8a949c", "#d5dade"
BLUE, RED, GREEN, GOLD = "#2f6690", "#c0392b", "#4d8b57", "#b7791f"
#: From dimension or scale 1 up to 32: light to dark.
STEPS = ("#a9c4d8", "#83a9c6", "#5c8db3", "#3b729d", "#255a84", "#12395a", "#071c30")

_RC: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 130,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "svg.fonttype": "path",
    "svg.hashsalt": "smmd",
}


def pyplot() -> Any:
    """matplotlib without a display."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("Drawing the paper's figures", "plot", "matplotlib") from None
    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot as plt

    return plt


@contextmanager
def look() -> Iterator[Any]:
    """Within the block figures have the look; yields ``matplotlib.pyplot``."""
    plt = pyplot()
    with plt.rc_context(_RC):
        yield plt


def encode(figure: Any) -> dict[str, bytes]:
    """The figure as SVG and PNG, the same bytes for the same figure."""
    found = {}
    for kind in ("svg", "png"):
        stream = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(stream, format=kind, metadata=metadata)
        found[kind] = stream.getvalue()
    return found


def boxplots(plt: Any, shown: dict[str, Any]) -> Any:
    """A box for N(0, I) and one for the alternative, each method in units of its own spread."""
    methods = shown["methods"]
    figure, axes = plt.subplots(1, len(methods), figsize=(1.75 * len(methods), 2.9))
    for ax, one in zip(axes, methods, strict=True):
        for place, (five, colour) in enumerate(zip(one["boxes"], (BLUE, RED), strict=True)):
            low, q1, middle, q3, high = five
            ax.plot([place, place], [low, q1], color=colour, linewidth=0.9)
            ax.plot([place, place], [q3, high], color=colour, linewidth=0.9)
            ax.bar(place, q3 - q1, 0.5, q1, color=colour, alpha=0.25, edgecolor=colour)
            ax.plot([place - 0.25, place + 0.25], [middle, middle], color=colour)
        ax.set_xticks([0, 1], ["N(0, I)", shown["alternative"]])
        ax.set_xlim(-0.6, 1.6)
        ax.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2))
        ax.set_title(f"{one['label']}\ns = {one['scale']}, τ = {one['tau']:.2f}", color=INK)
    axes[0].set_ylabel("estimate of MMD²")
    return figure

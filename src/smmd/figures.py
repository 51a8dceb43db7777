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
        raise MissingExtra("Drawing a figure", "plot", "matplotlib") from None
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

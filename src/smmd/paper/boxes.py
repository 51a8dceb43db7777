"""The box plot of a discrimination experiment."""

from __future__ import annotations

from typing import Any

from smmd.figures import BLUE, INK, RED


def boxplots(plt: Any, shown: dict[str, Any]) -> Any:
    """A box for N(0, I) and one for the alternative; whiskers span all of the values."""
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

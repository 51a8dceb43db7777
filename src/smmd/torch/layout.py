"""What the axes of a tensor of codes mean.

"rows"       (…, n, d): points on axis −2, coordinates on axis −1; each of the leading axes'
             entries is a sample of its own.  The default.
"images"     (n, …): all that follows axis 0 is one code, d = c·h·w for (n, c, h, w).
"positions"  (n, c, …): the c channels at each position of each image are a point of their own,
             as in BatchNorm2d: n·h·w points in d = c dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from torch import Tensor

Restore = Callable[[Tensor], Tensor]

Layout = Literal["rows", "images", "positions"]


def check_layout(layout: str) -> None:
    """Refuse a layout that does not exist when the module is made, not when it is called."""
    if layout not in get_args(Layout):
        known = ", ".join(map(repr, get_args(Layout)))
        raise ValueError(f"layout must be one of {known}; got {layout!r}")


def to_rows(x: Tensor, layout: Layout, name: str = "z") -> tuple[Tensor, Restore]:
    """``x`` as (…, n, d), and the way back to the shape it came in."""
    if layout == "rows":
        return x, lambda rows: rows
    shape = x.shape
    if x.ndim < 2:
        raise ValueError(f"{name} must have shape (n, c, ...), got {tuple(shape)}")
    if layout == "images":
        return x.flatten(1), lambda rows: rows.reshape(shape)
    last = x.movedim(1, -1)
    return last.flatten(0, -2), lambda rows: rows.reshape(last.shape).movedim(-1, 1)

"""All items, in the order in which the paper comes to them."""

from __future__ import annotations

from collections.abc import Sequence

from smmd.paper import (
    codenorm_effect,
    codenorm_removal,
    discrimination_mnist,
    discrimination_uniform,
    intervals,
    optimal_shift,
    outlier_delta,
    outliers,
    random_encoders,
    thresholds,
    variance_curve,
    violin,
    wae,
)
from smmd.paper.items import Item

ITEMS: tuple[Item, ...] = (
    optimal_shift.ITEM,
    variance_curve.ITEM,
    intervals.ITEM,
    codenorm_effect.ITEM,
    outlier_delta.ITEM,
    violin.ITEM,
    discrimination_uniform.ITEM,
    discrimination_mnist.ITEM,
    outliers.ITEM,
    wae.ITEM,
    codenorm_removal.ITEM,
    random_encoders.ITEM,
    thresholds.ITEM,
)


def named(names: Sequence[str] | None) -> tuple[Item, ...]:
    """The items of these names in the paper's order; None is all that need no training."""
    if names is None:
        return tuple(item for item in ITEMS if not item.needs_training)
    known = {item.name: item for item in ITEMS}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no item {name!r}; the items are {', '.join(known)}")
    return tuple(item for item in ITEMS if item.name in names)

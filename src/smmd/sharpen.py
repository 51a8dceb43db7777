"""Where SMMD² would lose digits to a far point, notice it and compute the value again."""

from __future__ import annotations

from typing import Any

import numpy as np

from smmd import arrays, pairs
from smmd.arrays import Array
from smmd.closed_form import Terms
from smmd.pairs.centred import centred_mean, centred_mean_of_points
from smmd.radial import Exponentials
from smmd.samples import Sample

#: How far off a term may be, relatively, in float64.
UNIT = 2.0**-50
#: How many kernel values SMMD² may be computed again from: about a second.
MOST_VALUES = 1 << 25


def loses(unit: float, size: Any, precise: bool) -> Any:
    """Whether terms of this size, each off by ``unit`` of itself, cost digits that are promised.

    ``precise``: the answer is float64.  ``size`` is the root of the terms' summed squares over n.
    """
    return unit * size > (1e-13 if precise else 1e-6)


def sharpened(value: Array, sample: Sample, terms: Terms) -> Array:
    """SMMD² of the samples in which large terms cancel, again and pair by pair.

    That needs a kernel wide enough to have a base, and a few points far out: the terms of ordinary
    points are as large as the statistic's own noise, and their roundings average out.  Only the
    value is replaced: derivatives do not suffer.  While tracing, on a GPU, and where it would take
    more than ``MOST_VALUES`` kernel values, the value stays as it was.
    """
    parts = terms.components
    n, d = sample.n, sample.d
    work = n * n * (len(parts) + d if sample.var is None else len(parts) * d)
    if not arrays.is_concrete(sample.z) or work > MOST_VALUES or not sample.z.shape[0]:
        return value
    wide = arrays.to_numpy(parts.base, "the kernel's base") if _varies(parts) else parts.base
    if not np.any(wide):
        return value
    xp, z = sample.xp, sample.z
    if sample.var is None:
        cross = pairs.radial_value(terms.cross, xp.sum(z * z, axis=-1))
    else:
        cross = pairs.overlap_terms(xp, z * z, 1.0 + sample.var, parts)
    # Under normality the constant is the mean of these terms, whose roundings are independent.
    off = arrays.to_numpy(cross, "SMMD²") - np.asarray(_constant(terms))[..., None]
    size = np.linalg.norm(off.astype(np.float64), axis=-1) / n
    now = np.asarray(arrays.to_numpy(value, "SMMD²"), dtype=np.float64)
    precise = "float64" in str(sample.dtype)
    unit = UNIT if "float64" in str(z.dtype) else 2.0**-21
    lost = loses(unit, size / np.maximum(1.0, np.abs(now)), precise)
    if not np.any(lost):
        return value
    change = np.zeros_like(now)
    points = np.asarray(arrays.to_numpy(z, "SMMD²"), dtype=np.float64)
    spread = None if sample.var is None else arrays.to_numpy(sample.var, "SMMD²")
    for at in zip(*np.nonzero(np.atleast_1d(lost)), strict=True):
        index = at if lost.ndim else ()
        mixture = scaled_mixture(parts, index)
        if spread is None:
            again = centred_mean_of_points(points[index], mixture)
        else:
            again = centred_mean(points[index], spread[index].astype(np.float64), mixture)
        change[index] = again - now[index]
    return value + arrays.like(change, z, z.dtype)


def _constant(terms: Terms) -> np.ndarray | float:
    constant = terms.constant
    return constant if isinstance(constant, float) else arrays.to_numpy(constant, "SMMD²")


def _varies(parts: Exponentials) -> bool:
    """Whether the width follows the data."""
    return not isinstance(parts.a, tuple)


def scaled_mixture(parts: Exponentials, index: tuple[int, ...] = ()) -> list[tuple[float, float]]:
    """(a_q, log weight_q) of sample ``index``: with a base the weight holds e^−L, else it is 1."""
    fields = parts.parameters()
    if _varies(parts):
        fields = tuple(arrays.to_numpy(v, "the kernel's width")[index] for v in fields)
    a, offset, weight, _ = (np.asarray(v, dtype=np.float64) for v in fields)
    tops = np.log(weight) + offset
    return list(zip(a.ravel().tolist(), tops.ravel().tolist(), strict=True))

"""Where SMMD² would lose digits to one far point, notice it and compute the value again."""

from __future__ import annotations

import numpy as np

from smmd import arrays, pairs
from smmd.arrays import Array
from smmd.closed_form import Terms
from smmd.pairs.centred import centred_mean
from smmd.radial import Exponentials
from smmd.samples import Sample

#: Up to how many points SMMD² is computed again.
MOST_POINTS = 4096


def sharpened(value: Array, sample: Sample, terms: Terms) -> Array:
    """SMMD² of the samples in which large terms cancel, again and pair by pair.

    That needs a kernel wide enough to have a base, and a single point far out.  Only the value is
    replaced: derivatives do not suffer.  While tracing, on a GPU, and beyond ``MOST_POINTS`` points
    the value stays as it was.
    """
    parts = terms.components
    if not arrays.is_concrete(sample.z) or sample.n > MOST_POINTS or not sample.z.shape[0]:
        return value
    wide = arrays.to_numpy(parts.base, "the kernel's base") if _varies(parts) else parts.base
    if not np.any(wide):
        return value
    xp, z = sample.xp, sample.z
    if sample.var is None:
        cross = pairs.radial_value(terms.cross, xp.sum(z * z, axis=-1))
    else:
        cross = pairs.overlap_terms(xp, z * z, 1.0 + sample.var, parts)
    size = arrays.to_numpy(xp.mean(xp.abs(cross), axis=-1), "SMMD²")
    now = np.asarray(arrays.to_numpy(value, "SMMD²"), dtype=np.float64)
    precise = "float64" in str(sample.dtype)
    unit = 2.0**-50 if "float64" in str(z.dtype) else 2.0**-21
    lost = unit * size > (1e-13 if precise else 1e-6) * np.maximum(1.0, np.abs(now))
    if not np.any(lost):
        return value
    change = np.zeros_like(now)
    points = np.asarray(arrays.to_numpy(z, "SMMD²"), dtype=np.float64)
    spread = None if sample.var is None else arrays.to_numpy(sample.var, "SMMD²")
    for at in zip(*np.nonzero(np.atleast_1d(lost)), strict=True):
        index = at if lost.ndim else ()
        mixture = scaled_mixture(parts, index)
        here = None if spread is None else np.asarray(spread[index], dtype=np.float64)
        change[index] = centred_mean(points[index], here, mixture) - now[index]
    return value + arrays.like(change, z, z.dtype)


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

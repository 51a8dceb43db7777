"""Two consequences of the closed form (paper, sections 2 and 3.2): the best translation of a
sample, and how little one far point changes MMD²."""

from __future__ import annotations

from typing import Any

import numpy as np

from smmd import arrays, measure, pairs, samples
from smmd.arrays import Array
from smmd.kernels import Gaussian, Kernel, as_kernel
from smmd.radial import Exponentials, Radial

#: From how many of the points the search for modes starts.
_STARTS = 256
_STEPS = 500


def optimal_shift(z: Any, kernel: Kernel = Gaussian()) -> Array:
    """The translation t that minimizes MMD²(z + t): not the one that centres the mean.

    Only the cross term depends on t.  It is a kernel density estimate of squared width 1 + γ²
    at −t, so the best shift moves the highest *mode* of that estimate to the origin.  There may
    be several modes; all are climbed to, from up to 256 of the points and from the mean, and the
    highest is taken.  Returns shape (..., d).
    """
    sample = samples.take(z, minimum=1, name="z")
    values = arrays.to_numpy(sample.z, "optimal_shift searches for modes")
    flat = values.reshape(-1, sample.n, sample.d)
    shifts = -np.stack([_highest_mode(points, as_kernel(kernel)) for points in flat])
    shifts = shifts.reshape(*values.shape[:-2], sample.d)
    return arrays.saturating_cast(arrays.like(shifts, sample.z, sample.z.dtype), sample.dtype)


def _highest_mode(points: np.ndarray, kernel: Kernel) -> np.ndarray:
    """The m that maximizes Σ_i E_x k(x, z_i − m), by mean shift from many starts."""
    radial = measure.terms_for(kernel, samples.take(points)).cross
    if isinstance(radial, Exponentials) and not isinstance(radial.a, tuple):
        radial = Exponentials(*(tuple(np.ravel(v).tolist()) for v in radial.parameters()))
    n = len(points)
    chosen = points if n <= _STARTS else points[np.linspace(0, n - 1, _STARTS).astype(int)]
    at = np.concatenate([points.mean(axis=0, keepdims=True), chosen])
    moved = np.inf
    for _ in range(_STEPS):
        pull = _slopes(points, at, radial)
        weight = pull.sum(axis=1, keepdims=True)
        new = np.where(weight < 0.0, (pull @ points) / np.where(weight < 0.0, weight, 1.0), at)
        moved = float(np.max(np.abs(new - at)))
        at = new
        if moved <= 1e-13 * (1.0 + float(np.max(np.abs(at)))):
            break
    heights = np.array([radial.value(np, ((points - m) ** 2).sum(axis=1)).sum() for m in at])
    return np.asarray(_polish(points, at[int(np.argmax(heights))], radial))


def _slopes(points: np.ndarray, at: np.ndarray, radial: Radial) -> np.ndarray:
    return np.stack([radial.slope(np, ((points - m) ** 2).sum(axis=1)) for m in at])


def _polish(points: np.ndarray, m: np.ndarray, radial: Radial) -> np.ndarray:
    """Newton steps, where mean shift has become slow; kept only while they climb."""
    for _ in range(20):
        diff = m - points
        r2 = (diff**2).sum(axis=1)
        slope, bend = radial.slope(np, r2), radial.curvature(np, r2)
        gradient = 2.0 * slope @ diff
        hessian = 2.0 * slope.sum() * np.eye(len(m)) + 4.0 * (diff.T * bend) @ diff
        if np.max(np.linalg.eigvalsh(hessian)) >= 0.0:
            return m
        step = np.linalg.solve(hessian, gradient)
        if np.max(np.abs(step)) > 0.1 * (1.0 + np.max(np.abs(m))):
            return m
        m = m - step
        if np.max(np.abs(step)) <= 1e-15 * (1.0 + np.max(np.abs(m))):
            break
    return m


def outlier_delta(z: Any, kernel: Kernel = Gaussian(), *, index: int = 0, to: Any = None) -> Array:
    """ΔMMD²_u when point ``index`` is moved to ``to`` (shape (..., d)), or to infinity.

    (2/n)[ E k(x, z_1) − mean_j k(z_1, z_j) ] minus the same at the destination, where it
    vanishes as the destination recedes.  Under normality its mean is zero: MMD barely sees a
    far outlier (paper, section 3.2).
    """
    sample = samples.take(z, minimum=2, why="moving one point among others", name="z")
    n, xp = sample.n, sample.xp
    if samples.whole_number("index", index, -n) >= n:
        raise ValueError(f"index must name one of the n={n} points, got {index}")
    index = int(index) % n
    terms = measure.terms_for(as_kernel(kernel), sample)
    rest = xp.concat([sample.z[..., :index, :], sample.z[..., index + 1 :, :]], axis=-2)

    def affinity(point: Array) -> Array:
        pull = xp.sum(pairs.row_sums(point[..., None, :], rest, terms.pair), axis=-1) / (n - 1)
        return terms.cross.value(xp, xp.sum(point * point, axis=-1)) - pull

    change = affinity(sample.z[..., index, :])
    if to is not None:
        change = change - affinity(_destination(to, sample))
    change = (2.0 / n) * change
    return arrays.saturating_cast(change, sample.dtype)


def _destination(to: Any, sample: samples.Sample) -> Array:
    """Where the point goes, in the sample's working type."""
    to = samples.as_floats(to, "to")
    if arrays.kind(to) != arrays.kind(sample.z) or to.shape[-1:] != sample.z.shape[-1:]:
        raise ValueError(
            f"to must be a {arrays.kind(sample.z)} array of shape (..., {sample.d}), got a "
            f"{arrays.kind(to)} array of shape {tuple(to.shape)}"
        )
    samples.check_finite(to, "to")
    return arrays.astype(to, sample.z.dtype)

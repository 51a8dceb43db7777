"""Older yardsticks beside SMMD: Mardia's moments as auto-encoder papers use them, and τ."""

from __future__ import annotations

from typing import Any, NamedTuple

from smmd import samples
from smmd.arrays import Array, astype, is_concrete, kind, namespace, saturating_cast, work_dtype

#: How many numbers a block of rows may hold.
_BLOCK_NUMBERS = 1 << 22


class Mardia(NamedTuple):
    """Skewness and normalized kurtosis; both 0 for N(0, I) in the limit of many points."""

    skewness: Array
    kurtosis: Array


def mardia(x: Any) -> Mardia:
    """Mardia's moments about N(0, I), as defined for Cramér–Wold auto-encoders.

    skewness (1/n²) Σ_jk (x_j·x_k)³, whose mean under N(0, I) is d(d+2)(d+4)/n, and normalized
    kurtosis mean‖x‖⁴ − d(d+2).  The sample is neither centred nor whitened: for a test of
    normality with unknown mean and covariance see ``normality_test``.
    """
    sample = samples.take(x, name="x")
    xp, z, n, d = sample.xp, sample.z, sample.n, sample.d
    norms = xp.sum(z * z, axis=-1)
    kurtosis = xp.mean(norms * norms, axis=-1) - float(d * (d + 2))
    # ‖mean of x ⊗ x ⊗ x‖² is the same sum; it is cheaper where d² < n.
    cubes = _third_moment_norm(xp, z) if d * d < n else _sum_of_cubes(xp, z)
    return Mardia(
        saturating_cast(cubes / (n * n), sample.dtype), saturating_cast(kurtosis, sample.dtype)
    )


def _sum_of_cubes(xp: Any, z: Array) -> Array:
    n = z.shape[-2]
    step = max(1, _BLOCK_NUMBERS // n)
    turned = xp.matrix_transpose(z)
    parts = [
        xp.sum((z[..., i : i + step, :] @ turned) ** 3, axis=(-2, -1)) for i in range(0, n, step)
    ]
    return sum(parts[1:], parts[0])


def _third_moment_norm(xp: Any, z: Array) -> Array:
    n, d = z.shape[-2], z.shape[-1]
    step = max(1, _BLOCK_NUMBERS // (d * d))
    parts = []
    for i in range(0, n, step):
        rows = z[..., i : i + step, :]
        squares = xp.reshape(rows[..., :, None] * rows[..., None, :], (*rows.shape[:-1], d * d))
        parts.append(xp.matrix_transpose(squares) @ rows)
    total = sum(parts[1:], parts[0])
    return xp.sum(total * total, axis=(-2, -1))


def effect_size(a: Any, b: Any) -> Array:
    """τ of the paper, section 4: ``|mean a − mean b|`` over the mean of the standard deviations.

    Over the last axis; n−1 standard deviations.  Cohen's d pools the variances instead.
    """
    first, second = samples.as_floats(a, "a"), samples.as_floats(b, "b")
    for name, values in (("a", first), ("b", second)):
        if values.ndim < 1 or values.shape[-1] < 2:
            raise ValueError(
                f"{name} must hold at least 2 values on its last axis, got shape "
                f"{tuple(values.shape)}"
            )
        samples.check_finite(values, name)
    if kind(first) != kind(second) or first.shape[:-1] != second.shape[:-1]:
        raise ValueError(
            "a and b must be of one framework and, but for the last axis, one shape; got "
            f"{kind(first)} {tuple(first.shape)} and {kind(second)} {tuple(second.shape)}"
        )
    xp, work = namespace(first), work_dtype(first)
    means, spreads = [], []
    origin = astype(first, work)[..., :1]  # far from 0 the means alone would cancel
    for values in (astype(first, work) - origin, astype(second, work) - origin):
        mean = xp.mean(values, axis=-1, keepdims=True)
        squares = xp.sum((values - mean) ** 2, axis=-1) / (values.shape[-1] - 1)
        means.append(mean[..., 0])
        spreads.append(xp.sqrt(squares))
    spread = 0.5 * (spreads[0] + spreads[1])
    if is_concrete(first) and bool(xp.any(spread == 0)):
        raise ValueError(
            "a and b are both constant: a difference in standard deviations needs a spread"
        )
    tau = xp.abs(means[0] - means[1]) / spread
    return saturating_cast(tau, first.dtype)

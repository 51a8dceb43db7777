"""Taking in samples, and the pure functions that normalize them.

Samples are arrays of shape (…, n, d): leading batch dimensions, then points, then coordinates.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from smmd.arrays import Array, Namespace, astype, is_concrete, kind, namespace, work_dtype

#: Squared distances of points within these bounds are finite in float64.
_LARGEST = 1e150


@dataclass(frozen=True)
class Sample:
    """A checked sample, in the type that is computed in; ``dtype`` is the type to answer in.

    ``given`` is z as it came, of which sums over pairs may make use.
    """

    z: Array
    var: Array | None
    xp: Namespace
    dtype: Any
    given: Array

    @property
    def n(self) -> int:
        return int(self.z.shape[-2])

    @property
    def d(self) -> int:
        return int(self.z.shape[-1])


def as_plain(x: Any, name: str) -> Array:
    """``x`` as an array of its framework; whatever is none becomes a NumPy array.

    What a masked array hides becomes NaN, so that it is noticed.
    """
    if isinstance(x, np.ma.MaskedArray):
        return np.ma.filled(x.astype(np.float64), np.nan)
    if kind(x) == "torch" and x.layout != sys.modules["torch"].strided:
        raise TypeError(f"{name} is a sparse tensor ({x.layout}); pass {name}.to_dense()")
    if kind(x) not in ("", "numpy"):
        return x
    if hasattr(x, "toarray"):
        raise TypeError(f"{name} is a sparse {type(x).__name__}; pass {name}.toarray()")
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} is not a table of numbers: its rows differ in length") from error


def as_floats(x: Any, name: str) -> Array:
    """``x`` as a real floating array; integers and booleans become floats."""
    given, x = type(x).__name__, as_plain(x, name)
    xp, dtype = namespace(x), str(x.dtype)
    if "float8" in dtype or "float4" in dtype:
        raise TypeError(f"{name} is {dtype}, which only stores; convert it to float32 first")
    if "complex" in dtype:
        raise TypeError(
            f"{name} is complex ({dtype}); pass real coordinates, such as "
            f"concat([{name}.real, {name}.imag], -1)"
        )
    if "float" in dtype:
        return x
    if "int" in dtype or "bool" in dtype:
        if kind(x) == "torch":
            import torch

            return x.to(torch.get_default_dtype())
        return astype(x, xp.asarray(0.0).dtype)
    raise TypeError(
        f"{name} must hold real numbers, got {given} of dtype {dtype}"
        + (f"; if all of them are numbers, pass {name}.astype(float)" if given == "ndarray" else "")
    )


def whole_number(name: str, value: Any, least: int) -> int:
    """A count that is large enough; 10.0 and 1e3, as people write them, count too."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value // 1:
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)  # type: ignore[call-overload]


def broadcast_batch(first: Sample, second: Sample, names: str) -> None:
    """Refuse samples of different frameworks or dimensions, or whose batches do not broadcast."""
    kinds = [kind(s.z) for s in (first, second)]
    shapes = [tuple(s.z.shape) for s in (first, second)]
    lengths = zip(shapes[0][-3::-1], shapes[1][-3::-1], strict=False)  # of the batches, from behind
    fits = first.d == second.d and all(a == b or 1 in (a, b) for a, b in lengths)
    if not fits or kinds[0] != kinds[1]:
        raise ValueError(
            f"{names} must be of one framework and dimension, with batches that broadcast; got "
            f"{kinds[0]} {shapes[0]} and {kinds[1]} {shapes[1]}"
        )


def check_finite(x: Array, name: str) -> None:
    """Refuse NaN and infinity wherever values can be read without stalling a device.

    And numbers whose squares are infinite, in the only type that holds them.
    """
    if not is_concrete(x):
        return
    xp = namespace(x)
    finite = xp.isfinite(x)
    if not bool(xp.all(finite)):
        bad = int(x.size if isinstance(x.size, int) else x.numel()) - int(xp.sum(finite))
        raise ValueError(
            f"{name} holds {bad} NaN or infinite value{'s' if bad > 1 else ''}; "
            "remove those rows or fill them in before measuring"
        )
    if x.dtype == xp.float64 and bool(xp.any(xp.abs(x) > _LARGEST)):
        raise ValueError(
            f"{name} holds values beyond ±{_LARGEST:g}, whose squares float64 cannot hold; "
            "check their units, and rescale"
        )


def check_shape(x: Array, name: str, minimum: int, why: str) -> None:
    """Refuse what is not (…, n, d) with enough points."""
    if x.ndim < 2:
        hint = f"; for one-dimensional data pass {name}[:, None]" if x.ndim == 1 else ""
        raise ValueError(f"{name} must have shape (..., n, d), got {tuple(x.shape)}{hint}")
    if x.shape[-1] == 0:
        raise ValueError(f"{name} has no columns: its shape is {tuple(x.shape)}, d must be >= 1")
    if x.shape[-2] < minimum:
        raise ValueError(
            f"{name} has n={x.shape[-2]} points, but {why} needs at least {minimum}: "
            "pass more rows (points are on axis -2)"
        )


def take(
    z: Any, var: Any = None, *, minimum: int = 1, why: str = "a sample", name: str = "z"
) -> Sample:
    """Check a sample and bring it to the working type."""
    z = as_floats(z, name)
    check_shape(z, name, minimum, why)
    check_finite(z, name)
    xp, work = namespace(z), work_dtype(z)
    if var is not None:
        var = _variances(var, z, work)
    return Sample(astype(z, work), var, xp, z.dtype, z)


def _variances(var: Any, z: Array, work: Any) -> Array:
    var = as_floats(var, "var")
    if kind(var) != kind(z):
        raise TypeError(
            f"var is a {kind(var)} array but z a {kind(z)} array; convert one to the other"
        )
    xp, full = namespace(z), tuple(z.shape)
    if tuple(var.shape) not in (full, full[:-1]):
        raise ValueError(
            f"var must have the shape of z, {full}, or {full[:-1]} for one variance per point; "
            f"got {tuple(var.shape)}"
        )
    check_finite(var, "var")
    if is_concrete(var) and bool(xp.any(var < 0)):
        raise ValueError(
            f"var holds negative values (smallest {float(xp.min(var)):g}); "
            "it is the variance σ², not its logarithm"
        )
    var = astype(var, work)
    return var if var.ndim == z.ndim else xp.broadcast_to(var[..., None], full)


def moments(
    x: Array, var: Array | None = None, *, xp: Namespace = None, count: Any = None
) -> tuple[Array, Array, Array]:
    """Each coordinate's mean, the centred points, and the sum of squares about the mean.

    Of the points, or with ``var`` of the mixture Σ N(x_i, diag var_i) (paper, appendix A.2).  Axis
    −2 is kept, with length one.  Divided by n − 1 (points) or n (mixture) the last is a variance.
    ``xp`` and ``count`` (n) are for a framework that ``arrays`` does not know.
    """
    xp = namespace(x) if xp is None else xp
    # Without points, as on an idle rank, the mean is 0 and not 0/0.
    count = max(1, x.shape[-2]) if count is None else count
    mean = xp.sum(x, axis=-2, keepdims=True) / count
    centred = x - mean
    # A second centring removes the mean's own rounding, which matters far from the origin.
    rest = xp.sum(centred, axis=-2, keepdims=True) / count
    centred = centred - rest
    squares = centred * centred if var is None else centred * centred + var
    return mean + rest, centred, xp.sum(squares, axis=-2, keepdims=True)


def pooled_moments(counts: Array, means: Array, squares: Array) -> tuple[Array, Array, Array]:
    """The count, mean and sum of squares of several samples together, stacked on axis 0.

    Each sample's squares are about its own mean: the parallel axis theorem adds the rest.
    """
    xp = namespace(means)
    count = xp.sum(counts, axis=0)
    mean = xp.sum(counts * means, axis=0) / count
    between = counts * (means - mean) ** 2
    return count, mean, xp.sum(squares + between, axis=0)


def _check_spread(variance: Array, x: Array, name: str) -> None:
    if not is_concrete(x):
        return
    xp = namespace(x)
    largest = xp.max(xp.abs(x), axis=-2, keepdims=True)
    # Below this, the spread is the rounding error of the column's own values.
    floor = (4.0 * float(xp.finfo(x.dtype).eps) * largest) ** 2
    flat = variance <= floor
    if bool(xp.any(flat)):
        flags = xp.reshape(flat, (-1, flat.shape[-1]))
        columns = [k for k in range(flat.shape[-1]) if bool(xp.any(flags[:, k]))]
        shown = ", ".join(map(str, columns[:8])) + (", ..." if len(columns) > 8 else "")
        raise ValueError(
            f"{name} has constant column{'s' if len(columns) > 1 else ''} {shown}: "
            "their standard deviation is 0; drop them before normalizing"
        )


def standardize(x: Any) -> Array:
    """Centre each coordinate and divide by its n−1 standard deviation.

    >>> import numpy as np, smmd
    >>> z = smmd.standardize(np.array([[1.0], [2.0], [3.0]]))
    >>> z.ravel().tolist()
    [-1.0, 0.0, 1.0]
    """
    sample = take(x, minimum=2, why="a standard deviation", name="x")
    _, centred, squares = moments(sample.z)
    variance = squares / (sample.n - 1)
    _check_spread(variance, sample.z, "x")
    return astype(centred / sample.xp.sqrt(variance), sample.dtype)


def whiten(x: Any) -> Array:
    """Centre and multiply by the symmetric inverse root of the n−1 covariance matrix."""
    sample = take(x, minimum=2, why="a covariance matrix", name="x")
    n, d, xp = sample.n, sample.d, sample.xp
    if n <= d:
        raise ValueError(
            f"x has n={n} points in d={d} dimensions, so its covariance matrix is singular; "
            f"pass more than {d} rows, or project to fewer columns"
        )
    _, centred, squares = moments(sample.z)
    variance = squares / (n - 1)
    _check_spread(variance, sample.z, "x")
    # Scaling first keeps columns of very different units from spoiling the eigenvectors.
    scaled = centred / xp.sqrt(variance)
    turned = xp.matrix_transpose(scaled)
    values, vectors = xp.linalg.eigh(turned @ scaled / (n - 1))
    if is_concrete(sample.z):
        smallest = float(xp.min(values))
        if smallest <= d * float(xp.finfo(sample.z.dtype).eps) * 8:
            raise ValueError(
                "x has a singular covariance matrix (smallest eigenvalue of its correlation "
                f"matrix {smallest:.1e}): some columns are combinations of others; drop them"
            )
    white = (scaled @ vectors) / xp.sqrt(values)[..., None, :]
    return astype(white @ xp.matrix_transpose(vectors), sample.dtype)


def code_normalize(z: Any, *, var: Any = None) -> Any:
    """Code normalization (paper, section 3.2): zero mean and unit variance in each dimension.

    For deterministic codes, the n−1 standard deviation: the same as ``standardize``.  For random
    encoders ``code_normalize(mu, var=var)`` returns the pair (mu, var) normalized by the mean and
    variance of the batch's mixture of Gaussians, mean(mu² + σ²) − mean(mu)² (appendix A.2).
    """
    if var is None:
        return standardize(z)
    sample = take(z, var, minimum=1, why="a batch")
    assert sample.var is not None
    _, centred, squares = moments(sample.z, sample.var)
    spread = squares / sample.n
    _check_spread(spread, sample.z, "z")
    mean = astype(centred / sample.xp.sqrt(spread), sample.dtype)
    return mean, astype(sample.var / spread, sample.dtype)

"""Samplers of what is not normal, for `power`: by name, or fitted to data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from smmd.frames import as_table

#: ``sampler(rng, n)`` gives one sample (n, d).
Sampler = Callable[[np.random.Generator, int], np.ndarray]
_Shaped = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_normal(shape)


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.uniform(size=shape)


def _student(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_normal(shape) / np.sqrt(rng.chisquare(5.0, (shape[0], 1)) / 5.0)


def _student_columns(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_t(5.0, shape)


def _skewed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.chisquare(8.0, shape)


def _one_skewed(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    x = rng.standard_normal(shape)
    x[:, 0] = rng.standard_exponential(shape[0])
    return x


def _groups(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    x = rng.standard_normal(shape)
    x[:, 0] += np.where(rng.uniform(size=shape[0]) < 0.5, -2.0, 2.0)
    return x


def _small_group(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    x = rng.standard_normal(shape)
    x += np.where(rng.uniform(size=(shape[0], 1)) < 0.1, 3.0, 0.0) / np.sqrt(shape[1])
    return x


def _wide_part(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_normal(shape) * np.where(rng.uniform(size=(shape[0], 1)) < 0.1, 2.0, 1.0)


def _clayton(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal columns, joined by a Clayton copula with θ = 1 (Marshall and Olkin's frailty)."""
    frailty = rng.standard_gamma(1.0, (shape[0], 1))
    return special.ndtri(1.0 / (1.0 + rng.standard_exponential(shape) / frailty))


def _signs(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Normal columns in threes, any two of them independent, the product of all three positive."""
    if shape[1] < 3:
        raise ValueError(f"alternative 'signs' needs d of at least 3, got {shape[1]}")
    x = rng.standard_normal(shape)
    for k in range(0, shape[1] - 2, 3):
        x[:, k + 2] = np.abs(x[:, k + 2]) * np.sign(x[:, k] * x[:, k + 1])
    return x


def _ball(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    x = rng.standard_normal(shape)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x * rng.uniform(size=(shape[0], 1)) ** (1.0 / shape[1])


def _outlier(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    x = rng.standard_normal(shape)
    x[0] *= 8.0 / np.linalg.norm(x[0])
    return x


#: name: (what it is, sampler of a shape)
NAMED: dict[str, tuple[str, _Shaped]] = {
    "normal": ("the null itself: the power is the level", _normal),
    "uniform": ("independent uniform columns", _uniform),
    "ball": ("uniform in a ball", _ball),
    "student": ("multivariate t with 5 degrees of freedom", _student),
    "student-columns": ("independent t columns with 5 degrees of freedom", _student_columns),
    "wide-part": ("a tenth of the rows with twice the spread", _wide_part),
    "skewed": ("independent chi-square columns with 8 degrees of freedom", _skewed),
    "one-skewed": ("one exponential column among normal ones", _one_skewed),
    "groups": ("two equal groups, 4 standard deviations apart", _groups),
    "small-group": ("a tenth of the rows shifted by 3 standard deviations", _small_group),
    "clayton": ("normal columns joined by a Clayton copula, θ = 1", _clayton),
    "signs": ("normal columns, pairwise independent, in threes with a positive product", _signs),
    "outlier": ("one row 8 standard deviations out", _outlier),
}


def sampler_of(alternative: Any, d: int | None) -> tuple[Sampler, str]:
    """The sampler meant, and what to call it."""
    if isinstance(alternative, str):
        if alternative not in NAMED:
            raise ValueError(
                f"alternative must be a sampler, data, or one of {', '.join(map(repr, NAMED))}; "
                f"got {alternative!r}"
            )
        if d is None:
            raise ValueError(f"alternative {alternative!r} needs d, the number of columns")
        columns, shaped = d, NAMED[alternative][1]
        return (lambda rng, n: shaped(rng, (n, columns))), alternative
    if callable(alternative):
        name = getattr(alternative, "__name__", type(alternative).__name__)
        return alternative, f"sampler {name}"
    values = as_table(alternative, "alternative").values
    if not np.all(np.isfinite(values)):
        raise ValueError("alternative holds NaN or infinite values; leave those rows out")
    if d is not None and d != values.shape[1]:
        raise ValueError(f"alternative has {values.shape[1]} columns, but d={d} was given")
    return smoothed(values), f"fitted to {values.shape[0]} rows"


def smoothed(values: np.ndarray) -> Sampler:
    """Rows drawn from the data with a little normal noise: a kernel density estimate.

    Noise of Silverman's width in the data's own covariance, and a shrinkage that keeps the mean
    and the covariance as they are (Silverman 1986, section 6.4).  Smoothing only takes away from
    what is not normal, so that the power found is rather too small.
    """
    m, d = values.shape
    if m < d + 2:
        raise ValueError(
            f"alternative has {m} rows in {d} columns: too few to fit; pass a sampler instead"
        )
    centre = values.mean(axis=0)
    centred = values - centre
    factor = np.linalg.svd(centred, full_matrices=False)
    root = (factor[1] / np.sqrt(m - 1))[:, None] * factor[2]
    width = (4.0 / ((d + 2.0) * m)) ** (1.0 / (d + 4.0))

    def sample(rng: np.random.Generator, n: int) -> np.ndarray:
        drawn = (
            centred[rng.integers(m, size=n)] + width * rng.standard_normal((n, len(root))) @ root
        )
        return np.asarray(centre + drawn / np.sqrt(1.0 + width**2))

    return sample

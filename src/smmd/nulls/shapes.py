"""Standardized shapes (mean 0, variance 1) from which null laws are built.

Every shape answers sf, cdf, logsf, pdf and isf. `fractional_power` is the one that the analytic
p-values use; Pearson III and the log-normal are simpler laws with fewer matched moments.
"""

from dataclasses import dataclass
from math import exp, expm1, log, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from smmd.nulls.spectrum import Spectrum
from smmd.nulls.tail import ChiSquareSum

Array = NDArray[np.float64]


class Shape(Protocol):
    """A law with mean 0 and variance 1."""

    def sf(self, z: ArrayLike) -> Array: ...
    def cdf(self, z: ArrayLike) -> Array: ...
    def logsf(self, z: ArrayLike) -> Array: ...
    def pdf(self, z: ArrayLike) -> Array: ...
    def isf(self, alpha: float) -> float: ...


def fractional_power(
    spectrum: Spectrum, skewness: float, kurtosis: float | None = None
) -> ChiSquareSum:
    """The chi-square sum of a spectrum, at another skewness and a kurtosis at least its own.

    With S^2 = 2 T_2 and skinf = 8 T_3/S^3, multiplicities m nu and eigenvalues mu/(S sqrt nu),
    nu = (skinf/skewness)^2, have variance 1 and the skewness asked for. Its excess kurtosis is
    kappa = 48 T_4/(S^4 nu). Where `kurtosis` exceeds it, the law is

        sqrt(f) FP(skewness/f^(3/2)) + sqrt(1-f) N(0, 1),      f = kappa/kurtosis.
    """
    s2 = 2.0 * spectrum.trace(2)
    limit_skewness = 8.0 * spectrum.trace(3) / s2**1.5
    if not skewness > 0.0:
        raise ValueError(f"skewness must be positive, got {skewness}")
    kappa = 48.0 * spectrum.trace(4) / s2**2 * (skewness / limit_skewness) ** 2
    f = 1.0 if kurtosis is None or kurtosis <= kappa else kappa / kurtosis
    nu = f**3 * (limit_skewness / skewness) ** 2
    return ChiSquareSum(
        a=spectrum.eigenvalues * sqrt(f / (s2 * nu)),
        w=spectrum.multiplicities * nu,
        normal_variance=1.0 - f,
    )


def pearson3(skewness: float) -> ChiSquareSum:
    """Shifted gamma with the given skewness: one eigenvalue, 8/skewness^2 times."""
    if not skewness > 0.0:
        raise ValueError(f"skewness must be positive, got {skewness}")
    return ChiSquareSum(np.array([0.25 * skewness]), np.array([8.0 / skewness**2]))


@dataclass(frozen=True)
class LogNormal:
    """Standardized log-normal: exp(sigma G - sigma^2/2) has the coefficient of variation `cv`."""

    cv: float

    def __post_init__(self) -> None:
        if not self.cv > 0.0:
            raise ValueError(f"cv must be positive, got {self.cv}; it is sd / mean")

    @property
    def _sigma(self) -> float:
        return sqrt(np.log1p(self.cv**2))

    def _normal_score(self, z: ArrayLike) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(1.0 + self.cv * np.asarray(z, dtype=float), 0.0))
        return np.asarray(logs / self._sigma + 0.5 * self._sigma)

    def sf(self, z: ArrayLike) -> Array:
        return np.asarray(special.ndtr(-self._normal_score(z)))

    def cdf(self, z: ArrayLike) -> Array:
        return np.asarray(special.ndtr(self._normal_score(z)))

    def logsf(self, z: ArrayLike) -> Array:
        return np.asarray(special.log_ndtr(-self._normal_score(z)))

    def pdf(self, z: ArrayLike) -> Array:
        value = 1.0 + self.cv * np.asarray(z, dtype=float)
        inside = value > 0.0
        score = self._normal_score(z)
        peak = self.cv / (self._sigma * sqrt(2.0 * np.pi))
        density = peak * np.exp(-0.5 * np.where(inside, score, 0.0) ** 2)
        return np.asarray(np.where(inside, density / np.where(inside, value, 1.0), 0.0))

    def isf(self, alpha: float) -> float:
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
        log_value = -self._sigma * float(special.ndtri(alpha)) - 0.5 * log(1.0 + self.cv**2)
        return (
            expm1(log_value) / self.cv if abs(log_value) < 1.0 else (exp(log_value) - 1) / self.cv
        )


@dataclass(frozen=True)
class Normal:
    """The standard normal law, for the limit in which skewness vanishes."""

    def sf(self, z: ArrayLike) -> Array:
        return np.asarray(special.ndtr(-np.asarray(z, dtype=float)))

    def cdf(self, z: ArrayLike) -> Array:
        return np.asarray(special.ndtr(np.asarray(z, dtype=float)))

    def logsf(self, z: ArrayLike) -> Array:
        return np.asarray(special.log_ndtr(-np.asarray(z, dtype=float)))

    def pdf(self, z: ArrayLike) -> Array:
        return np.asarray(np.exp(-0.5 * np.asarray(z, dtype=float) ** 2) / sqrt(2.0 * np.pi))

    def isf(self, alpha: float) -> float:
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
        return -float(special.ndtri(alpha))

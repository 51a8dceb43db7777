"""The law of SMMD^2 under a null, as an object that answers p-values, quantiles and densities.

A law is mean + sd * Z with Z a standardized shape. `analytic_law` matches the exact mean,
variance and skewness (and, for "standard", kurtosis) to a chi-square sum with the spectrum of the
null's limit law; `pearson3_law` and `lognormal_law` match less; `henze_zirkler_law` is the one
published with the Henze-Zirkler test.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smmd.nulls.estimated import mean, variance
from smmd.nulls.moments import NullMoments, null_moments, simple_variance
from smmd.nulls.shapes import LogNormal, Normal, Shape, fractional_power, pearson3
from smmd.nulls.spectrum import Null, check_kernel, projected_spectrum
from smmd.nulls.validity import verdict

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NullLaw:
    """The law of a statistic under a null hypothesis.

    valid says whether p-values from this law keep their nominal level (by simulation; see
    `validity.py`); if not, reason says why in words.
    """

    null: Null
    n: int
    d: int
    gamma2: float
    mean: float
    sd: float
    skewness: float
    kurtosis: float | None
    valid: bool
    reason: str
    shape: Shape = field(repr=False, compare=False)

    def sf(self, x: ArrayLike) -> Array:
        """P(statistic > x), accurate relative to itself far into the tail."""
        return self.shape.sf(self._standardize(x))

    def cdf(self, x: ArrayLike) -> Array:
        return self.shape.cdf(self._standardize(x))

    def logsf(self, x: ArrayLike) -> Array:
        return self.shape.logsf(self._standardize(x))

    def pdf(self, x: ArrayLike) -> Array:
        return self.shape.pdf(self._standardize(x)) / self.sd

    def isf(self, alpha: float) -> float:
        """The threshold that the statistic exceeds with probability alpha."""
        return self.mean + self.sd * self.shape.isf(alpha)

    def _standardize(self, x: ArrayLike) -> Array:
        return np.asarray((np.asarray(x, dtype=float) - self.mean) / self.sd)


@lru_cache(maxsize=512)
def analytic_law(null: Null, n: int, d: int, gamma2: float) -> NullLaw:
    """The law of SMMD^2 under `null`, Gaussian kernel of squared width gamma2."""
    moments = null_moments(null, n, d, gamma2)
    valid, reason = verdict(null, n, d, gamma2, moments.skewness)
    shape: Shape = Normal()
    if moments.skewness > 0.0:
        spectrum = projected_spectrum(null, d, gamma2)
        shape = fractional_power(spectrum, moments.skewness, moments.kurtosis)
    return _law_of_smmd(null, n, d, gamma2, moments, shape, valid, reason)


@lru_cache(maxsize=512)
def pearson3_law(null: Null, n: int, d: int, gamma2: float) -> NullLaw:
    """Shifted gamma with the exact mean, variance and skewness of SMMD^2."""
    moments = null_moments(null, n, d, gamma2)
    shape: Shape = pearson3(moments.skewness) if moments.skewness > 0.0 else Normal()
    return _law_of_smmd(null, n, d, gamma2, moments, shape, False, "Pearson III is for comparison")


def _law_of_smmd(
    null: Null,
    n: int,
    d: int,
    gamma2: float,
    moments: NullMoments,
    shape: Shape,
    valid: bool,
    reason: str,
) -> NullLaw:
    unit = sqrt(simple_variance(d, gamma2))
    return NullLaw(
        null=null,
        n=n,
        d=d,
        gamma2=gamma2,
        mean=moments.mean / unit,
        sd=sqrt(moments.variance) / unit,
        skewness=moments.skewness,
        kurtosis=moments.kurtosis,
        valid=valid,
        reason=reason,
        shape=shape,
    )


@lru_cache(maxsize=512)
def lognormal_law(null: Null, n: int, d: int, gamma2: float) -> NullLaw:
    """Log-normal law of n MMD^2_b with its exact mean and variance, as Henze and Zirkler do."""
    check_kernel(d, gamma2)
    if null == "standard":
        first, second = _standard_biased(n, d, gamma2)
    else:
        first, second = (part(null, n, d, gamma2, biased=True) for part in (mean, variance))
    return _lognormal(null, n, d, gamma2, n * first, n * sqrt(second), "for comparison")


@lru_cache(maxsize=512)
def henze_zirkler_law(n: int, d: int) -> NullLaw:
    """The published law of HZ = n MMD^2_b after whitening with the 1/n covariance.

    Log-normal with the limit's mean T_1 and variance 2 T_2 (null "normal") at the width
    gamma = 1/beta, beta = ((2d+1) n/4)^(1/(d+4)) / sqrt 2.
    """
    if n < 2:
        raise ValueError(f"n must be at least 2, got {n}; collect more rows")
    gamma2 = 2.0 * ((2.0 * d + 1.0) * n / 4.0) ** (-2.0 / (d + 4.0))
    return published_law("normal", n, d, gamma2)


@lru_cache(maxsize=512)
def published_law(null: Null, n: int, d: int, gamma2: float) -> NullLaw:
    """What Henze and Zirkler do, at any width and null: log-normal with the limit's moments.

    Of n MMD^2_b with 1/n (co)variances: mean T_1, variance 2 T_2, whatever n.
    """
    spectrum = projected_spectrum(null, d, gamma2)
    mean, sd = spectrum.trace(1), sqrt(2.0 * spectrum.trace(2))
    return _lognormal(null, n, d, gamma2, mean, sd, "as published; its level is not exact")


def _lognormal(
    null: Null, n: int, d: int, gamma2: float, mean: float, sd: float, reason: str
) -> NullLaw:
    cv = sd / mean
    w = cv**2
    return NullLaw(
        null=null,
        n=n,
        d=d,
        gamma2=gamma2,
        mean=mean,
        sd=sd,
        skewness=cv * (3.0 + w),
        kurtosis=w * (16.0 + w * (15.0 + w * (6.0 + w))),
        valid=False,
        reason=f"the log-normal law is {reason}",
        shape=LogNormal(cv),
    )


def _standard_biased(n: int, d: int, gamma2: float) -> tuple[float, float]:
    """Mean (1-c)/n and variance 2(n-1)/n^3 E h^2 + 4/n^3 (q - c^2) of MMD^2_b."""
    u = 1.0 / gamma2
    log_c = -0.5 * d * np.log1p(2.0 * u)
    # q/c^2 = ((1+2u)^2/((1+u)(1+3u)))^(d/2) = (1 + u^2/(1+4u+3u^2))^(d/2)
    q_excess = np.exp(2.0 * log_c) * np.expm1(0.5 * d * np.log1p(u * u / (1 + 4 * u + 3 * u * u)))
    t2 = projected_spectrum("standard", d, gamma2).trace(2)
    return float(-np.expm1(log_c) / n), float((2.0 * (n - 1.0) * t2 + 4.0 * q_excess) / n**3)

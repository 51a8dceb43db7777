"""SIGReg values (LeJEPA) in terms of MMD² and SMMD².

SIGReg projects n codes on K random directions and integrates, over frequencies t with the weight
exp(−t²/2), n times the squared distance of the projections' characteristic function from that of
N(0, 1).  As K grows and the frequency grid becomes fine this is

    SIGReg = n · √(2π) · MMD²_b(codes; Sliced(gamma=1)),

the biased sliced MMD².  Its value at convergence is therefore not zero but √(2π)(1 − 3^(−1/2)) =
1.059, whatever n and d, and its standard deviation there is ``null_sd``.

>>> import smmd.sigreg
>>> round(smmd.sigreg.expected(), 3), round(smmd.sigreg.null_sd(128, 64), 3)
(1.059, 0.086)
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from smmd.kernels import Gaussian, Sliced
from smmd.measure import null_mean, null_variance

_UNIT = math.sqrt(2.0 * math.pi)
_KERNEL = Sliced(1.0)


def expected(n_knots: int | None = None, t_max: float = 3.0) -> float:
    """SIGReg's mean when the codes are N(0, I): n√(2π) E MMD²_b, the same for every n and d.

    With ``n_knots``, of the trapezoidal rule on so many frequencies in [0, t_max], doubled:
    implementations have 17 in [0, 3], and 1.052 for 1.059.  At each frequency n E|φ_n − φ|² is
    1 − exp(−t²).
    """
    if n_knots is None:
        return _UNIT * null_mean(1, 1, _KERNEL, unbiased=False)
    if n_knots < 2:
        raise ValueError(f"n_knots must be at least 2, got {n_knots!r}")
    t, step = np.linspace(0.0, t_max, n_knots, retstep=True)
    height = -np.exp(-0.5 * t * t) * np.expm1(-t * t)
    return float(step * (2.0 * height.sum() - height[0] - height[-1]))


def null_sd(n: int, d: int, n_slices: int | None = None) -> float:
    """SIGReg's standard deviation when the codes are N(0, I); without ``n_slices``, for K → ∞."""
    return n * _UNIT * sliced_null_sd(n, d, 1.0, n_slices, unbiased=False)


@lru_cache(maxsize=512)
def sliced_null_sd(
    n: int, d: int, gamma: float, n_slices: int | None = None, *, unbiased: bool = True
) -> float:
    """The null standard deviation of the sliced MMD² on ``n_slices`` random directions.

    Two directions' statistics have as their covariance, over codes and directions, the variance of
    the mean over all directions; one direction's is that of the one-dimensional statistic.
    """
    exact = null_variance(n, d, Sliced(gamma), unbiased=unbiased)
    if n_slices is None:
        return math.sqrt(exact)
    if n_slices < 1:
        raise ValueError(f"n_slices must be at least 1, got {n_slices!r}")
    single = null_variance(n, 1, Gaussian(gamma=gamma), unbiased=unbiased)
    return math.sqrt(exact + (single - exact) / n_slices)


def to_mmd2(value: Any, n: int) -> Any:
    """The biased sliced MMD² that a SIGReg value stands for: ``mmd2(z, Sliced(), unbiased=False)``.

    ``n`` is the number of codes of all ranks together.
    """
    return value / (_count(n) * _UNIT)


def from_mmd2(value: Any, n: int) -> Any:
    """The SIGReg value of a biased sliced MMD²."""
    return value * (_count(n) * _UNIT)


def to_smmd(value: Any, n: int, d: int) -> Any:
    """SMMD² of the kernel ``Sliced()`` from a SIGReg value: 0 ± 1 when the codes are N(0, I).

    SIGReg counts each code's pair with itself, and what this adds depends a little on the codes: it
    is taken at its mean under normality, 1 − 3^(−1/2).  The result is therefore too low by
    (P − 3^(−1/2))/(n·sd), P the mean of the sliced kernel over pairs: near convergence that is
    0 ± 0.9/√n, and where the codes have collapsed to a point (P = 1) 0.42/(n·sd), small beside
    SMMD² itself there.  ``smmd.smmd(z, kernel=smmd.Sliced())`` is exact.
    """
    excess = (value - expected()) / (_UNIT * _count(n))
    return excess / sliced_null_sd(n, d, 1.0)


def from_smmd(value: Any, n: int, d: int) -> Any:
    """The SIGReg value that goes with an SMMD²; the inverse of ``to_smmd``."""
    return value * (sliced_null_sd(n, d, 1.0) * _UNIT * _count(n)) + expected()


def weight(lam: float, n: int, d: int) -> float:
    """λ for SMMD² that pulls as λ·SIGReg does at this n and d: λ·n·√(2π)·sd of MMD²_u."""
    return lam * _count(n) * _UNIT * sliced_null_sd(n, d, 1.0)


def _count(n: int) -> int:
    if isinstance(n, bool) or int(n) != n or n < 2:
        raise ValueError(f"n must be the number of codes in the batch, at least 2; got {n!r}")
    return int(n)

"""Which way to sum, and why: error bounds of the fast distances, and the user's override.

Squared distances within a block come from one of three places:

``"difference"``  summed squared differences: exact to rounding wherever the points lie.
``"gram"``        ‖x‖² + ‖y‖² − 2x·y of the centred points, through BLAS, in float64.  With R the
                  largest centred norm and a the steepest precision, a kernel value is off by less
                  than 4aR²·2⁻⁵² relative (the mean is a float64 number, from which differences
                  are exact to rounding).  Used where that is below ``GRAM_TOLERANCE``.
``"gram32"``      the same in float32, for float32 data, with norms as two floats and with float64
                  sums.  Used where its error in SMMD² is below ``GRAM32_TOLERANCE`` null standard
                  deviations (or that share of SMMD², where it is larger than one):

    random      u = (4 + 4aR²)·2⁻²⁴, a pair's rounding error.  Roundings of different pairs are
                independent, so that in SMMD² they add up to u·√(E k² / E h²), whatever n.
    systematic  b, the mean relative error of the machine's float32 ``exp``, measured once
                (about 5e-9), and of a mixture's relative precisions as float32 hold them.  It
                shifts all pairs alike: n·b·E k / √(2 E h²) in SMMD².  That of a sliced kernel's
                series is measured, too, and taken back.

h is k centred on both sides.  The second line grows with n; past some 40,000 points float64 takes
over.  Kernels wider than the data's spread, where f = k − 1 is small, always use float64.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from smmd import closed_form, kernels
from smmd.radial import Exponentials, Radial, Rational, SeriesRadial

#: Largest relative error of a kernel value that float64 Gram distances may bring.
GRAM_TOLERANCE = 2e-13
#: Largest error of SMMD², in null standard deviations, that float32 may bring.
GRAM32_TOLERANCE = 1e-4
#: Below so many pairs, times d + 8 for what one costs (d + 72 for a series), float32 saves nothing.
WORTHWHILE = 1 << 22

#: What is left of a series' mean error in float32 where ``series`` has taken it back: five times
#: the standard error of that measurement.
SERIES_BIAS = 5e-10

PATHS = ("difference", "gram", "gram32", "triton", "dense")
#: Names a path for a whole process, as ``use`` does for a block.
VARIABLE = "SMMD_PAIRS"
_forced: ContextVar[str | None] = ContextVar("smmd_pairs_path", default=None)


@contextmanager
def use(path: str) -> Iterator[None]:
    """Within the block, sum over pairs this way wherever it exists for the data at hand.

    ``"difference"``, ``"gram"`` and ``"gram32"`` are NumPy's and PyTorch's on a CPU, ``"triton"``
    is PyTorch's on a GPU, and ``"dense"``, the formulas as they read, exists everywhere.  The
    environment variable ``SMMD_PAIRS`` does the same for a whole process.  ``smmd.explain`` says
    what is used otherwise, and why.

    >>> import numpy as np, smmd
    >>> z = np.random.default_rng(0).standard_normal((300, 2))
    >>> with smmd.pairs.use("difference"):
    ...     exact = smmd.smmd(z)
    >>> bool(abs(exact - smmd.smmd(z)) < 1e-12)
    True
    """
    token = _forced.set(_checked(path, "path"))
    try:
        yield
    finally:
        _forced.reset(token)


def forced() -> str | None:
    """The path asked for by ``use`` or the environment, if any."""
    asked = _forced.get()
    if asked is None and (named := os.environ.get(VARIABLE)):
        asked = _checked(named, VARIABLE)
    return asked


def _checked(path: str, name: str) -> str:
    if path not in PATHS:
        raise ValueError(f"{name} must be one of {', '.join(PATHS)}; got {path!r}")
    return path


class Choice(NamedTuple):
    """A path and the reason for it; ``bound`` is the error bound that decided."""

    path: str
    because: str
    bound: float

    @property
    def why(self) -> str:
        """The reason with its numbers: most choices are never asked for it."""
        return self.because.format(self.bound)


#: Reasons, short of the bound.
FLOAT32 = f"float32 data; error in SMMD² {{:.0e}} <= {GRAM32_TOLERANCE:.0e}"
GRAM = f"relative error of a kernel value {{:.0e}} <= {GRAM_TOLERANCE:.0e}"


def steepest(radial: Radial) -> float:
    """The largest precision: what an error in r²/2 is multiplied by, relative to the kernel."""
    if isinstance(radial, Exponentials):
        if isinstance(radial.a, tuple):
            return max(radial.a, default=0.0)
        return float(np.max(np.asarray(radial.a))) if np.size(radial.a) else 0.0
    if isinstance(radial, SeriesRadial):
        # −(log φ)' is largest at 0, where it is −φ'(0), and every T_k(1) is one.
        return radial.a * sum(radial.series[1])
    assert isinstance(radial, Rational)
    return radial.a


def choose(radius2: float, shape: tuple[int, int, int], radial: Radial, single: bool) -> Choice:
    """The CPU path for points within √radius2 of their mean.

    ``shape`` is (samples, n, d); ``single`` says that the data have single precision.
    """
    asked = forced()
    ar2 = steepest(radial) * radius2 if math.isfinite(radius2) else math.inf
    bound = 4.0 * ar2 * 2.0**-52
    cost = shape[2] + (72 if isinstance(radial, SeriesRadial) else 8)
    worthwhile = shape[0] * shape[1] * shape[1] * cost >= WORTHWHILE
    bound32 = math.inf
    if single and ar2 < math.inf and (worthwhile or asked == "gram32"):
        bound32 = float32_error(ar2, shape[1], shape[2], radial)
    if asked in ("difference", "gram", "gram32"):
        if asked == "gram32" and not single:
            asked = "gram"
        errors = {"difference": 0.0, "gram": bound, "gram32": bound32}
        return Choice(asked, f"{asked!r} was asked for", errors[asked])
    if bound32 <= GRAM32_TOLERANCE:
        return Choice("gram32", FLOAT32, bound32)
    if bound <= GRAM_TOLERANCE:
        return Choice("gram", GRAM, bound)
    why = f"Gram distances could be off by {bound:.0e} > {GRAM_TOLERANCE:.0e}: far-out points"
    return Choice("difference", why, 0.0)


def float32_error(ar2: float, n: int, d: int, radial: Radial) -> float:
    """The bound of the module's second paragraph; infinite where float32 does not apply."""
    random, common, shared = _sensitivity(radial, d)
    if math.isinf(random):
        return math.inf
    unit = (4.0 + 4.0 * ar2) * 2.0**-24
    if isinstance(radial, SeriesRadial):
        unit = (8.0 + 4.0 * ar2) * 2.0**-24  # polynomials round more often
    bias = exp_bias() if isinstance(radial, Exponentials) else 0.0
    return unit * random + n * (bias * common + shared)


def _sensitivity(radial: Radial, d: int) -> tuple[float, float, float]:
    """√(E k²/E h²) and E k/√(2 E h²), what a random and a common relative error do to SMMD²;

    and what the rounding of a mixture's relative precisions does, for each point.
    """
    none = math.inf, math.inf, math.inf
    if isinstance(radial, Exponentials):
        if not isinstance(radial.a, tuple):
            if len(radial) > 1:
                return none
            if np.any(np.asarray(radial.base)) or np.max(np.abs(np.asarray(radial.offset))) > 40.0:
                return none
            a = np.asarray(radial.a, dtype=np.float64)
            ends = [_of_precisions((float(v),), d) for v in (a.min(), a.max())]
            return max(ends)[0], max(v[1] for v in ends), 0.0
        if any(radial.base) or max(map(abs, radial.offset)) > 40.0:
            return none
        return _of_precisions(radial.a, d)
    if isinstance(radial, Rational) and not radial.base:
        return _of_imq(radial.a, d)
    if isinstance(radial, SeriesRadial) and radial.amplitude == 1.0:
        return _of_sliced(radial.a, d)
    return none


@lru_cache(maxsize=256)
def _of_precisions(precisions: tuple[float, ...], d: int) -> tuple[float, float, float]:
    """The worst of the terms; the terms' common error adds up at most √Q-fold."""
    a = np.array(precisions)
    log_h2 = closed_form.log_cross_covariance(a, a, d)
    random = np.exp(0.5 * (-0.5 * d * np.log1p(4.0 * a) - log_h2))
    common = np.exp(-0.5 * d * np.log1p(2.0 * a) - 0.5 * (log_h2 + math.log(2.0)))
    many = math.sqrt(len(a))
    # E[k a r²/2]/E k = a d/(1 + 2a) is the exponent where a term's pairs matter.
    ratio = a / a.max()
    shared = common * np.abs(ratio.astype(np.float32) / ratio - 1.0) * a * d / (1.0 + 2.0 * a)
    return tuple(float(v.max()) * many for v in (random, common, shared))  # type: ignore[return-value]


@lru_cache(maxsize=256)
def _of_imq(a: float, d: int) -> tuple[float, float, float]:
    mixture = kernels.IMQ(gamma=a**-0.5).resolve(2, d)
    log_h2 = closed_form.log_null_second_moment(mixture, d)
    mean = float(np.exp(mixture.log_weights) @ np.exp(closed_form.log_constant(mixture, d)))
    return math.sqrt(mean) * math.exp(-0.5 * log_h2), 0.0, 0.0  # k ≤ 1, so E k² ≤ E k


@lru_cache(maxsize=256)
def _of_sliced(a: float, d: int) -> tuple[float, float, float]:
    mixture = kernels.Sliced(a**-0.5).resolve(2, d)
    random = math.exp(-0.5 * closed_form.log_null_second_moment(mixture, d))  # |φ − base| <= 1
    return random, 0.0, SERIES_BIAS * math.sqrt(0.5) * random


@lru_cache(maxsize=1)
def exp_bias() -> float:
    """The largest mean relative error of NumPy's float32 exp over eight stretches of its range."""
    worst = 0.0
    for low in range(-24, 8, 4):
        power = np.linspace(low, low + 4, 1 << 16, dtype=np.float32)
        exact = np.exp(power.astype(np.float64))
        worst = max(worst, abs(float(np.mean(np.exp(power) / exact)) - 1.0))
    return worst + 5e-10

"""How normal the test codes are: the B-statistic and its bands, all codes at once, each axis,
and the codes that lie too far out."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import special

import smmd
from smmd.kernels import Gaussian
from smmd.monitor import Batch
from smmd.normality import NormalityResult, SimulatedWarning, TiesWarning, normality_test

#: Paper, section "WAE results": m = 50 batches of n = 100 from the test set.
BATCHES, SIZE = 50, 100
#: A code is an outlier if fewer than this many of N standard normal ones are expected so far out.
EXPECTED_BEYOND = 0.01
#: The level of the axes' tests, after Holm's correction for their number.
ALPHA = 0.01


@dataclass(frozen=True, kw_only=True)
class BReading:
    """The B-statistic, the mean SMMD² of ``batches`` batches, beside what normality gives.

    sd      its standard deviation under N(0, I): 1/√batches if no code is used twice, more if so
    band    three standard deviations either side, as in the paper
    exact   the band that a normal B leaves as rarely as a normal variable leaves three sigma
            (0.135 % on each side): SMMD² is skewed, and so is its mean
    """

    value: float
    batches: int
    size: int
    sd: float
    band: tuple[float, float]
    exact: tuple[float, float]

    @property
    def inside(self) -> bool:
        """Whether the value lies in the exact band."""
        return self.exact[0] <= self.value <= self.exact[1]


@dataclass(frozen=True, kw_only=True)
class Whole:
    """SMMD² of all test codes at once, its p-value under N(0, I), and from about how many codes on
    a departure of this size is seen (None if it is not seen)."""

    smmd: float
    mmd2: float
    pvalue: float
    pvalue_standard_error: float | None
    method: str
    codes_needed: float | None


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One latent dimension, counted from 1; ``pvalue`` is Holm's, over all dimensions."""

    axis: int
    mean: float
    sd: float
    skewness: float
    kurtosis: float
    smmd: float
    pvalue: float

    @property
    def departs(self) -> bool:
        """Whether it is not N(0, 1), at a level of 1 % for all axes together."""
        return self.pvalue <= ALPHA


@dataclass(frozen=True, kw_only=True)
class Outlier:
    """A test image whose code lies further from 0 than any of N normal codes should."""

    index: int
    radius: float
    expected_beyond: float


def b_statistic(codes: np.ndarray, kernel: Gaussian, seed: int = 0) -> BReading:
    """Over random disjoint batches; where the test set is too small for 50 of 100, over as many
    random partitions of it as are needed."""
    n, d = codes.shape
    size = min(SIZE, n)
    rng, starts = np.random.default_rng(seed), range(0, n - size + 1, size)
    batches: list[np.ndarray] = []
    while len(batches) < BATCHES:
        order = rng.permutation(n)
        batches.extend(order[start : start + size] for start in starts)
    reading = smmd.BStatistic(batch=Batch(size, d, kernel, simulate=20_000))
    for value in smmd.smmd(codes[np.stack(batches[:BATCHES])], kernel=kernel):
        reading.update(value)
    # Two batches of different partitions share a pair of codes with probability ρ, which is their
    # correlation: the kernel is degenerate, so that only shared pairs count.
    rho = size * (size - 1) / (n * (n - 1))
    parts = np.bincount(np.arange(BATCHES) // len(starts))
    crossed = BATCHES**2 - float((parts**2).sum())
    sd = math.sqrt((BATCHES + rho * crossed) / BATCHES**2)
    overlap = sd / reading.sd
    low, high = reading.exact_band()
    return BReading(
        value=reading.value,
        batches=BATCHES,
        size=size,
        sd=sd,
        band=(-3.0 * sd, 3.0 * sd),
        exact=(overlap * low, overlap * high),
    )


def whole(codes: np.ndarray, kernel: Gaussian) -> Whole:
    """The test of all codes against N(0, I), nothing estimated."""
    result = _tested(codes, kernel)
    return Whole(
        smmd=float(result.statistic),
        mmd2=float(smmd.mmd2(codes, kernel)),
        pvalue=float(result.pvalue),
        pvalue_standard_error=result.pvalue_standard_error,
        method=result.method,
        codes_needed=result.rows_needed,
    )


def axes(codes: np.ndarray, kernel: Gaussian) -> tuple[Axis, ...]:
    """Each dimension against N(0, 1)."""
    tests = [_tested(column[:, None], kernel) for column in codes.T]
    corrected = _holm(np.array([float(test.pvalue) for test in tests]))
    return tuple(
        Axis(
            axis=k + 1,
            mean=float(column.mean()),
            sd=float(column.std(ddof=1)),
            skewness=_shape(column)[0],
            kurtosis=_shape(column)[1],
            smmd=float(test.statistic),
            pvalue=float(p),
        )
        for k, (column, test, p) in enumerate(zip(codes.T, tests, corrected, strict=True))
    )


def _tested(codes: np.ndarray, kernel: Gaussian) -> NormalityResult:
    with warnings.catch_warnings():
        # Repeated values (a collapsed axis) and simulated p-values show in the result itself.
        warnings.simplefilter("ignore", TiesWarning)
        warnings.simplefilter("ignore", SimulatedWarning)
        return normality_test(codes, null="standard", kernel=kernel, rng=0)


def _holm(pvalues: np.ndarray) -> np.ndarray:
    order = np.argsort(pvalues, kind="stable")
    stepped = np.maximum.accumulate(pvalues[order] * np.arange(len(pvalues), 0, -1))
    corrected = np.empty_like(stepped)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def _shape(column: np.ndarray) -> tuple[float, float]:
    """Skewness and excess kurtosis; 0 for a constant, which has none."""
    spread = float(column.std())
    if not spread:
        return 0.0, 0.0
    z = (column - column.mean()) / spread
    return float(np.mean(z**3)), float(np.mean(z**4)) - 3.0


def outliers(codes: np.ndarray, most: int = 20) -> tuple[int, tuple[Outlier, ...]]:
    """How many codes lie too far out, and the furthest of them."""
    n, d = codes.shape
    squares = np.sum(codes * codes, axis=1)
    expected = n * special.chdtrc(d, squares)
    found = np.flatnonzero(expected < EXPECTED_BEYOND)
    furthest = found[np.argsort(-squares[found], kind="stable")][:most]
    return len(found), tuple(
        Outlier(index=int(k), radius=math.sqrt(squares[k]), expected_beyond=float(expected[k]))
        for k in furthest
    )

"""Samples and kernels, from ordinary to extreme, for the oracles and the accuracy table.

Samples are few points: an oracle's 50 digits cost time, and what is hard is hard for few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import smmd
from tests import exact

#: Absolute-or-relative bounds of MMD² and SMMD², and of a gradient in units of its norm.
DOUBLE, SINGLE, GRADIENT = 1e-12, 2e-4, 1e-11

#: From kernels that no two points share to kernels that hardly notice the points.
SCALES = (1e-6, 1e-3, 1 / 32, 1 / 8, 1.0, 30.0, 1e3, 1e6, 1e9)


def _samples() -> Iterator[tuple[str, str, np.ndarray]]:
    rng = np.random.default_rng(20260101)

    def normal(n: int, d: int) -> np.ndarray:
        return rng.standard_normal((n, d))

    for n, d in ((9, 1), (8, 2), (8, 5), (10, 8)):
        yield "ordinary", f"normal {n}x{d}", normal(n, d)
    yield "ordinary", "uniform 8x3", rng.uniform(-1.7, 1.7, (8, 3))
    yield "ordinary", "wide 8x4", 3.0 * normal(8, 4)
    for d in (1, 2, 16):
        yield "two points", f"normal 2x{d}", normal(2, d)
    for d in (32, 64, 256, 512):
        yield "high dimension", f"normal 5x{d}", normal(5, d)
    yield "far away", "shifted by 1e6, 6x3", normal(6, 3) + 1e6
    yield "far away", "shifted by 1e3, 6x1", normal(6, 1) + 1e3
    one_out = normal(6, 4)
    one_out[2] = 1e6
    yield "far away", "one point at 1e6, 6x4", one_out
    yield "far away", "both ends of 1e6, 4x2", normal(4, 2) + [[1e6], [1e6], [-1e6], [-1e6]]
    yield "far away", "spread over 1e6, 6x8", 1e6 * normal(6, 8)
    yield "far away", "shifted by 1e6, 3x512", normal(3, 512) + 1e6
    for gap in (1e-5, 1e-9, 1e-14):
        near = normal(6, 3)
        near[3:] = near[:3] + gap * normal(3, 3)
        yield "near-duplicates", f"pairs {gap:g} apart, 6x3", near
    far_near = 1e6 + normal(3, 2)
    yield "near-duplicates", "1e-9 apart at 1e6, 6x2", np.concatenate([far_near, far_near + 1e-9])
    yield "collapsed", "within 1e-8 of 0, 6x4", 1e-8 * normal(6, 4)
    yield "collapsed", "within 1e-8 of 1, 6x4", 1.0 + 1e-8 * normal(6, 4)
    yield "collapsed", "one direction, 6x64", normal(6, 1) * np.ones((1, 64)) / 8.0
    yield "all equal", "all at 0, 5x3", np.zeros((5, 3))
    yield "all equal", "all at 1, 5x8", np.ones((5, 8))
    yield "all equal", "all at 1e6, 5x2", np.full((5, 2), 1e6)


@cache
def samples() -> tuple[tuple[str, str, np.ndarray], ...]:
    """(class, name, points) of every sample; the same on every call."""
    return tuple(_samples())


def sample(name: str) -> np.ndarray:
    """The points of the sample called ``name``."""
    return next(z for _, label, z in samples() if label == name)


@dataclass(frozen=True)
class Case:
    """One kernel of ``smmd`` and the same of the oracle, as functions of the data."""

    label: str
    kernel: smmd.Kernel
    oracle: Callable[[np.ndarray], Any]

    def __str__(self) -> str:
        return self.label


def _width(scale: float, d: int) -> Any:
    return exact.mpf(scale) * d


def gaussian(scale: float) -> Case:
    """The default kernel at a scale."""
    return Case(
        f"Gaussian({scale:g})",
        smmd.Gaussian(scale),
        lambda z: exact.Gaussian(_width(scale, z.shape[-1]), z.shape[-1]),
    )


def imq(scale: float) -> Case:
    """The inverse multiquadric at a scale."""
    return Case(
        f"IMQ({scale:g})",
        smmd.IMQ(scale),
        lambda z: exact.InverseMultiquadric(_width(scale, z.shape[-1]), z.shape[-1]),
    )


def sliced(gamma: float) -> Case:
    """The exact sliced kernel of a width."""
    return Case(
        f"Sliced({gamma:g})",
        smmd.Sliced(gamma),
        lambda z: (exact.Gaussian if z.shape[-1] == 1 else exact.Sliced)(
            exact.mpf(gamma) ** 2, z.shape[-1]
        ),
    )


def multi_scale(*scales: float) -> Case:
    """Several scales, standardized together."""
    return Case(
        f"MultiScale({', '.join(f'{s:g}' for s in scales)})",
        smmd.MultiScale(scales),
        lambda z: exact.multi_scale(scales, z.shape[-1]),
    )


def adaptive(scale: float) -> Case:
    """γ² = s·mean‖z‖²."""
    return Case(
        f"Adaptive({scale:g})",
        smmd.Adaptive(scale),
        lambda z: exact.Gaussian(exact.mpf(scale) * exact.mean_square(z), z.shape[-1]),
    )


def _henze_zirkler(z: np.ndarray) -> Any:
    n, d = z.shape
    root = (exact.mpf((2 * d + 1) * n) / 4) ** (-exact.mpf(1) / (d + 4))
    return exact.Gaussian(2 * root**2, d)


HENZE_ZIRKLER = Case("HenzeZirkler()", smmd.HenzeZirkler(), _henze_zirkler)

#: Every kernel at widths of every size.
KERNELS = (
    *(gaussian(s) for s in SCALES),
    HENZE_ZIRKLER,
    adaptive(1 / 8),
    adaptive(1e4),
    multi_scale(1 / 16, 1 / 8, 1 / 4),
    multi_scale(1e-3, 1.0, 1e6),
    imq(1e-6),
    imq(1 / 8),
    imq(1e3),
    imq(1e9),
    sliced(1e-3),
    sliced(1.0),
    sliced(30.0),
    sliced(1e4),
)


def representable(oracle: Any) -> bool:
    """Whether the null standard deviation leaves SMMD² within float64 (see ``measure``)."""
    return bool(exact.centred_second_moment(oracle) > exact.mpf("1e-560"))


def worth_trying(case: Case, z: np.ndarray) -> bool:
    """Leave out the adaptive width of a sample on the origin, and what is not representable."""
    if case.kernel.adaptive and not np.any(z):
        return False
    if case.label.startswith(("IMQ", "Sliced")):  # their mixtures reach to the widest kernels
        return True
    return representable(case.oracle(z))


def error(value: Any, truth: Any) -> float:
    """|value − truth| in units of max(1, |truth|); infinite if the value is not finite."""
    number = float(value)
    if not np.isfinite(number):
        return float("inf")
    return float(abs(exact.mpf(number) - truth) / max(1, abs(truth)))

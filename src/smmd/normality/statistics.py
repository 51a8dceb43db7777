"""The statistics that `normality_test` knows, as functions of a normalized sample (…, n, d).

Formulas live in `measure.py` and `classical.py`; here they get their published factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from smmd import arrays, classical, measure
from smmd.arrays import Array
from smmd.kernels import Gaussian, HenzeZirkler, Kernel, as_kernel


@dataclass(frozen=True)
class Statistic:
    """One statistic: what it is called, what it applies to, and how it is computed.

    ``divisor`` says which (co)variance the sample is normalized by: "n-1", or "n" as published.
    Large values speak against normality; for a ``two_sided`` statistic large absolute values.
    """

    name: str
    label: str
    nulls: tuple[str, ...]
    divisor: str
    value: Callable[[Array, Kernel], Array]
    takes_kernel: bool = True
    two_sided: bool = False

    def extreme(self, z: Array, kernel: Kernel) -> Array:
        """The value, or its size for a two-sided statistic: what is compared with the null."""
        value = self.value(z, kernel)
        return abs(value) if self.two_sided else value

    def of_normalized(self, z: np.ndarray, null: str, kernel: Kernel) -> float:
        """The statistic of one sample (n, d) that was normalized with n−1."""
        n = z.shape[0]
        if self.divisor == "n" and null != "standard":
            z = z * math.sqrt(n / (n - 1))
        return float(arrays.to_numpy(self.value(z, kernel), "a test of normality"))


def _smmd(z: Array, kernel: Kernel) -> Array:
    if z.ndim == 2 or kernel.adaptive:
        return measure.smmd(z, kernel=kernel)
    # Simulated samples have no far points that would be worth measure.smmd's second look.
    return measure.mmd2(z, kernel) / math.sqrt(_null_variance(kernel, *z.shape[-2:]))


@lru_cache(maxsize=256)
def _null_variance(kernel: Kernel, n: int, d: int) -> float:
    return measure.null_variance(n, d, kernel)


def _bhep(z: Array, kernel: Kernel) -> Array:
    return z.shape[-2] * measure.mmd2(z, kernel, unbiased=False)


def _henze_zirkler(z: Array, kernel: Kernel) -> Array:
    return _bhep(z, HenzeZirkler())


def _skewness(z: Array, kernel: Kernel) -> Array:
    """n b₁/6 with b₁ = (1/n²) Σ (z_j·z_k)³ (Mardia 1970)."""
    return classical.mardia(z).skewness * (z.shape[-2] / 6.0)


def _kurtosis(z: Array, kernel: Kernel) -> Array:
    """(b₂ − d(d+2)) / √(8 d(d+2)/n) with b₂ = mean‖z‖⁴ (Mardia 1970)."""
    n, d = z.shape[-2:]
    return classical.mardia(z).kurtosis / math.sqrt(8.0 * d * (d + 2) / n)


_ALL = ("standard", "diagonal", "normal")
STATISTICS = {
    s.name: s
    for s in (
        Statistic("smmd", "SMMD²", _ALL, "n-1", _smmd),
        Statistic("bhep", "BHEP", _ALL, "n", _bhep),
        Statistic("henze-zirkler", "Henze–Zirkler HZ", ("normal",), "n", _henze_zirkler, False),
        Statistic("mardia-skewness", "Mardia's skewness", ("normal",), "n", _skewness, False),
        Statistic("mardia-kurtosis", "Mardia's kurtosis", ("normal",), "n", _kurtosis, False, True),
    )
}


def find(name: Any, null: str, kernel: Any) -> Statistic:
    """The statistic of that name, if it goes with the null and the kernel."""
    if name not in STATISTICS:
        raise ValueError(
            f"statistic must be one of {', '.join(map(repr, STATISTICS))}; got {name!r}"
        )
    found = STATISTICS[name]
    if null not in found.nulls:
        raise ValueError(
            f"statistic {name!r} tests null 'normal' only (unknown mean and covariance), "
            f"got null={null!r}; use statistic='smmd'"
        )
    as_kernel(kernel)
    own = HenzeZirkler() if name == "henze-zirkler" else None
    if not found.takes_kernel and kernel not in (Gaussian(), own):
        raise ValueError(
            f"kernel={kernel!r} does not apply to statistic {name!r}; leave it out, or use "
            "statistic='bhep', which takes any kernel"
        )
    return found

"""Every function of r² that sums over pairs meet, as the statistic's terms hold it."""

from __future__ import annotations

import numpy as np

import smmd
from smmd import measure
from smmd.radial import Radial

KERNELS = {
    "narrow": smmd.Gaussian(1 / 8),
    "narrower": smmd.Gaussian(1 / 32),
    "wide": smmd.Gaussian(1e3),
    "Henze-Zirkler": smmd.HenzeZirkler(),
    "scales": smmd.MultiScale((1 / 16, 1 / 8, 1 / 4)),
    "mixed scales": smmd.MultiScale((1 / 8, 1e3)),
    "imq": smmd.IMQ(),
    "wide imq": smmd.IMQ(1e3),
    "sliced": smmd.Sliced(),
}


def pair_term(name: str, n: int, d: int) -> Radial:
    """The pair term of SMMD² for n points in d dimensions: in null standard deviations."""
    key = (KERNELS[name], n, d, True, False, 680.0)
    return measure._fixed_terms(*key).pair


def sample(n: int, d: int, *batch: int, seed: int = 0, shift: float = 0.0) -> np.ndarray:
    """Points that are not quite standard normal."""
    return 1.1 * np.random.default_rng(seed).standard_normal((*batch, n, d)) + 0.1 + shift

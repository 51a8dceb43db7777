"""The law of SMMD^2 under each null, without simulation and with it."""

from smmd.nulls.for_kernel import Found, law_for
from smmd.nulls.law import (
    NullLaw,
    analytic_law,
    henze_zirkler_law,
    lognormal_law,
    pearson3_law,
)
from smmd.nulls.spectrum import NULLS, Null, Spectrum, kernel_spectrum, projected_spectrum

__all__ = [
    "NULLS",
    "Found",
    "Null",
    "NullLaw",
    "Spectrum",
    "analytic_law",
    "henze_zirkler_law",
    "kernel_spectrum",
    "law_for",
    "lognormal_law",
    "pearson3_law",
    "projected_spectrum",
]

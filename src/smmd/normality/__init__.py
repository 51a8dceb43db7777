"""Tests of multivariate normality: results, diagnosis and power."""

from smmd.normality.prepare import TiesWarning
from smmd.normality.result import NormalityResult
from smmd.normality.testing import SimulatedWarning, normality_test, threshold

__all__ = [
    "NormalityResult",
    "SimulatedWarning",
    "TiesWarning",
    "normality_test",
    "threshold",
]

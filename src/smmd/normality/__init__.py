"""Tests of multivariate normality: results, diagnosis and power."""

from smmd.normality.diagnosis import Diagnosis, diagnose
from smmd.normality.power import PowerResult, power
from smmd.normality.prepare import TiesWarning
from smmd.normality.result import NormalityResult
from smmd.normality.testing import SimulatedWarning, normality_test, threshold

__all__ = [
    "Diagnosis",
    "NormalityResult",
    "PowerResult",
    "SimulatedWarning",
    "TiesWarning",
    "diagnose",
    "normality_test",
    "power",
    "threshold",
]

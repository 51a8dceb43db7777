"""Measure, test and enforce multivariate normality in closed form.

    import smmd
    smmd.smmd(z)        # 0 ± 1 if the rows of z are standard normal, larger if not

Arrays of NumPy, PyTorch, JAX and CuPy go in, shape (..., n, d), and the same kind comes out.
Tests, and the parts for a framework (``smmd.torch``, ``smmd.keras``, ``smmd.wae``), are imported
when they are first named, so that ``import smmd`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from smmd.classical import Mardia, effect_size, mardia
from smmd.errors import MissingExtra
from smmd.kernels import IMQ, Adaptive, Gaussian, HenzeZirkler, Kernel, MultiScale, Sliced
from smmd.measure import (
    cramer_wold,
    mmd2,
    mmd2_two_sample,
    null_mean,
    null_variance,
    smmd,
    value_and_grad,
    witness,
)
from smmd.monitor import BStatistic, EStatistic
from smmd.samples import code_normalize, standardize, whiten
from smmd.shift import optimal_shift, outlier_delta

if TYPE_CHECKING:
    from smmd import keras as keras
    from smmd import sigreg as sigreg
    from smmd import torch as torch
    from smmd import wae as wae
    from smmd.normality import NormalityResult, diagnose, normality_test, threshold
    from smmd.normality.power import power
    from smmd.pairs import explain

__version__ = "0.1.0"

__all__ = [
    "IMQ",
    "Adaptive",
    "BStatistic",
    "EStatistic",
    "Gaussian",
    "HenzeZirkler",
    "Kernel",
    "Mardia",
    "MissingExtra",
    "MultiScale",
    "NormalityResult",
    "Sliced",
    "code_normalize",
    "cramer_wold",
    "diagnose",
    "effect_size",
    "explain",
    "mardia",
    "mmd2",
    "mmd2_two_sample",
    "normality_test",
    "null_mean",
    "null_variance",
    "optimal_shift",
    "outlier_delta",
    "power",
    "smmd",
    "standardize",
    "threshold",
    "value_and_grad",
    "whiten",
    "witness",
]

#: Public names that are imported when first used, and where they live.
_LATER = {
    "NormalityResult": "smmd.normality",
    "diagnose": "smmd.normality",
    "normality_test": "smmd.normality",
    "power": "smmd.normality",
    "threshold": "smmd.normality",
    "explain": "smmd.pairs",
}
#: Parts of the package that are reached as ``smmd.torch`` after ``import smmd`` alone.
_PARTS = ("keras", "sigreg", "torch", "wae")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"smmd.{name}")
    if name not in _LATER:
        raise AttributeError(f"module 'smmd' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value  # a submodule of the same name must not win from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})

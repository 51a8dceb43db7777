"""Measure, test and enforce multivariate normality in closed form.

    import smmd
    smmd.smmd(z)        # 0 ± 1 if the rows of z are standard normal, larger if not

Arrays of NumPy, PyTorch, JAX and CuPy go in, shape (..., n, d), and the same kind comes out.
"""

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
    "Sliced",
    "code_normalize",
    "cramer_wold",
    "effect_size",
    "mardia",
    "mmd2",
    "mmd2_two_sample",
    "null_mean",
    "null_variance",
    "optimal_shift",
    "outlier_delta",
    "smmd",
    "standardize",
    "value_and_grad",
    "whiten",
    "witness",
]

"""The exact null mean of SMMD² for any mixture of Gaussian kernels: linear in the mixture."""

from __future__ import annotations

import math

import numpy as np

from smmd import closed_form
from smmd.kernels import Kernel
from smmd.nulls.moments import null_mean
from smmd.nulls.spectrum import Null


def mean_of_smmd(kernel: Kernel, null: Null, n: int, d: int) -> float:
    """E SMMD² under the null, (co)variances with n − 1; 0 where nothing is estimated."""
    if null == "standard":
        return 0.0
    # An adaptive width is fixed once the trace of the sample covariance is: see `for_kernel.py`.
    square = np.asarray(d * (n - 1) / n) if kernel.adaptive else None
    mixture = kernel.resolve(n, d, square)
    widths = tuple((1.0 / np.ravel(mixture.precisions)).tolist())
    weights = tuple(np.exp(mixture.log_weights).tolist())
    log_second = float(np.ravel(closed_form.log_null_second_moment(mixture, d))[0])
    return null_mean(null, n, d, widths, weights) * math.sqrt(0.5) * math.exp(-0.5 * log_second)

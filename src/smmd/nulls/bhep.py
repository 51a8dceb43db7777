"""The law of BHEP = n MMD²_b, with the 1/n (co)variances of the published test.

Mean, variance and skewness are exact for moderate n and extrapolated beyond, as for SMMD² in
`moments.py`; the shape is the chi-square sum of the null's limit law.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log1p, sqrt

import numpy as np

from smmd.kernels import Kernel, as_kernel
from smmd.nulls.estimated import least_sample_size, raw_moment
from smmd.nulls.for_kernel import Found, gaussian_width
from smmd.nulls.law import NullLaw
from smmd.nulls.moments import null_moments
from smmd.nulls.shapes import fractional_power
from smmd.nulls.spectrum import Null, check_null, projected_spectrum
from smmd.nulls.validity import out_of_reach, verdict

#: Rounding spoils the third cumulant of larger samples; from there on 1/n terms carry on.
_LARGEST_N = 400
_SKEWNESS_ERROR = 1e-2


def bhep_law(kernel: Kernel, null: Null, n: int, d: int) -> Found:
    """The analytic law of BHEP with a kernel, or why there is none."""
    check_null(null)
    gamma2, reason = gaussian_width(as_kernel(kernel), null, n, d)
    if gamma2 is None:
        return Found(None, reason)
    if kernel.adaptive:
        gamma2 *= n / (n - 1)  # with 1/n variances Σ‖z_i‖² is n d
    reason = out_of_reach(null, n, d)
    if reason:
        return Found(None, reason)
    try:
        law = _law(null, n, d, gamma2)
    except (ValueError, FloatingPointError) as error:
        return Found(None, f"the analytic law cannot be computed: {error}")
    return Found(law, law.reason)


@lru_cache(maxsize=256)
def _law(null: Null, n: int, d: int, gamma2: float) -> NullLaw:
    valid, reason = verdict(
        null, n, d, gamma2, null_moments(null, n, d, gamma2).skewness, bhep=True
    )
    spectrum = projected_spectrum(null, d, gamma2)
    # Beyond the n at which moments are still exact: limit + a/n + b/n², fitted at two smaller n.
    t1, t2, t3 = (spectrum.trace(j) for j in (1, 2, 3))
    limit = np.array([t1, 2.0 * t2, 8.0 * t3])
    largest = int(min(_LARGEST_N, (_SKEWNESS_ERROR * t3 / 1e-15) ** (1 / 3)))
    half = max(largest // 2, least_sample_size(null, d))
    if n <= largest:
        cumulants = _cumulants(null, n, d, gamma2)
    else:
        small, large = (
            m * (_cumulants(null, m, d, gamma2) / limit - 1.0) for m in (half, 2 * half)
        )
        b = (small - large) * 2.0 * half
        a = large - b / (2.0 * half)
        cumulants = limit * (1.0 + a / n + b / n**2)
    mean, variance, third = (float(c) for c in cumulants)
    skewness = third / variance**1.5
    if not (variance > 0.0 and skewness > 0.0):
        raise ValueError("its moments are lost in rounding")
    return NullLaw(
        null=null,
        n=n,
        d=d,
        gamma2=gamma2,
        mean=mean,
        sd=sqrt(variance),
        skewness=skewness,
        kurtosis=None,
        valid=valid,
        reason=reason,
        shape=fractional_power(spectrum, skewness),
    )


def _cumulants(null: Null, n: int, d: int, gamma2: float) -> np.ndarray:
    """The first three cumulants of n MMD²_b."""
    stretch = 1.0 if null == "standard" else n / (n - 1)
    first, second, third = (raw_moment(p, null, n, d, gamma2, True, stretch) for p in (1, 2, 3))
    constant = exp(-0.5 * d * log1p(2.0 / gamma2)) + 1.0 / n
    variance = second - first**2
    skew = third - 3.0 * first * second + 2.0 * first**3
    return np.array([n * (constant + first), n**2 * variance, n**3 * skew])

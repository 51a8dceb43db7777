"""Which analytic law belongs to a kernel: the one door from `normality/` into this room."""

from __future__ import annotations

from typing import NamedTuple

from smmd.kernels import Adaptive, Gaussian, HenzeZirkler, Kernel, MultiScale, Sliced, as_kernel
from smmd.nulls.law import NullLaw, analytic_law
from smmd.nulls.mixture import mixture_law
from smmd.nulls.spectrum import Null, check_kernel, check_null
from smmd.nulls.validity import out_of_reach


class Found(NamedTuple):
    """A law and whether to trust it.

    law      None where there is none at all; `reason` then says why.
    reason   why the law's p-values must not be relied on; empty where they may.
    """

    law: NullLaw | None
    reason: str

    @property
    def valid(self) -> bool:
        """True if the law exists and keeps its level by simulation."""
        return self.law is not None and not self.reason


def law_for(kernel: Kernel, null: Null, n: int, d: int) -> Found:
    """The analytic law of SMMD² with any kernel, or why there is none.

    Where ``Found.valid`` is False, simulate instead (`montecarlo.py`) and give the reason.

    >>> import smmd
    >>> found = law_for(smmd.Gaussian(), "standard", 100, 8)
    >>> found.valid, round(found.law.isf(0.05), 2)
    (True, 1.76)
    >>> law_for(smmd.Adaptive(), "standard", 100, 8).law is None
    True
    """
    check_null(null)
    check_kernel(d, 1.0)
    gamma2, reason = gaussian_width(as_kernel(kernel), null, n, d)
    if gamma2 is None and kernel.adaptive:
        return Found(None, reason)
    reason = out_of_reach(null, n, d)
    if reason:
        return Found(None, reason)
    try:
        if gamma2 is None:
            law = mixture_law(kernel, null, n, d)
        else:
            law = analytic_law(null, n, d, gamma2)
    except (ValueError, FloatingPointError) as error:  # the spectrum or a moment left float64
        return Found(None, f"the analytic law cannot be computed: {error}")
    return Found(law, law.reason)


def gaussian_width(kernel: Kernel, null: Null, n: int, d: int) -> tuple[float | None, str]:
    """The fixed squared width γ² the kernel amounts to under a null, or None and why not."""
    if isinstance(kernel, Gaussian):
        return kernel.gamma2(d), ""
    if isinstance(kernel, HenzeZirkler):
        return kernel.gamma(n, d) ** 2, ""
    if isinstance(kernel, Adaptive):
        if null == "standard":
            return None, (
                "the adaptive width varies from sample to sample under the null 'standard', and "
                "no analytic law is known for it"
            )
        # After dividing by n-1 (co)variances, sum ||z_i||² = trace of (n-1) I = d (n-1), always.
        return kernel.scale * d * (n - 1) / n, ""
    if isinstance(kernel, Sliced) and d == 1:
        return float(kernel.gamma) ** 2, ""
    if isinstance(kernel, MultiScale) and len(set(kernel.scales)) == 1:
        return kernel.scales[0] * d, ""
    return None, f"{type(kernel).__name__} is a mixture of Gaussians, and has no one width"

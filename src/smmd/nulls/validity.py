"""Where the analytic laws keep their level, by the committed calibration grid.

`benchmarks/results/calibration.csv` is the measurement, `docs/calibration.md` its tables, and
`tests/nulls/test_region.py` holds the region against the simulated quantiles.
"""

from fractions import Fraction
from math import exp, log1p

from smmd.nulls.estimated import least_sample_size
from smmd.nulls.spectrum import Null

#: Outside these no law is even computed.
LEAST_N = 10
LARGEST_D = 64

#: From here on any dimension; fewer rows do where there are few columns.
MANY_ROWS = 50
FEW_ROWS, FEW_COLUMNS = 20, 4
#: Rows for every column, where a covariance is estimated.
ROWS_PER_COLUMN = 5
#: Rarer coincidences than this make the law's tail depend on more than its first moments.
LARGEST_SKEWNESS = 2.5
#: Scales s = gamma^2/d.
NARROWEST, WIDEST = 1 / 128, 2.0
#: How many of n points a kernel reaches from one of them on average, n E k(x, y).  With fewer,
#: p-values hang on rare close pairs; at 0.07 the level at 0.05 is wrong by a tenth.
LEAST_NEIGHBOURS = 0.075
#: BHEP's moments are lost in rounding with wide kernels, and its tail is off in many columns.
WIDEST_BHEP, LARGEST_D_BHEP = 1.0, 16
MANY_COLUMNS_BHEP, WIDEST_BHEP_IN_MANY = 9, 1 / 2
_ROUNDING = 1e-9


def out_of_reach(null: Null, n: int, d: int) -> str:
    """Why no analytic law is even computed; empty if one is."""
    least = LEAST_N if null == "standard" else max(LEAST_N, least_sample_size(null, d))
    if n < least:
        return f"n = {n} is below {least}, the least for an analytic law with d = {d}"
    if d > LARGEST_D:
        return f"d = {d} is above {LARGEST_D}, the largest dimension with an analytic law"
    return ""


def verdict(
    null: Null, n: int, d: int, gamma2: float, skewness: float, *, bhep: bool = False
) -> tuple[bool, str]:
    """Whether p-values of SMMD^2 (or BHEP) keep their level, and if not, why."""
    widest = WIDEST
    if bhep:
        widest = WIDEST_BHEP if d < MANY_COLUMNS_BHEP else WIDEST_BHEP_IN_MANY
    reason = (
        out_of_reach(null, n, d)
        or _too_few_rows(null, n, d)
        or wrong_width(n, d, gamma2, widest)
        or _too_skewed(skewness)
    )
    if not reason and bhep and d > LARGEST_D_BHEP:
        reason = f"d = {d} is above {LARGEST_D_BHEP}, up to which the level of BHEP is right"
    return not reason, reason


def _too_few_rows(null: Null, n: int, d: int) -> str:
    least = FEW_ROWS if d <= FEW_COLUMNS else MANY_ROWS
    if null == "normal":
        least = max(least, ROWS_PER_COLUMN * d)
    if n >= least:
        return ""
    return f"n = {n} is below {least}, from where on its level is right with d = {d}"


def wrong_width(n: int, d: int, gamma2: float, widest: float = WIDEST) -> str:
    """Why a Gaussian kernel of this width is outside the region; empty if it is not."""
    scale = gamma2 / d
    if scale < NARROWEST * (1.0 - _ROUNDING):
        return f"scale s = {scale:.4g} is below {NARROWEST:g}, the narrowest that was measured"
    if scale > widest * (1.0 + _ROUNDING):
        return f"scale s = {scale:.4g} is above {widest:g}, up to which its level is right"
    neighbours = n * exp(-0.5 * d * log1p(2.0 / gamma2))
    if neighbours < LEAST_NEIGHBOURS:
        return (
            f"a kernel of scale s = {scale:.4g} with d = {d} reaches {neighbours:.2g} of {n} "
            f"points on average, less than {LEAST_NEIGHBOURS}: p-values hang on rare close pairs"
        )
    return ""


def _too_skewed(skewness: float) -> str:
    if skewness < LARGEST_SKEWNESS:
        return ""
    return (
        f"the law's skewness, {skewness:.1f}, is above {LARGEST_SKEWNESS}, "
        "up to which its level is right"
    )


def in_words() -> str:
    """The region as the documentation gives it."""
    return "\n".join(
        (
            f"- n ≥ {MANY_ROWS}, or n ≥ {FEW_ROWS} with d ≤ {FEW_COLUMNS}; d ≤ {LARGEST_D};",
            f"- n ≥ {ROWS_PER_COLUMN} d where the covariance is estimated (null “normal”);",
            f"- {Fraction(NARROWEST)} ≤ s ≤ {Fraction(WIDEST)} (s = γ²/d), and the kernel reaches "
            f"enough points: n (1 + 2/γ²)^(−d/2) ≥ {LEAST_NEIGHBOURS};",
            f"- the law's own skewness is below {LARGEST_SKEWNESS:g};",
            f"- for BHEP, d ≤ {LARGEST_D_BHEP}, s ≤ {Fraction(WIDEST_BHEP)}, and s ≤ "
            f"{Fraction(WIDEST_BHEP_IN_MANY)} from d = {MANY_COLUMNS_BHEP} on.",
        )
    )

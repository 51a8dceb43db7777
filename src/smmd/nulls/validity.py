"""Where the analytic laws keep their level, by the committed calibration grid.

`benchmarks/results/calibration.csv` is the measurement, `docs/calibration.md` its tables.
"""

from smmd.nulls.estimated import least_sample_size
from smmd.nulls.moments import NullMoments
from smmd.nulls.spectrum import Null

LEAST_N = 10
LARGEST_D = 64


def out_of_reach(null: Null, n: int, d: int) -> str:
    """Why no analytic law is even computed; empty if one is."""
    least = LEAST_N if null == "standard" else max(LEAST_N, least_sample_size(null, d))
    if n < least:
        return f"n = {n} is below {least}, the least for an analytic law with d = {d}"
    if d > LARGEST_D:
        return f"d = {d} is above {LARGEST_D}, the largest dimension with an analytic law"
    return ""


def verdict(null: Null, n: int, d: int, gamma2: float, moments: NullMoments) -> tuple[bool, str]:
    """Whether p-values keep their level, and if not, why."""
    reason = out_of_reach(null, n, d)
    return not reason, reason

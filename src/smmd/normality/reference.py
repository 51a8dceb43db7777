"""Which law a statistic is compared with: analytic where that is right, simulated elsewhere."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from scipy import stats

from smmd.kernels import HenzeZirkler, Kernel
from smmd.normality.statistics import Statistic
from smmd.nulls import Null, cache, henze_zirkler_law, law_for, montecarlo
from smmd.nulls.bhep import bhep_law
from smmd.nulls.means import mean_of_smmd
from smmd.samples import whole_number

METHODS = ("analytic", "monte-carlo")
#: The smallest number of simulated samples that can give p = 0.05.
_FEWEST = 19
#: Above this many rows a kernel statistic is simulated with fewer, and moved to its exact mean.
LARGEST_SIMULATED = 2000
_STAND_IN = 1000
#: Pairs of rows in all samples of a simulation: no more, or it does not end.
_MOST_PAIRS = 1e15


class Law(Protocol):
    """What a null distribution answers."""

    def __hash__(self) -> int: ...
    def sf(self, x: Any) -> Any: ...
    def isf(self, alpha: float) -> float: ...


@dataclass(frozen=True)
class Reference:
    """A null distribution, where it comes from, and what there is to tell about it."""

    law: Law
    method: str
    description: str
    n_resamples: int = 0
    notes: tuple[str, ...] = ()

    def pvalue(self, extreme: float) -> float:
        """P(a value at least as extreme) under the null; what underflows is tiny, not 0."""
        return float(min(1.0, max(sys.float_info.min, float(self.law.sf(extreme)))))

    def threshold(self, alpha: float) -> float:
        """What the statistic exceeds with probability alpha under the null."""
        return _threshold(self.law, alpha)

    def standard_error(self, p: float) -> float | None:
        """Of a simulated p-value; None where nothing was simulated."""
        if isinstance(self.law, montecarlo.SimulatedNull):
            return self.law.standard_error(p)
        return None


@functools.lru_cache(maxsize=256)
def _threshold(law: Law, alpha: float) -> float:
    """Kept, because inverting a law costs several p-values."""
    return float(law.isf(alpha))


@dataclass(frozen=True)
class TwoSidedNormal:
    """The law of |Z|, Z standard normal."""

    def sf(self, x: Any) -> Any:
        return 2.0 * stats.norm.sf(np.abs(x))

    def isf(self, alpha: float) -> float:
        return float(stats.norm.isf(0.5 * alpha))

    def pdf(self, x: Any) -> Any:
        return np.where(np.asarray(x) < 0.0, 0.0, 2.0 * stats.norm.pdf(x))


def default_resamples(n: int) -> int:
    """9999; fewer for large samples, so that a simulation takes seconds."""
    return 9999 if n <= 500 else 1999


def find(
    statistic: Statistic,
    kernel: Kernel,
    null: str,
    n: int,
    d: int,
    *,
    method: str = "analytic",
    n_resamples: int | None = None,
    rng: int | np.random.Generator | None = None,
    batch: int | None = None,
) -> Reference:
    """The law to compare with.  "analytic" falls back on simulation where it is not right."""
    if method not in METHODS:
        raise ValueError(f"method must be 'analytic' or 'monte-carlo', got {method!r}")
    if n_resamples is not None:
        n_resamples = whole_number("n_resamples", n_resamples, _FEWEST)
    reason = ""
    if method == "analytic":
        found = _analytic(statistic, kernel, null, n, d)
        if isinstance(found, Reference):
            return found
        reason = found
    reference = _simulated(statistic, kernel, null, n, d, n_resamples, rng, batch)
    if reason:
        note = f"Simulated, because the analytic law does not hold here: {reason}."
        return replace(reference, notes=(note, *reference.notes))
    return reference


def _analytic(statistic: Statistic, kernel: Kernel, null: str, n: int, d: int) -> Reference | str:
    """The analytic reference, or why there is none."""
    if statistic.name == "henze-zirkler":
        law: Law = henze_zirkler_law(n, d)
        note = (
            "The log-normal law is the published one, right in the limit only: its true level "
            "at a nominal 5 % is 2 to 6 %.  method='monte-carlo' has the level it names."
        )
        return Reference(law, "analytic", "log-normal law as published", notes=(note,))
    if statistic.name.startswith("mardia"):
        note = (
            "The law is that of the limit of many rows, as published; "
            "method='monte-carlo' is right at any n."
        )
        if statistic.two_sided:
            return Reference(TwoSidedNormal(), "analytic", "normal law as published", notes=(note,))
        degrees = d * (d + 1) * (d + 2) // 6
        law = stats.chi2(degrees)
        return Reference(
            law, "analytic", f"χ² law with {degrees} degrees of freedom, as published",
            notes=(note,),
        )  # fmt: skip
    lookup = law_for if statistic.name == "smmd" else bhep_law
    found = lookup(kernel, cast(Null, null), n, d)
    if not found.valid:
        return str(found.reason)
    assert found.law is not None
    return Reference(found.law, "analytic", "analytic law, nothing simulated")


def _simulated(
    statistic: Statistic,
    kernel: Kernel,
    null: str,
    n: int,
    d: int,
    n_resamples: int | None,
    rng: int | np.random.Generator | None,
    batch: int | None,
) -> Reference:
    if statistic.name == "henze-zirkler":
        kernel = HenzeZirkler()
    size, notes = n, []
    if n > LARGEST_SIMULATED and statistic.takes_kernel and _can_stand_in(kernel, null):
        size = min(n, max(_STAND_IN, 20 * d))
    if size < n:
        moved = f", and moved to its exact mean at n = {n}" if statistic.name == "smmd" else ""
        notes.append(
            f"The law was simulated with {size} rows a sample{moved}: up to n = {n} it changes by "
            f"a share of the order d/{size}."
        )
    count = default_resamples(size) if n_resamples is None else n_resamples
    if statistic.takes_kernel and count * float(size) ** 2 > _MOST_PAIRS:
        raise ValueError(
            f"simulating {count} samples of {size} rows with kernel {kernel!r} would take weeks; "
            "choose a kernel of fixed width, such as smmd.Gaussian()"
        )

    def build() -> np.ndarray:
        return montecarlo.simulate(
            functools.partial(statistic.extreme, kernel=kernel), null, size, d,
            n_resamples=count, rng=rng, batch=batch, divisor=statistic.divisor,
        )  # fmt: skip

    if rng is None:
        key = {
            "recipe": montecarlo.RECIPE,
            "seed": montecarlo.SEED,
            "statistic": statistic.name,
            "null": null,
            "n": size,
            "d": d,
            "kernel": repr(kernel) if statistic.takes_kernel else "",
            "divisor": statistic.divisor,
            "n_resamples": count,
        }
        values = cache.fetch(key, build)
    else:
        values = build()
    if size < n and statistic.name == "smmd":
        there, here = (mean_of_smmd(kernel, cast(Null, null), m, d) for m in (n, size))
        values = values + (there - here)
    law = montecarlo.SimulatedNull(values)
    return Reference(law, "monte-carlo", f"{count} simulated samples", count, tuple(notes))


def _can_stand_in(kernel: Kernel, null: str) -> bool:
    """Whether the law at another n is the same up to its mean: not where the width follows n."""
    return not isinstance(kernel, HenzeZirkler) and not (kernel.adaptive and null == "standard")

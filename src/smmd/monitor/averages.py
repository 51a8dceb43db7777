"""The B- and the E-statistic (paper, section 3.1): SMMD² averaged over batches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING

from smmd.monitor.batch import Batch, how, number_of, of_average

if TYPE_CHECKING:
    from smmd.nulls.shapes import Shape

#: P(|N(0, 1)| > 3): what a three-sigma band would do if SMMD² were normally distributed.
THREE_SIGMA = math.erfc(3.0 / math.sqrt(2.0))


def _check_between(name: str, value: object, most: float) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0.0 < value < most):  # type: ignore[operator]
        span = f"in (0, {most:g})" if most < math.inf else "positive and finite"
        raise ValueError(f"{name} must be a number {span}, got {value!r}")


class _Average:
    """What the two statistics share: bands, rates and words."""

    batch: Batch | None
    count: int
    _letter = "?"

    def _mean_weight(self) -> float:
        """Σ c_k: the mean of the average of ones."""
        raise NotImplementedError

    def _power_sum(self, power: int) -> float:
        """Σ c_k^power over the independent batches averaged."""
        raise NotImplementedError

    def _value(self) -> float:
        return float(self.value)  # type: ignore[attr-defined]

    @property
    def mean(self) -> float:
        """The mean of ``value`` under normality: 0 unless ``batch`` says otherwise."""
        return self._mean_weight() * self.batch.mean if self.batch else 0.0

    @property
    def sd(self) -> float:
        """The standard deviation of ``value`` under normality."""
        unit = self.batch.sd if self.batch else 1.0
        return unit * math.sqrt(self._power_sum(2)) if self.count else math.inf

    def band(self, sigmas: float = 3) -> tuple[float, float]:
        """The paper's band: mean ± sigmas standard deviations under normality."""
        _check_between("sigmas", sigmas, math.inf)
        return self.mean - sigmas * self.sd, self.mean + sigmas * self.sd

    def exact_band(self, level: float = THREE_SIGMA) -> tuple[float, float]:
        """The band that ``value`` leaves with probability ``level``, half on either side.

        By the law of a batch of ``batch`` and of averages of such; the default level is what three
        sigmas would be of a normal law.
        """
        _check_between("level", level, 1.0)
        shape = self._shape("exact_band")
        low, high = (self.mean + self.sd * shape.isf(p) for p in (1.0 - 0.5 * level, 0.5 * level))
        return float(low), float(high)

    def false_alarms(self, sigmas: float = 3) -> tuple[float, float]:
        """How often normal codes fall below and above ``band(sigmas)``."""
        _check_between("sigmas", sigmas, math.inf)
        shape = self._shape("false_alarms")
        return float(shape.cdf(-sigmas)), float(shape.sf(sigmas))

    def false_alarm_rate(self, sigmas: float = 3) -> float:
        """How often normal codes leave ``band(sigmas)``: at 3, not quite the nominal 0.27 %."""
        return sum(self.false_alarms(sigmas))

    def _shape(self, method: str) -> Shape:
        if self.batch is None:
            raise ValueError(
                f"{method} depends on the batches' size and dimension: make the statistic with "
                "batch=smmd.monitor.Batch(n, d, kernel)"
            )
        if not self.count:
            raise ValueError(f"{method} is not defined before the first update")
        square = self._power_sum(2)
        third = self._power_sum(3) / square**1.5
        return of_average(self.batch.shape, third, self._power_sum(4) / square**2)

    @property
    def converged(self) -> bool:
        """Whether ``value`` lies in the three-sigma band: the paper's rule of thumb."""
        low, high = self.band()
        return self.count > 0 and low <= self._value() <= high

    def verdict(self) -> str:
        """What ``value`` says about the codes, in words."""
        if not self.count:
            return f"{self._letter}: no batch yet"
        value, (low, high) = self._value(), self.band()
        said = f"{self._letter} = {value:.3g} over {_batches(self.count)}{how(self.batch)} is "
        if math.isnan(low):
            return f"{said}to be compared with {self.mean:.3g}; {_known(self.batch)}"
        if value > high:
            said += f"above the three-sigma band [{low:.3g}, {high:.3g}]: not converged to N(0, I)"
        elif value < low:
            said += f"below the three-sigma band [{low:.3g}, {high:.3g}]: {_below(self.batch)}"
        elif value >= low:
            said += f"in the three-sigma band [{low:.3g}, {high:.3g}]: as for codes from N(0, I)"
        else:
            said += "not a number: look at the codes"
        return f"{said}. {self._rate()}"

    def _rate(self) -> str:
        if self.batch is None or self.batch.reason:
            return "Normal codes leave it in about 0.3 % of cases"
        below, above = (100 * rate for rate in self.false_alarms())
        total = f"{below + above:.2g} % of cases ({below:.2g} below, {above:.2g} above)"
        return f"Normal codes leave it in {total}"

    def as_dict(self, prefix: str = "smmd/") -> dict[str, float]:
        """Flat floats for a logger: the value, the three-sigma band, and whether it holds."""
        letter, (low, high) = self._letter.lower(), self.band()
        return {
            f"{prefix}{letter}": self._value(),
            f"{prefix}{letter}_low": low,
            f"{prefix}{letter}_high": high,
            f"{prefix}{letter}_converged": float(self.converged),
        }


@dataclass
class BStatistic(_Average):
    """The mean of SMMD² over m batches; variance 1/m under normality.

    With ``batch=smmd.monitor.Batch(n, d, kernel, null)`` bands follow how batches are normalized,
    and exact bands and false-alarm rates are known.

    >>> import smmd
    >>> b = smmd.BStatistic()
    >>> for value in (0.5, -1.0, 0.8, 0.1): b.update(value)
    >>> round(b.value, 3), b.band(), b.converged
    (0.1, (-1.5, 1.5), True)
    >>> b = smmd.BStatistic(50, 6.0, batch=smmd.monitor.Batch(100, 8))
    >>> print(b.verdict().replace(". ", "\\n"))
    B = 0.12 over 50 batches is in the three-sigma band [-0.424, 0.424]: as for codes from N(0, I)
    Normal codes leave it in 0.28 % of cases (0.096 below, 0.18 above)
    """

    count: int = 0
    total: float = 0.0
    batch: Batch | None = field(default=None, kw_only=True)
    _letter = "B"

    def update(self, value: object) -> None:
        """Add one batch's SMMD²."""
        number = number_of(value)
        self.count += 1
        self.total += number

    def reset(self) -> None:
        """Forget all batches."""
        self.count, self.total = 0, 0.0

    @property
    def value(self) -> float:
        """The mean so far; NaN before the first batch."""
        return self.total / self.count if self.count else math.nan

    def _mean_weight(self) -> float:
        return 1.0

    def _power_sum(self, power: int) -> float:
        return float(self.count) ** (1 - power)


@dataclass
class EStatistic(_Average):
    """The exponential moving average of SMMD², started at 0.

    E_b = α E_{b−1} + (1 − α) S_b has variance (1 − α^(2m))(1 − α)/(1 + α) under normality.  (The
    paper prints the exponent 2m + 2; the limit is the same.)  It does not become normal as m grows:
    its last few batches always weigh as much.

    ``batch`` is as in ``BStatistic``; ``parallel`` the number of independent batches whose mean
    each update is, as when ranks hold batches of their own.

    >>> import smmd
    >>> e = smmd.EStatistic(momentum=0.99)
    >>> for _ in range(2000): e.update(0.1)
    >>> low, high = e.band()
    >>> round(e.value, 3), round(high, 3), e.converged
    (0.1, 0.213, True)
    """

    momentum: float = 0.99
    count: int = 0
    value: float = 0.0
    batch: Batch | None = field(default=None, kw_only=True)
    parallel: int = field(default=1, kw_only=True)
    _letter = "E"

    def __post_init__(self) -> None:
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum!r}")
        if self.parallel < 1:
            raise ValueError(f"parallel must be at least 1, got {self.parallel!r}")

    def update(self, value: object) -> None:
        """Add one batch's SMMD²."""
        number = number_of(value)
        self.value = self.momentum * self.value + (1.0 - self.momentum) * number
        self.count += 1

    def reset(self) -> None:
        """Forget all batches."""
        self.count, self.value = 0, 0.0

    def _mean_weight(self) -> float:
        return -math.expm1(self.count * math.log(self.momentum)) if self.momentum else 1.0

    def _power_sum(self, power: int) -> float:
        # Σ_k ((1 − α) α^k)^p over k = 0 … m − 1, each split over ``parallel`` batches.
        ratio = self.momentum**power
        total = (1.0 - self.momentum) ** power * (1.0 - ratio**self.count) / (1.0 - ratio)
        return total * float(self.parallel) ** (1 - power)


def _batches(count: int) -> str:
    return f"{count} batch" + ("es" if count > 1 else "")


def _known(batch: Batch | None) -> str:
    assert batch is not None
    return f"its band is not known ({batch.reason}); Batch(..., simulate=20_000) finds it"


def _below(batch: Batch | None) -> str:
    if batch is not None and batch.null != "standard":
        return "more regular than normal codes normalized by themselves; look at the codes"
    return (
        "more regular than independent normal codes, as when each batch is normalized by its own "
        "statistics (code normalization in training). That is no overfitting: give null='diagonal' "
        "for such values, or use population statistics"
    )

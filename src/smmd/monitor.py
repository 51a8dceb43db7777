"""Reading SMMD² over many batches: the B- and E-statistics of the paper's section 3.1.

Plain numbers in, plain numbers out.  Under normality each batch's SMMD² has mean 0 and variance
1, so the averages have bands that need no tuning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


def _number(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise ValueError(
            f"value must be finite, got {number}: the batch's SMMD² itself is not a number, "
            "look at the codes it was computed from"
        )
    return number


@dataclass
class BStatistic:
    """The mean of SMMD² over m batches; variance 1/m under normality.

    >>> import smmd
    >>> b = smmd.BStatistic()
    >>> for value in (0.5, -1.0, 0.8, 0.1): b.update(value)
    >>> round(b.value, 3), b.band(), b.converged
    (0.1, (-1.5, 1.5), True)
    """

    count: int = 0
    total: float = 0.0

    def update(self, value: object) -> None:
        """Add one batch's SMMD²."""
        number = _number(value)
        self.count += 1
        self.total += number

    def reset(self) -> None:
        """Forget all batches."""
        self.count, self.total = 0, 0.0

    @property
    def value(self) -> float:
        """The mean so far; NaN before the first batch."""
        return self.total / self.count if self.count else math.nan

    @property
    def sd(self) -> float:
        """The standard deviation of ``value`` under normality, 1/√m."""
        return 1.0 / math.sqrt(self.count) if self.count else math.inf

    def band(self, sigmas: float = 3) -> tuple[float, float]:
        """Where ``value`` lies under normality: ±sigmas/√m."""
        return -sigmas * self.sd, sigmas * self.sd

    @property
    def converged(self) -> bool:
        """Whether ``value`` lies in the three-sigma band."""
        return self.count > 0 and abs(self.value) <= 3.0 * self.sd


@dataclass
class EStatistic:
    """The exponential moving average of SMMD², started at 0.

    E_b = α E_{b−1} + (1 − α) S_b has variance (1 − α^(2m))(1 − α)/(1 + α) under normality.  (The
    paper prints the exponent 2m + 2; the limit is the same.)

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

    def __post_init__(self) -> None:
        if not 0.0 <= self.momentum < 1.0:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum!r}")

    def update(self, value: object) -> None:
        """Add one batch's SMMD²."""
        number = _number(value)
        self.value = self.momentum * self.value + (1.0 - self.momentum) * number
        self.count += 1

    def reset(self) -> None:
        """Forget all batches."""
        self.count, self.value = 0, 0.0

    @property
    def sd(self) -> float:
        """The standard deviation of ``value`` under normality."""
        alpha = self.momentum
        warm = 1.0 - alpha ** (2 * self.count)
        return math.sqrt(warm * (1.0 - alpha) / (1.0 + alpha))

    def band(self, sigmas: float = 3) -> tuple[float, float]:
        """Where ``value`` lies under normality: ±sigmas standard deviations."""
        return -sigmas * self.sd, sigmas * self.sd

    @property
    def converged(self) -> bool:
        """Whether ``value`` lies in the three-sigma band."""
        return self.count > 0 and abs(self.value) <= 3.0 * self.sd

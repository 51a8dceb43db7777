"""The law of one batch's SMMD² when the codes are normal, and of weighted averages of such."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from smmd import measure
from smmd.kernels import Gaussian, Kernel, as_kernel

# ``smmd.nulls`` is imported when a law is asked for: ``import smmd`` stays light.
if TYPE_CHECKING:
    from smmd.nulls import Null
    from smmd.nulls.shapes import Shape


@dataclass(frozen=True)
class Batch:
    """What SMMD² of one batch does when the codes are normal.

    Parameters
    ----------
    n, d : int
        Rows of a batch (of all ranks, where the loss has a group) and dimension of the codes.
    kernel : Kernel
    null : "standard", "diagonal" or "normal"
        What was done to the batch before it was measured.  "standard": nothing, or normalized by
        population statistics, as ``CodeNorm`` does in evaluation.  "diagonal": centred and scaled
        by its own mean and standard deviation, as ``CodeNorm`` does in training.  "normal":
        whitened by its own covariance.
    simulate : int
        Where no analytic law is known (``reason`` says why), use one from this many simulated
        batches; 0 simulates nothing.

    >>> from smmd.monitor import Batch
    >>> fresh, own = Batch(100, 8), Batch(100, 8, null="diagonal")
    >>> round(fresh.threshold(0.05), 2), round(own.threshold(0.05), 2)
    (1.76, 0.35)
    >>> round(own.mean, 2), round(own.sd, 2)  # why a training loss lies below a validation loss
    (-0.98, 0.77)
    >>> round(fresh.level(2.0), 3)  # the rule of thumb "2.0", as a level
    0.034
    """

    n: int
    d: int
    kernel: Kernel = Gaussian()  # noqa: RUF009 - a frozen value
    null: Null = "standard"
    simulate: int = 0

    def __post_init__(self) -> None:
        from smmd.nulls.spectrum import check_null

        as_kernel(self.kernel)
        check_null(self.null)
        measure.null_mean(self.n, self.d, self.kernel)  # checks n and d

    @cached_property
    def _law(self) -> tuple[float, float, Shape | None, str]:
        """Mean, standard deviation, shape, and why there is no shape."""
        from smmd.nulls import law_for
        from smmd.nulls.means import mean_of_smmd

        found = law_for(self.kernel, self.null, self.n, self.d)
        if found.law is not None and found.valid:
            return found.law.mean, found.law.sd, found.law.shape, ""
        if self.simulate:
            return (*_simulated(self), "")
        sd = 1.0 if self.null == "standard" else math.nan
        return mean_of_smmd(self.kernel, self.null, self.n, self.d), sd, None, found.reason

    @property
    def mean(self) -> float:
        """The mean of a normal batch's SMMD²: 0, and less if it was normalized by itself."""
        return self._law[0]

    @property
    def sd(self) -> float:
        """Its standard deviation; NaN where that is not known."""
        return self._law[1]

    @property
    def reason(self) -> str:
        """Why thresholds and exact bands are not known; empty where they are."""
        return self._law[3]

    @property
    def shape(self) -> Shape:
        """The standardized law."""
        if self._law[2] is None:
            raise ValueError(
                f"{self.reason}: pass simulate=20_000 to Batch for a law by simulation, "
                "or use band(), which needs none"
            )
        return self._law[2]

    def threshold(self, alpha: float = 0.05) -> float:
        """What a normal batch exceeds with probability ``alpha``."""
        return self.mean + self.sd * float(self.shape.isf(alpha))

    def level(self, threshold: float) -> float:
        """The probability with which a normal batch exceeds ``threshold``."""
        return float(self.shape.sf((threshold - self.mean) / self.sd))

    def verdict(self, value: object, alpha: float = 0.01) -> str:
        """One batch's SMMD² in words."""
        number, top = number_of(value), self.threshold(alpha)
        where = "above" if number > top else "not above"
        meaning = "not normal" if number > top else "no sign of anything but normality"
        return (
            f"SMMD² = {number:.3g} is {where} {top:.3g}, which normal batches{how(self)} exceed in "
            f"{100 * alpha:g} % of cases: {meaning}"
        )


@lru_cache(maxsize=64)
def _simulated(batch: Batch) -> tuple[float, float, Shape]:
    """The moments of simulated batches, and the shifted gamma law that has them."""
    from smmd.nulls.cache import fetch
    from smmd.nulls.montecarlo import RECIPE, simulate
    from smmd.nulls.shapes import Normal, pearson3

    n, d, count = batch.n, batch.d, batch.simulate
    key = {
        "statistic": "monitor", "recipe": RECIPE, "kernel": repr(batch.kernel), "null": batch.null,
        "n": n, "d": d, "n_resamples": count,
    }  # fmt: skip
    values = fetch(
        key,
        lambda: simulate(
            lambda z: measure.smmd(z, kernel=batch.kernel), batch.null, n, d, n_resamples=count
        ),
    )
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    skewness = float(np.mean(((values - mean) / sd) ** 3))
    shape: Shape = pearson3(skewness) if skewness > 0.0 else Normal()
    if batch.null == "standard":
        mean, sd = 0.0, 1.0  # known
    return mean, sd, shape


def of_average(shape: Shape, third: float, fourth: float) -> Shape:
    """The standardized law of Σ c_k S_k for independent S_k of the standardized law ``shape``.

    third = Σc³/(Σc²)^(3/2) and fourth = Σc⁴/(Σc²)² multiply skewness and excess kurtosis.  Scaling
    a chi-square sum's a by fourth/third and its multiplicities by third⁴/fourth³ does that; by
    Cauchy and Schwarz its variance does not grow, and a normal part makes up for what is missing.
    With equal weights this is the law itself, not an approximation.
    """
    from smmd.nulls.tail import ChiSquareSum

    if not isinstance(shape, ChiSquareSum):
        return shape
    share = (1.0 - shape.normal_variance) * third**2 / fourth
    return ChiSquareSum(
        shape.a * (fourth / third), shape.w * (third**4 / fourth**3), max(0.0, 1.0 - share)
    )


def number_of(value: object) -> float:
    """``value`` as a finite float."""
    value = value.detach() if hasattr(value, "detach") else value  # a loss with its graph
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError) as error:
        shape = getattr(value, "shape", None)
        got = type(value).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
        raise TypeError(f"value must be one batch's SMMD², a number; got {got}") from error
    if not math.isfinite(number):
        raise ValueError(
            f"value must be finite, got {number}: the batch's SMMD² itself is not a number, "
            "look at the codes it was computed from"
        )
    return number


def how(batch: Batch | None) -> str:
    """What was done to the batch, as a part of a sentence."""
    done = {"diagonal": ", each normalized by itself,", "normal": ", each whitened by itself,"}
    return done.get(batch.null, "") if batch else ""

"""``power``: how often a test rejects samples of an alternative, by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smmd import arrays
from smmd.kernels import Gaussian, HenzeZirkler, Kernel
from smmd.normality import alternatives, reference, statistics, words
from smmd.normality.prepare import NULLS, check_choice
from smmd.normality.testing import check_alpha
from smmd.nulls import montecarlo
from smmd.samples import whole_number


@dataclass(frozen=True)
class PowerResult:
    """The answer of ``power``: the share of samples that the test rejects, and its error."""

    power: float
    standard_error: float
    n: int
    d: int
    null: str
    alternative: str
    statistic_name: str
    kernel: Kernel | None
    alpha: float
    threshold: float
    n_simulations: int
    method: str

    def __float__(self) -> float:
        return self.power

    def __str__(self) -> str:
        label = statistics.STATISTICS[self.statistic_name].label
        kernel = "" if self.kernel is None else f", kernel {self.kernel!r}"
        return (
            f"Power {self.power:.3f} ± {self.standard_error:.3f}: {label}{kernel} at level "
            f"{self.alpha:g} rejects that share of samples of {words.count(self.n)} rows, "
            f"{self.d} column{'s' if self.d != 1 else ''} ({self.alternative}), null "
            f"{self.null!r}; {words.count(self.n_simulations)} samples simulated."
        )


def power(
    alternative: Any,
    n: int,
    d: int | None = None,
    *,
    null: str = "normal",
    statistic: str = "smmd",
    kernel: Kernel = Gaussian(),
    alpha: float = 0.05,
    method: str = "analytic",
    n_simulations: int = 1000,
    n_resamples: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> PowerResult:
    """How often does the test reject samples of ``n`` rows of an alternative?

    Parameters
    ----------
    alternative : callable, array or data frame, or str
        ``alternative(rng, n)`` returns a sample (n, d).  Data (m, d) stand for a density fitted to
        them (a smoothed bootstrap), which answers "how many rows would show a departure like
        this?".  Or a name: "uniform", "student", "skewed", "groups", "clayton", ...
    n, d : int
        Rows, and columns where the alternative is a name.
    null, statistic, kernel, alpha, method, n_resamples
        As for ``normality_test``.
    n_simulations : int
        Samples of the alternative; the error of a power near one half is 0.5/√n_simulations.
    rng : int or numpy.random.Generator, optional
        A fixed seed by default.

    Examples
    --------
    >>> import smmd
    >>> smmd.power("uniform", n=100, d=3, n_simulations=200).power > 0.8
    True
    """
    n, alpha = whole_number("n", n, 3), check_alpha(alpha)
    check_choice("null", null, NULLS)
    chosen = statistics.find(statistic, null, kernel)
    if chosen.name == "henze-zirkler":
        kernel = HenzeZirkler()
    n_simulations = whole_number("n_simulations", n_simulations, 10)
    if d is not None:
        d = whole_number("d", d, 1)
    sampler, name = alternatives.sampler_of(alternative, d)
    generator = montecarlo.generator(rng)
    first = _checked(sampler(generator, n), n, d)
    d = first.shape[1]
    if null == "normal" and n < d + 2:
        raise ValueError(f"n must be at least d+2={d + 2} for null 'normal', got {n}")
    found = reference.find(
        chosen, kernel, null, n, d, method=method, n_resamples=n_resamples, rng=rng
    )
    threshold = found.threshold(alpha)
    rejected = 0
    done = 0
    for size in montecarlo.batches(n_simulations, n, d, None):
        drawn = [_checked(sampler(generator, n), n, d) for _ in range(size - (done == 0))]
        stack = np.stack(([first] if done == 0 else []) + drawn)
        rejected += int(np.sum(values_of(chosen, stack, null, kernel) > threshold))
        done += size
    share = rejected / n_simulations
    # With Laplace's correction an observed 0 or 1 still has an error.
    smooth = (rejected + 1) / (n_simulations + 2)
    return PowerResult(
        power=share,
        standard_error=float(np.sqrt(smooth * (1.0 - smooth) / n_simulations)),
        n=n,
        d=d,
        null=null,
        alternative=name,
        statistic_name=chosen.name,
        kernel=kernel if chosen.takes_kernel or chosen.name == "henze-zirkler" else None,
        alpha=alpha,
        threshold=threshold,
        n_simulations=n_simulations,
        method=found.method,
    )


def values_of(
    statistic: statistics.Statistic, samples: np.ndarray, null: str, kernel: Kernel
) -> np.ndarray:
    """The statistic, or its size where it is two-sided, of raw samples (b, n, d)."""
    z = montecarlo.on_fast_device(samples)
    z = montecarlo.normalize(z, null, divisor=statistic.divisor)
    return np.asarray(arrays.to_numpy(statistic.extreme(z, kernel), "a simulation"))


def _checked(sample: Any, n: int, d: int | None) -> np.ndarray:
    values = np.asarray(sample, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != n or d not in (None, values.shape[1]):
        raise ValueError(
            f"the alternative must give samples of shape ({n}, {'d' if d is None else d}), "
            f"got {values.shape}"
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("the alternative gave NaN or infinite values")
    return values

"""``normality_test`` and ``threshold``: validate, compute, wrap."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from smmd import arrays
from smmd.kernels import Gaussian, HenzeZirkler, Kernel, as_kernel
from smmd.normality import reference, statistics
from smmd.normality.prepare import NULLS, Prepared, check_choice, prepare
from smmd.normality.result import NormalityResult
from smmd.samples import whole_number


class SimulatedWarning(UserWarning):
    """An analytic threshold was asked for where no analytic law holds; it was simulated."""


def normality_test(
    x: Any,
    null: str = "normal",
    *,
    statistic: str = "smmd",
    kernel: Kernel = Gaussian(),
    method: str = "analytic",
    alpha: float = 0.05,
    nan_policy: str = "raise",
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
    batch: int | None = None,
    rank_deficient: str = "raise",
    device: Any = None,
) -> NormalityResult:
    """Test whether the rows of ``x`` are a sample from a normal law.

    Parameters
    ----------
    x : array or data frame (n, d)
        NumPy, PyTorch, JAX, CuPy; pandas, polars, pyarrow, whose column names are kept.
    null : {"normal", "diagonal", "standard"}
        What is taken as unknown: mean and covariance; mean and variances of independent columns;
        nothing, that is, exactly N(0, I).
    statistic : {"smmd", "bhep", "henze-zirkler", "mardia-skewness", "mardia-kurtosis"}
        The last three go with ``null="normal"`` only, and follow their publications.
    kernel : Kernel
        For "smmd" and "bhep".
    method : {"analytic", "monte-carlo"}
        "analytic" simulates nothing; where the law is not known to hold it simulates all the
        same, and says so in ``notes``.  Simulated laws are cached unless ``rng`` is given.
    alpha : float
        The level of ``threshold`` and ``rejected``.
    nan_policy : {"raise", "omit"}
        Rows with missing values: refuse, or leave out and say how many.
    rng : int or numpy.random.Generator, optional
        Of the simulation; by default a fixed seed.
    n_resamples, batch : int, optional
        Simulated samples (9999; 1999 for more than 500 rows), and how many are drawn at a time.
    rank_deficient : {"raise", "project"}
        A singular covariance matrix: refuse, or test within the span of the data.
    device : str, optional
        Where PyTorch shall sum over pairs, such as "cuda"; by default where ``x`` is.

    Returns
    -------
    NormalityResult

    Examples
    --------
    >>> import numpy as np, smmd
    >>> rng = np.random.default_rng(0)
    >>> smmd.normality_test(rng.normal(5.0, 2.0, (200, 3))).rejected
    False
    >>> smmd.normality_test(rng.uniform(size=(200, 3))).rejected
    True
    """
    alpha = check_alpha(alpha)
    check_choice("null", null, NULLS)
    check_choice("method", method, reference.METHODS)
    chosen = statistics.find(statistic, null, kernel)
    prepared = prepare(x, null, nan_policy=nan_policy, rank_deficient=rank_deficient)
    return judged(
        prepared, null, chosen, kernel, method=method, alpha=alpha, rng=rng,
        n_resamples=n_resamples, batch=batch, device=device,
    )  # fmt: skip


def judged(
    prepared: Prepared,
    null: str,
    statistic: statistics.Statistic,
    kernel: Kernel,
    *,
    method: str = "analytic",
    alpha: float = 0.05,
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
    batch: int | None = None,
    device: Any = None,
) -> NormalityResult:
    """``normality_test`` of a sample that ``prepare`` has normalized."""
    if statistic.name == "henze-zirkler":
        kernel = HenzeZirkler()
    found = reference.find(
        statistic, kernel, null, prepared.n, prepared.d, method=method,
        n_resamples=n_resamples, rng=rng, batch=batch,
    )  # fmt: skip
    z = _placed(prepared, device)
    value = statistic.of_normalized(z, null, kernel)
    p = found.pvalue(abs(value) if statistic.two_sided else value)
    z = prepared.z
    return NormalityResult(
        statistic=value,
        pvalue=p,
        threshold=found.threshold(alpha),
        rejected=bool(p <= alpha),
        alpha=alpha,
        n=prepared.n,
        d=prepared.d,
        null=null,
        statistic_name=statistic.name,
        kernel=kernel if statistic.takes_kernel or statistic.name == "henze-zirkler" else None,
        method=found.method,
        pvalue_standard_error=found.standard_error(p),
        n_resamples=found.n_resamples,
        n_omitted=prepared.n_omitted,
        notes=(*prepared.notes, *found.notes),
        names=prepared.names,
        description=found.description,
        null_distribution=found.law,
        distances=np.einsum("ij,ij->i", z, z),
    )


def _placed(prepared: Prepared, device: Any) -> Any:
    """The normalized sample where it shall be summed over: the GPU that x was on, or ``device``."""
    source = prepared.source
    if device is None:
        if arrays.kind(source) != "torch" or source.device.type == "cpu":
            return prepared.z
        device = source.device
    try:
        import torch
    except ImportError:
        from smmd.errors import MissingExtra

        raise MissingExtra(f"device={device!r}", "torch", "torch") from None
    try:
        return torch.as_tensor(prepared.z, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device={device!r} cannot be used: {error}") from error


def check_alpha(alpha: Any) -> float:
    """A level strictly between 0 and 1."""
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | np.floating):
        raise TypeError(f"alpha must be a number between 0 and 1, got {alpha!r}")
    if not 0.0 < float(alpha) < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}; 0.05 is customary")
    return float(alpha)


def threshold(
    n: int,
    d: int,
    alpha: float = 0.05,
    *,
    null: str = "standard",
    kernel: Kernel = Gaussian(),
    method: str = "analytic",
    n_resamples: int | None = None,
    rng: int | np.random.Generator | None = None,
    batch: int | None = None,
) -> float:
    """What SMMD² of n normal points in d dimensions exceeds with probability ``alpha``.

    ``null`` says how the points were normalized: "standard", not at all; "diagonal", centred and
    scaled column by column, as by code normalization; "normal", whitened.  Where the analytic law
    does not hold the threshold is simulated, with a ``SimulatedWarning``.

    >>> import smmd
    >>> round(smmd.threshold(100, 8), 2), round(smmd.threshold(100, 8, null="diagonal"), 2)
    (1.76, 0.35)
    """
    n, d = whole_number("n", n, 2), whole_number("d", d, 1)
    alpha = check_alpha(alpha)
    check_choice("null", null, NULLS)
    least = {"standard": 2, "diagonal": 3, "normal": d + 2}[null]
    if n < least:
        raise ValueError(f"n must be at least {least} for null {null!r} and d={d}, got {n}")
    found = reference.find(
        statistics.STATISTICS["smmd"], as_kernel(kernel), null, n, d,
        method=method, n_resamples=n_resamples, rng=rng, batch=batch,
    )  # fmt: skip
    if method == "analytic" and found.method != method:
        warnings.warn(found.notes[0], SimulatedWarning, stacklevel=2)
    return found.threshold(alpha)

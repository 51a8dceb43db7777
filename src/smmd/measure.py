"""How far a sample is from N(0, I): MMD² and SMMD² in closed form, and what follows from them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from smmd import arrays, closed_form, pairs, samples
from smmd.arrays import Array
from smmd.closed_form import Terms
from smmd.kernels import Adaptive, Gaussian, Kernel, Sliced, as_kernel, chosen, from_plain, to_plain
from smmd.pairs import plan
from smmd.pairs.centred import centred_mean
from smmd.radial import Exponentials
from smmd.samples import Sample
from smmd.sharpen import scaled_mixture, sharpened

#: exp of this still leaves room for weights and sums, by the type computed in.
_LARGEST_LOG = {"float64": 680.0, "float32": 78.0}
#: Random encoders whose kernel's precision is below this are summed doubly centred.
VERY_WIDE = 1e-3


def mmd2(z: Any, kernel: Kernel = Gaussian(), *, var: Any = None, unbiased: bool = True) -> Array:
    """Closed-form MMD² between a sample and N(0, I).

    Parameters
    ----------
    z : array (..., n, d)
        NumPy, PyTorch, JAX or CuPy; anything else goes through ``numpy.asarray``.
    kernel : Kernel
        ``Gaussian`` (scale 1/8), ``HenzeZirkler``, ``Adaptive``, ``MultiScale``, ``IMQ``,
        ``Sliced``.
    var : array (..., n, d) or (..., n), optional
        Variances σ² of a random encoder whose means are ``z``.
    unbiased : bool
        Leave the pairs i = j out (U-statistic, zero mean under normality).  With False the
        V-statistic: BHEP for a Gaussian kernel, and the paper's formula for random encoders.

    Returns
    -------
    array (...)
        Of the kind, dtype and device of ``z``; differentiable where the framework differentiates.

    Examples
    --------
    >>> import numpy as np, smmd
    >>> z = np.random.default_rng(0).standard_normal((200, 4))
    >>> bool(abs(smmd.mmd2(z)) < 0.01)
    True
    """
    fused = _fused(z, var, as_kernel(kernel), standardized=False, unbiased=unbiased)
    if fused is not None:
        return fused
    sample = _take(z, var, unbiased)
    terms = terms_for(as_kernel(kernel), sample)
    return _answer(_statistic(sample, terms, unbiased), sample)


def smmd(
    z: Any,
    scale: float = 1 / 8,
    adaptive: bool = False,
    *,
    kernel: Kernel | None = None,
    var: Any = None,
) -> Array:
    """SMMD²: the unbiased MMD² in units of its standard deviation under N(0, I).

    Zero mean and unit variance if the points are standard normal; 2.0 on a single batch is a
    liberal threshold (one-sided level 3 to 5 %).  It has no upper limit and can be negative.

    Parameters
    ----------
    z : array (..., n, d)
    scale : float
        Kernel scale s, γ² = s·d.
    adaptive : bool
        γ² = s·mean‖z_i‖² instead, without gradient: for codes that are not normalized.
    kernel : Kernel, optional
        Any kernel, in place of ``scale`` and ``adaptive``, which must then be left out.
    var : array, optional
        Variances of a random encoder.  They smooth the sample, so that the null variance of the
        result is below one.

    Examples
    --------
    >>> import numpy as np, smmd
    >>> rng = np.random.default_rng(0)
    >>> bool(abs(smmd.smmd(rng.standard_normal((500, 3)))) < 3)
    True
    >>> bool(smmd.smmd(rng.uniform(-3**0.5, 3**0.5, (500, 3))) > 3)
    True
    """
    asked = chosen(scale, adaptive, kernel)
    fused = _fused(z, var, asked, standardized=True, unbiased=True)
    if fused is not None:
        return fused
    sample = _take(z, var, True)
    terms = terms_for(asked, sample, standardized=True)
    return _answer(sharpened(_statistic(sample, terms, True), sample, terms), sample)


def cramer_wold(z: Any, gamma: float = 1.0, *, unbiased: bool = True) -> Array:
    """The mean over all directions of the one-dimensional MMD²: ``mmd2(z, Sliced(gamma))``."""
    return mmd2(z, Sliced(gamma), unbiased=unbiased)


def mmd2_two_sample(z: Any, y: Any, kernel: Kernel = Gaussian(), *, unbiased: bool = True) -> Array:
    """The usual estimator of MMD² between two samples, for comparison with the closed form.

    Sample-dependent widths (``HenzeZirkler``, ``Adaptive``) are taken from ``z``.
    """
    first = _take(z, None, unbiased)
    second = samples.take(y, minimum=2 if unbiased else 1, why=_why(unbiased), name="y")
    samples.broadcast_batch(first, second, "z and y")
    radial = terms_for(as_kernel(kernel), first).pair
    xp = first.xp
    across = xp.sum(pairs.row_sums(first.z, second.z, radial), axis=-1)
    total = -2.0 / (first.n * second.n) * across
    for sample in (first, second):
        total = total + _mean_over_pairs(sample, radial, unbiased)
    return _answer(total, first)


def null_variance(n: int, d: int, kernel: Kernel = Gaussian(), *, unbiased: bool = True) -> float:
    """The variance of MMD² when the n points are drawn from N(0, I_d).

    >>> import smmd
    >>> f"{smmd.null_variance(100, 8) ** 0.5:.6f}"
    '0.000505'
    """
    n, d = _counts(n, d, unbiased)
    mixture = as_kernel(kernel).resolve(n, d)
    log_second = closed_form.log_null_second_moment(mixture, d)
    if unbiased:
        log_variance = log_second + math.log(2.0) - math.log(n) - math.log(n - 1)
    else:
        # n² MMD²_b = n(n−1) MMD²_u + Σ h(z_i, z_i), and the two parts are uncorrelated.
        log_pairs = log_second + math.log(2.0 * (n - 1)) - 3.0 * math.log(n) if n > 1 else -math.inf
        log_diagonal = closed_form.log_diagonal_variance(mixture, d) - 3.0 * math.log(n)
        log_variance = float(np.logaddexp(log_pairs, log_diagonal))
    if log_variance < -708.0:
        raise ValueError(_too_narrow(kernel, d, f"its null variance is e^{log_variance:.0f}"))
    return math.exp(log_variance)


def null_mean(n: int, d: int, kernel: Kernel = Gaussian(), *, unbiased: bool = True) -> float:
    """The mean of MMD² under N(0, I_d): 0 for the unbiased estimator, (1 − E k)/n else."""
    n, d = _counts(n, d, unbiased)
    mixture = as_kernel(kernel).resolve(n, d)
    if unbiased:
        return 0.0
    weights = np.exp(mixture.log_weights)
    return float(-(weights @ np.expm1(closed_form.log_constant(mixture, d))) / n)


def witness(z: Any, at: Any, kernel: Kernel = Gaussian()) -> Array:
    """Where the sample and N(0, I) differ: mean_i k(z_i, at) − E_x k(x, at).

    Positive where the sample has more mass than N(0, I), negative where it has less.
    ``at`` has shape (..., m, d); the result (..., m).
    """
    sample = samples.take(z, name="z")
    where = samples.take(at, name="at")
    samples.broadcast_batch(sample, where, "z and at")
    xp = sample.xp
    terms = terms_for(as_kernel(kernel), sample)
    means = pairs.row_sums(where.z, sample.z, terms.pair) / sample.n
    return _answer(means - terms.cross.value(xp, xp.sum(where.z * where.z, axis=-1)), sample)


def value_and_grad(
    z: Any, kernel: Kernel = Gaussian(), *, standardized: bool = True
) -> tuple[Array, Array]:
    """SMMD² (or MMD²_u with ``standardized=False``) and its gradient in ``z``.

    For NumPy, which does not differentiate; in blocks of rows, so that memory stays linear in n.
    Under PyTorch and JAX differentiate ``smmd`` or ``mmd2`` themselves.
    """
    sample = _take(z, None, True)
    terms = terms_for(as_kernel(kernel), sample, standardized=standardized)
    n, xp, x = sample.n, sample.xp, sample.z
    total, slope = pairs.pair_sum_and_gradient(pairs.operand(sample.given, x), terms.pair)
    norms = xp.sum(x * x, axis=-1)
    value = terms.constant - 2.0 * xp.mean(terms.cross.value(xp, norms), axis=-1)
    pull = terms.cross.slope(xp, norms)[..., None] * x
    gradient = slope / (n * (n - 1)) - (4.0 / n) * pull
    value = value + total / (n * (n - 1))
    if standardized:
        value = sharpened(value, sample, terms)
    return _answer(value, sample), _answer(gradient, sample)


def _why(unbiased: bool) -> str:
    return "the unbiased estimator" if unbiased else "the biased estimator"


def _take(z: Any, var: Any, unbiased: bool) -> Sample:
    return samples.take(z, var, minimum=2 if unbiased else 1, why=_why(unbiased))


def _counts(n: int, d: int, unbiased: bool) -> tuple[int, int]:
    least = 2 if unbiased else 1
    return samples.whole_number("n", n, least), samples.whole_number("d", d, 1)


def terms_for(kernel: Kernel, sample: Sample, *, standardized: bool = False) -> Terms:
    """The three terms of the statistic for this sample, in null standard deviations if asked."""
    encoder = sample.var is not None
    if not kernel.adaptive:
        key = (sample.n, sample.d, standardized, encoder, _room(sample))
        return _known_terms(sample.z, kernel, *key)
    mixture = kernel.resolve(sample.n, sample.d, _mean_square(kernel, sample))
    log_scale = 0.0 * mixture.precisions[..., 0]
    if standardized:
        log_second = closed_form.log_null_second_moment(mixture, sample.d, sample.xp)
        log_scale = -0.5 * (log_second + _log_pairs(sample.n))
    return closed_form.terms(mixture, sample.d, log_scale, sample.xp)


def _known_terms(z: Any, kernel: Kernel, *key: Any) -> Terms:
    """The terms of a kernel that does not look at the data, as constants where z is compiled."""
    if arrays.is_compiling(z):
        return Terms.decode(_encoded_terms(to_plain(kernel), *key))
    return _fixed_terms(kernel, *key)


@arrays.constant_under_compile
def _encoded_terms(kernel: Any, *key: Any) -> tuple[Any, ...]:
    """Terms as plain numbers, from plain ones: compilers keep no objects as constants."""
    return _fixed_terms(from_plain(kernel), *key).encode()


@lru_cache(maxsize=512)
def _fixed_terms(
    kernel: Kernel, n: int, d: int, standardized: bool, encoder: bool, room: float
) -> Terms:
    mixture = kernel.resolve(n, d)
    log_scale = 0.0
    if standardized:
        log_second = closed_form.log_null_second_moment(mixture, d)
        if log_second < -2.0 * room:
            why = f"MMD² has null standard deviation e^{log_second / 2:.0f}"
            raise ValueError(_too_narrow(kernel, d, why))
        log_scale = -0.5 * (log_second + _log_pairs(n))
    build = closed_form.mixture_terms if encoder else closed_form.terms
    return build(mixture, d, log_scale)


def _log_pairs(n: int) -> float:
    """log(2/(n(n−1))), which turns E h² into Var MMD²_u."""
    return math.log(2.0) - math.log(n) - math.log(n - 1)


def _mean_square(kernel: Kernel, sample: Sample) -> Array:
    """mean‖z_i‖² without gradient, kept where the adaptive width can be computed."""
    xp, x = sample.xp, sample.z
    square = xp.mean(xp.sum(x * x, axis=-1), axis=-1)
    if sample.var is not None:
        square = square + xp.mean(xp.sum(sample.var, axis=-1), axis=-1)
    # Collapsed on the origin, or beyond all range: the narrowest or widest that has room.
    assert isinstance(kernel, Adaptive)
    room = _room(sample)
    narrowest = math.expm1(min(4.0 * room / sample.d, 0.5 * room)) / 4.0
    widest = math.exp(0.4 * room)
    square = xp.clip(square, 1.0 / (narrowest * kernel.scale), widest / kernel.scale)
    return arrays.without_gradient(square)


def _room(sample: Sample) -> float:
    return _LARGEST_LOG["float32" if "float32" in str(sample.z.dtype) else "float64"]


def _too_narrow(kernel: Kernel, d: int, what: str) -> str:
    return (
        f"{kernel!r} is too narrow in d={d} dimensions: {what}, below what floating point holds; "
        "choose a larger scale (1/8 is a good default)"
    )


def _mean_over_pairs(sample: Sample, radial: Any, unbiased: bool) -> Array:
    n = sample.n
    total = pairs.pair_sum(pairs.operand(sample.given, sample.z), radial)
    if unbiased:
        return total / (n * (n - 1))
    return total / (n * n) + _at_zero(radial, sample) / n


def _at_zero(radial: Any, sample: Sample) -> Any:
    """f(0), the value on the diagonal."""
    xp = sample.xp
    zero = xp.zeros(sample.z.shape[:-2], dtype=sample.z.dtype, **arrays.device(sample.z))
    return radial.value(xp, zero)


def _fused(z: Any, var: Any, kernel: Kernel, *, standardized: bool, unbiased: bool) -> Array | None:
    """The whole statistic in one operator, for PyTorch tensors and fixed kernels.

    On a CPU where no value can have to be ``sharpened``.
    """
    if var is not None or kernel.adaptive or arrays.kind(z) != "torch":
        return None
    from smmd.pairs import gpu, torch_statistic

    if arrays.is_compiling(z):
        if not gpu.serves(z):
            return None
        samples.check_shape(z, "z", 2 if unbiased else 1, _why(unbiased))
        return torch_statistic.compiled(z, _form(z, kernel, standardized, unbiased)[0])
    if not torch_statistic.is_plain(z):
        return None
    key = (kernel, z.shape, z.dtype, z.device, standardized, unbiased, plan.forced())
    ready = _ready.get(key)
    if ready is None:
        samples.check_shape(z, "z", 2 if unbiased else 1, _why(unbiased))
        if len(_ready) > 4096:
            _ready.clear()
        form, wide = _form(z, kernel, standardized, unbiased)
        ready = _ready[key] = torch_statistic.Ready(form, z, wide)
    if not ready.serves:
        return None
    return ready(z)


#: Statistics made ready for PyTorch tensors, by what they depend on.
_ready: dict[Any, Any] = {}


def _form(z: Any, kernel: Kernel, standardized: bool, unbiased: bool) -> tuple[Any, bool]:
    """The statistic's form, and whether part of the kernel is wide."""
    from smmd.pairs import torch_statistic

    key = (int(z.shape[-2]), int(z.shape[-1]), standardized, False, _LARGEST_LOG["float64"])
    terms = _known_terms(z, kernel, *key)
    form = torch_statistic.Form(terms.pair, terms.cross, float(terms.constant), unbiased)
    return form, any(terms.components.base)


def _statistic(sample: Sample, terms: Terms, unbiased: bool) -> Array:
    """e^log_scale · MMD², in the working type."""
    xp = sample.xp
    if sample.var is not None:
        return _random_encoder_statistic(sample, terms, unbiased)
    norms = xp.sum(sample.z * sample.z, axis=-1)
    cross = xp.mean(pairs.radial_value(terms.cross, norms), axis=-1)
    return terms.constant - 2.0 * cross + _mean_over_pairs(sample, terms.pair, unbiased)


def _random_encoder_statistic(sample: Sample, terms: Terms, unbiased: bool) -> Array:
    """Paper, appendix A.1: the same three terms with the encoder's variances added in."""
    xp, n, mu, var = sample.xp, sample.n, sample.z, sample.var
    assert var is not None
    very_wide, parts = _very_wide(terms.components)
    total = terms.constant
    if very_wide:
        total = total + centred_mean(mu, var, very_wide, unbiased=unbiased)
    if not len(parts):
        return total
    cross = pairs.overlap_terms(xp, mu * mu, 1.0 + var, parts)
    between = pairs.overlap_sum(mu, var, parts)
    if unbiased:
        between = between / (n * (n - 1))
    else:
        own = pairs.overlap_terms(xp, 0.0 * mu, 2.0 * var, parts)
        between = between / (n * n) + xp.mean(own, axis=-1) / n
    return total - 2.0 * xp.mean(cross, axis=-1) + between


def _very_wide(parts: Exponentials) -> tuple[list[tuple[float, float]], Exponentials]:
    """Precisions whose slopes in the variances would cancel (see ``pairs.centred``), and the rest.

    Widths that follow the data stay together: which they are is not known while tracing.
    """
    if not isinstance(parts.a, tuple) or min(parts.a) >= VERY_WIDE:
        return [], parts
    fields = list(zip(*parts.parameters(), strict=True))
    wide = [field for field in fields if field[0] < VERY_WIDE and field[3]]
    if not wide:  # in thousands of dimensions
        return [], parts
    rest = [field for field in fields if field not in wide]
    columns = zip(*rest, strict=True) if rest else ((), (), (), ())
    return scaled_mixture(Exponentials(*zip(*wide, strict=True))), Exponentials(*columns)


def _answer(value: Array, sample: Sample) -> Array:
    """The result in the data's own type; a NumPy scalar rather than a 0-d array."""
    result = arrays.saturating_cast(value, sample.dtype)
    return result[()] if isinstance(result, np.ndarray) else result

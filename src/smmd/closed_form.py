"""The one formula, its expectations and its null covariances.

For independent X ~ N(m, diag v) and Y ~ N(m', diag v') and the Gaussian kernel of precision a,

    log E k_a(X, Y) = −½ Σ_k [ log(1 + a v_k) + a Δ_k² / (1 + a v_k) ],   Δ = m − m',  v ← v + v'

A data point is a Gaussian with v = 0, the target N(0, I) one with m = 0, v = 1.  Everything is
kept as a logarithm until the end, in float64: nothing over- or underflows on the way, and wide
kernels lose no digits.

Abbreviations for precision a in dimension d:
    L = d/2·log(1 + 2a) = −log E k(X, X'),    M = d/2·log(1 + a),
    log E k(X, z) = −M − a‖z‖²/(2(1+a)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smmd import quadrature
from smmd.arrays import Array, Namespace
from smmd.radial import Exponentials, Radial, Rational, SeriesRadial, decode

if TYPE_CHECKING:
    from smmd.kernels import Mixture

#: The series of the sliced kernel gives 1 − φ to rounding, which is not enough of a φ this narrow.
_SERIES = 1e-3

#: A kernel is wide when 1 − E k(X, X') is small: L below this is handled through expm1.
WIDE = 1.0


def log_overlap(xp: Namespace, a: Any, delta2: Array, v: Array) -> Array:
    """log E k_a(X, Y) from Δ² and the summed variances v; the last axis is the dimension."""
    widened = 1.0 + a * v
    return -0.5 * xp.sum(xp.log1p(a * v) + a * delta2 / widened, axis=-1)


def log_cross_covariance(a: Any, b: Any, d: int, xp: Namespace = np) -> Any:
    """log c(a, b): the null covariance of the centred kernels h_a and h_b.

    c(a,b) = (1+2a+2b)^(−d/2) − 2(1+2a+2b+3ab)^(−d/2) + ((1+2a)(1+2b))^(−d/2)
           = e^B [ (e^X − 1) + (e^−Y − 1) ]
    Where e^X overflows (narrow kernels in high dimension) the bracket is taken apart.
    """
    ab = a * b
    plain = 1.0 + 2.0 * a + 2.0 * b
    x = 0.5 * d * xp.log1p(3.0 * ab / plain)
    y = 0.5 * d * xp.log1p(ab / (plain + 3.0 * ab))
    b_term = -0.5 * d * xp.log1p(2.0 * a + 2.0 * b + 3.0 * ab)
    small = xp.where(x < 1.0, x, xp.ones_like(x))
    large = xp.where(x < 1.0, xp.ones_like(x), x)
    y_small = xp.where(x < 1.0, y, 0.25 * xp.ones_like(y))
    bracket = xp.where(
        x < 1.0,
        xp.log(xp.expm1(small) + xp.expm1(-y_small)),
        large + xp.log1p((xp.expm1(-y) - 1.0) * xp.exp(-large)),
    )
    return b_term + bracket


def _log_sum_exp(values: np.ndarray) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))


def log_null_second_moment(mixture: Mixture, d: int, xp: Namespace = np) -> Any:
    """log E h², h the mixture kernel centred on both sides; Var MMD²_u = 2/(n(n−1)) E h²."""
    if mixture.depends_on_data:
        a = mixture.precisions[..., 0]
        return log_cross_covariance(a, a, d, xp)
    a = np.asarray(mixture.precisions)
    log_w = np.asarray(mixture.log_weights)
    log_c = log_cross_covariance(a[:, None], a[None, :], d)
    return _log_sum_exp(log_c + log_w[:, None] + log_w[None, :])


def log_diagonal_variance(mixture: Mixture, d: int) -> float:
    """log Var h(z, z) under N(0, I), for the biased estimator.

    h(z,z) = k(0) + c₀ − 2 E_x k(x,z), so its variance is 4 Var of the last term, with
    E e_a e_b − c_a c_b = (1+2a+2b+3ab)^(−d/2) − (1+2a+2b+4ab)^(−d/2).
    """
    log_w = np.asarray(mixture.log_weights)
    a, b = np.asarray(mixture.precisions)[:, None], np.asarray(mixture.precisions)[None, :]
    ab = a * b
    y = 0.5 * d * np.log1p(ab / (1.0 + 2.0 * a + 2.0 * b + 3.0 * ab))
    log_cov = -0.5 * d * np.log1p(2.0 * a + 2.0 * b + 3.0 * ab) + np.log(-np.expm1(-y))
    return math.log(4.0) + _log_sum_exp(log_cov + log_w[:, None] + log_w[None, :])


def log_constant(mixture: Mixture, d: int) -> np.ndarray:
    """−L_q: the logarithm of E k_q(X, X') for each precision."""
    return np.asarray(-0.5 * d * np.log1p(2.0 * np.asarray(mixture.precisions)))


@dataclass(frozen=True)
class Terms:
    """The three terms of MMD², each with the same base subtracted and times the same scale.

        MMD² · e^log_scale = constant − 2 mean cross(‖z_i‖²) + mean pair(‖z_i − z_j‖²)

    ``pair`` and ``cross`` are radial; random encoders use ``components`` with ``log_overlap``.
    """

    pair: Radial
    cross: Radial
    constant: Any
    components: Exponentials

    def encode(self) -> tuple[Any, ...]:
        """Plain names and numbers, which a tracing compiler can hold."""
        return self.pair.encode(), self.cross.encode(), self.constant, self.components.encode()

    @staticmethod
    def decode(encoded: tuple[Any, ...]) -> Terms:
        """The inverse of ``encode``."""
        pair, cross, constant, components = encoded
        return Terms(decode(*pair), decode(*cross), constant, decode(*components))  # type: ignore[arg-type]


def terms(mixture: Mixture, d: int, log_scale: Any = 0.0, xp: Namespace = np) -> Terms:
    """The terms of e^log_scale · MMD² for a resolved kernel in dimension d."""
    if mixture.profile == "imq":
        return _imq_terms(mixture, d, log_scale)
    if mixture.profile == "sliced" and mixture.gamma2 >= _SERIES:
        return _sliced_terms(mixture, d, log_scale)
    return mixture_terms(mixture, d, log_scale, xp)


def mixture_terms(mixture: Mixture, d: int, log_scale: Any = 0.0, xp: Namespace = np) -> Terms:
    """Like ``terms``, but always by the precisions: what random encoders need."""
    if mixture.depends_on_data:
        return _mixture_terms(xp, mixture.precisions, 0.0, d, log_scale[..., None])
    return _mixture_terms(
        np, np.asarray(mixture.precisions), np.asarray(mixture.log_weights), d, log_scale
    )


def _mixture_terms(xp: Namespace, a: Any, log_w: Any, d: int, log_scale: Any) -> Terms:
    """Per precision, either k − E k (wide: expm1 of what is left) or k itself (narrow).

    Centred on its null mean, a wide kernel's values scatter about zero, so that neither the
    constant nor the size of the terms costs digits.  A narrow one carries the scale inside the
    exponent, where it cannot overflow.
    """
    minus_log_c = 0.5 * d * xp.log1p(2.0 * a)  # L
    minus_log_e = 0.5 * d * xp.log1p(a)  # M
    wide = minus_log_c < WIDE
    zero = xp.zeros_like(minus_log_c)
    scale = log_w + log_scale
    base = xp.where(wide, zero + 1.0, zero)
    offset = xp.where(wide, minus_log_c, scale + zero)
    # Guard the branch that is not taken: its overflow would poison gradients.
    weight = xp.where(wide, xp.exp(xp.where(wide, scale - minus_log_c, zero)), zero + 1.0)
    cross_offset = xp.where(wide, 0.5 * d * xp.log1p(a / (1.0 + a)), scale - minus_log_e)
    constant = xp.sum(
        xp.where(wide, zero, xp.exp(xp.where(wide, zero, scale - minus_log_c))), axis=-1
    )
    pair = Exponentials(*map(_freeze, (a, offset, weight, base)))
    cross = Exponentials(*map(_freeze, (a / (1.0 + a), cross_offset, weight, base)))
    return Terms(pair, cross, _freeze(constant), pair)


# Kernels whose mixture has a closed sum: one function of r², and as base k(0) = 1 or nothing.


def _sliced_terms(mixture: Mixture, d: int, log_scale: float) -> Terms:
    """Over each direction E k(X, X') = (g/(2+g))^½ and E k(X, z) = (g/(1+g))^½ φ(‖z‖²; 1+g)."""
    g, weight = mixture.gamma2, math.exp(log_scale)
    c, series = quadrature.sliced_series(d)
    log_c, log_e = -0.5 * math.log1p(2.0 / g), -0.5 * math.log1p(1.0 / g)
    base = 1.0 if log_c > -WIDE else 0.0
    constant = weight * (math.expm1(log_c) if base else math.exp(log_c))
    pair = SeriesRadial(1.0 / g, weight, base, 1.0, 0.0, c, series)
    cross = SeriesRadial(
        1.0 / (1.0 + g), weight, base, math.exp(log_e), math.expm1(log_e), c, series
    )
    t, node_weights = quadrature.beta_rule(d, g)
    constant += _null_bias(pair, cross, t / g, node_weights, d)
    return Terms(pair, cross, constant, mixture_terms(mixture, d, log_scale).components)


def _imq_terms(mixture: Mixture, d: int, log_scale: float) -> Terms:
    """1/(1 + r²/(2g)) itself; its expectations over its mixture in extended precision."""
    g, weight = mixture.gamma2, math.exp(log_scale)
    t, node_weights = quadrature.exponential_rule(g / d)
    a = t / g
    log_expected = -0.5 * d * np.log1p(2.0 * a)
    less = float(node_weights @ np.expm1(log_expected))
    base = 1.0 if less > -0.5 else 0.0
    constant = weight * (less if base else float(node_weights @ np.exp(log_expected)))
    pair = Rational(1.0 / g, weight, base)
    cross = _imq_cross(a, node_weights, d, weight, base)
    constant += _null_bias(pair, cross, a, node_weights, d)
    return Terms(pair, cross, constant, mixture_terms(mixture, d, log_scale).components)


def _null_bias(
    pair: SeriesRadial | Rational, cross: Radial, a: np.ndarray, node_weights: np.ndarray, d: int
) -> float:
    """What the rounding of coefficients adds to 2 E cross − E pair under N(0, I).

    Such errors are the same for all points, and n times as large in SMMD² as in a kernel value:
    the constant takes them up.  Exact values come from the mixture in extended precision.
    """
    from scipy.special import gammaincinv  # here, because it doubles the time of an import

    chi2_half = gammaincinv(0.5 * d, (np.arange(128) + 0.5) / 128)
    powers = -np.outer(chi2_half, a)  # for ‖z‖² = χ² and r² = 2χ²
    less = np.expm1 if pair.base else np.exp
    exact_pair = less(2.0 * powers) @ node_weights
    exact_cross = less(powers / (1.0 + a) - 0.5 * d * np.log1p(a)) @ node_weights
    off_pair = pair.value(np, 4.0 * chi2_half) - pair.weight * exact_pair
    off_cross = cross.value(np, 2.0 * chi2_half) - pair.weight * exact_cross
    return float(np.mean(2.0 * off_cross - off_pair))


def _imq_cross(
    a: np.ndarray, node_weights: np.ndarray, d: int, weight: float, base: float
) -> Radial:
    """E_x k(x, z) of the inverse multiquadric: Σ_q w_q e^(−M_q) exp(−h_q ‖z‖²/2), as a series."""
    log_e = -0.5 * d * np.log1p(a)
    h = a / (1.0 + a)
    mass = node_weights * np.exp(log_e)
    amplitude = mass.sum()
    mass = mass / amplitude
    mean_h = float(mass @ h)
    # In units of the mean precision, so that the series sees a decay of order one.
    series = quadrature.fit_series(h / mean_h, mass, 2.0, 4)
    if series is not None:
        less = float(node_weights @ np.expm1(log_e))
        return SeriesRadial(mean_h, weight, base, float(amplitude), less, 2.0, series, 4.0)
    rates, offsets, weights = (
        tuple(v.astype(np.float64).tolist()) for v in (h, log_e, node_weights * weight)
    )
    return Exponentials(rates, offsets, weights, (base,) * len(rates))


def _freeze(values: Any) -> Any:
    """NumPy results of fixed kernels become plain floats, which every framework takes."""
    if isinstance(values, np.ndarray):
        return tuple(values.tolist()) if values.ndim == 1 else values
    return float(values) if isinstance(values, np.floating) else values

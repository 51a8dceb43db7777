"""Tail probabilities of Q = sum_k w_k a_k (chi2_1 - 1) + normal part, by a contour integral.

The multiplicities w_k may be fractional. With the cumulant generating function

    K(s) = sum_k w_k psi(2 s a_k) + g s^2/2,      psi(v) = -(log(1-v) + v)/2,

P(Q > z) = (1/2 pi i) int exp(K(s) - s z) ds/s along any path right of the pole at 0 and left of
1/(2 max a); left of the pole the same integral is -P(Q < z). The path is taken through the saddle
point s0, K'(s0) = z, and bent along the direction of steepest descent,

    s(y) = s0 + i y + c y^2/sqrt(1 + 4 c^2 y^2),   c = K'''(s0)/(6 K''(s0)),   y = sinh(t)/sqrt K'',

where the integrand is positive up to a mild phase and decays fast: the trapezoid rule in t is
then exact to rounding, relative to the tail itself however small that is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

Array = NDArray[np.float64]

_END = 8.0  # sinh(8) = 1490 standard widths of the integrand
_CHUNK = 2_000_000  # complex numbers held at once
_MOST = 1e7  # of them for one value: a second and 300 MB


@dataclass(frozen=True, eq=False)
class ChiSquareSum:
    """Law of sum w a (chi2_1 - 1) + N(0, normal_variance): mean 0, variance 2 sum w a^2 + g."""

    a: Array
    w: Array
    normal_variance: float = 0.0

    @property
    def variance(self) -> float:
        return float(2.0 * np.sum(self.w * self.a**2)) + self.normal_variance

    @property
    def lower_end(self) -> float:
        """No values lie below this."""
        return -np.inf if self.normal_variance > 0.0 else -float(np.sum(self.w * self.a))

    def sf(self, z: ArrayLike) -> Array:
        return self._each(z, lambda x: _from_logs(*self._log_tail(x), upper=True))

    def cdf(self, z: ArrayLike) -> Array:
        return self._each(z, lambda x: _from_logs(*self._log_tail(x), upper=False))

    def logsf(self, z: ArrayLike) -> Array:
        return self._each(z, lambda x: _log_from_logs(*self._log_tail(x), upper=True))

    def logcdf(self, z: ArrayLike) -> Array:
        return self._each(z, lambda x: _log_from_logs(*self._log_tail(x), upper=False))

    def pdf(self, z: ArrayLike) -> Array:
        return self._each(z, self._density)

    def isf(self, alpha: float) -> float:
        """The z with P(Q > z) = alpha."""
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
        # solve in logarithms, on the side where the probability is the smaller one
        if alpha <= 0.5:
            tail, target = self.logsf, np.log(alpha)
        else:
            tail, target = self.logcdf, np.log1p(-alpha)

        def excess(z: float) -> float:
            return float(np.maximum(tail(z), -1e4)) - float(target)

        unit = np.sqrt(self.variance)
        low, high = max(-unit, 0.5 * self.lower_end), unit
        while self.logsf(high) > np.log(alpha):
            high *= 2.0
        while self.logcdf(low) > np.log1p(-alpha):
            below = max(2.0 * low, 0.5 * (low + self.lower_end))
            if below == low:  # the quantile is the lower end to the last digit
                return low
            low = below
        return float(optimize.brentq(excess, low, high, xtol=1e-13 * unit, rtol=1e-13))

    def _each(self, z: ArrayLike, function: Callable[[Array], Array]) -> Array:
        """Apply to the elements in chunks of bounded memory; NaN in, NaN out."""
        values = np.asarray(z, dtype=float)
        flat = values.ravel()
        out = np.full(flat.shape, np.nan)
        known = np.flatnonzero(~np.isnan(flat))
        step = max(1, _CHUNK // (200 * self.a.size))
        for start in range(0, known.size, step):
            part = known[start : start + step]
            out[part] = function(flat[part])
        return out.reshape(values.shape)

    def _log_tail(self, z: Array) -> tuple[Array, NDArray[np.bool_]]:
        """log of the tail on the side of z, and which side (True: upper)."""
        upper = z >= 0.0
        log_tail = np.full(z.shape, -np.inf)
        inside = np.isfinite(z) & (z > self.lower_end)
        if inside.any():
            log_tail[inside] = self._contour(z[inside], upper[inside], with_pole=True)
        return log_tail, upper

    def _density(self, z: Array) -> Array:
        out = np.zeros(z.shape)
        inside = np.isfinite(z) & (z > self.lower_end)
        if inside.any():
            out[inside] = np.exp(self._contour(z[inside], z[inside] >= 0.0, with_pole=False))
        return out

    def _contour(self, z: Array, upper: NDArray[np.bool_], *, with_pole: bool) -> Array:
        pole = 0.5 / float(self.a.max())  # the branch point of K
        s0 = self._saddle_point(z, pole)
        if with_pole:  # keep away from the pole at 0, on the right side of it
            away = min(0.5 / np.sqrt(self.variance), 0.4 * pole)
            s0 = np.where(upper, np.maximum(s0, away), np.minimum(s0, -away))
        k0, _, k2, k3 = self._cumulants(s0)
        c = k3 / (6.0 * k2)
        width = 1.0 / np.sqrt(k2)

        # The trapezoid rule errs by exp(-2 pi strip / step): strip is the distance, in t, of the
        # nearest singularity (the branch point, the pole, the root in s(y)).
        room = np.minimum(pole - s0, 0.5 / c)
        if with_pole:
            room = np.minimum(room, np.abs(s0))
        strip = float(np.arcsin(np.minimum(room / width, 1.0)).min())
        step = min(0.1, 2.0 * np.pi * strip / 36.0)
        terms = _END / step * self.a.size
        if z.size > 1 and z.size * terms > _CHUNK:  # more memory than meant: by halves
            halves = (slice(None, z.size // 2), slice(z.size // 2, None))
            parts = [self._contour(z[h], upper[h], with_pole=with_pole) for h in halves]
            return np.concatenate(parts)
        if terms > _MOST:
            raise ValueError(
                "this law is so skewed that its tail would take minutes to integrate; "
                "simulate it: method='monte-carlo'"
            )
        t = np.arange(0.0, _END + step, step)
        y = width[:, None] * np.sinh(t)
        bend = np.sqrt(1.0 + 4.0 * (c[:, None] * y) ** 2)
        s = s0[:, None] + c[:, None] * y**2 / bend + 1j * y
        # d/dy [c y^2/bend] = c y (2 + 4 c^2 y^2)/bend^3
        slope = c[:, None] * y * (2.0 + 4.0 * (c[:, None] * y) ** 2) / bend**3 + 1j
        value = np.exp(self._k(s) - s * z[:, None] - (k0 - s0 * z)[:, None])
        value *= slope * (width[:, None] * np.cosh(t)) / 1j
        if with_pole:
            value /= s
        value[:, 0] *= 0.5
        total = np.abs(value.real.sum(axis=1)) * step / np.pi
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(total) + k0 - s0 * z)

    def _saddle_point(self, z: Array, pole: float) -> Array:
        """Root of K'(s) = z, increasing on (-inf, pole): Newton kept inside a bracket."""
        low = np.where(z >= 0.0, 0.0, -1.0 / np.sqrt(self.variance))
        for _ in range(1100):
            outside = self._cumulants(low)[1] > z
            if not outside.any():
                break
            low = np.where(outside, 2.0 * low, low)
        high = np.where(z >= 0.0, pole, 0.0)
        s = np.where(z >= 0.0, np.minimum(z / self.variance, 0.5 * pole), 0.5 * low)
        for _ in range(200):
            _, k1, k2, _ = self._cumulants(s)
            low, high = np.where(k1 <= z, s, low), np.where(k1 > z, s, high)
            newton = s - (k1 - z) / k2
            good = (newton > low) & (newton < high)
            following = np.where(good, newton, 0.5 * (low + high))
            if np.all(np.abs(following - s) <= 1e-9 * np.minimum(np.abs(s) + 1e-9, pole - s)):
                return following
            s = following
        return s

    def _cumulants(self, s: Array) -> tuple[Array, Array, Array, Array]:
        """K, K', K'', K''' at real s."""
        v = 2.0 * s[:, None] * self.a
        rest = 1.0 - v
        g = self.normal_variance
        k0 = _psi(v).real @ self.w + 0.5 * g * s**2
        k1 = (self.a * v / rest) @ self.w + g * s
        k2 = (2.0 * self.a**2 / rest**2) @ self.w + g
        k3 = (8.0 * self.a**3 / rest**3) @ self.w
        return k0, k1, k2, k3

    def _k(self, s: NDArray[np.complex128]) -> NDArray[np.complex128]:
        k = _psi(2.0 * s[..., None] * self.a) @ self.w.astype(complex)
        return np.asarray(k + 0.5 * self.normal_variance * s**2)


def _psi(v: NDArray[np.inexact]) -> NDArray[np.inexact]:
    """-(log(1-v) + v)/2, by its series sum v^k/(2k), k >= 2, where the logarithm would cancel."""
    small = np.abs(v) < 0.05
    out = np.zeros_like(v)
    x = v[small]
    series = np.zeros_like(x)
    for k in range(14, 1, -1):
        series = series * x + 0.5 / k
    out[small] = series * x * x
    x = v[~small]
    out[~small] = -0.5 * (np.log(1.0 - x) + x)
    return out


def _from_logs(log_tail: Array, side: NDArray[np.bool_], *, upper: bool) -> Array:
    tail = np.exp(np.minimum(log_tail, 0.0))
    return np.where(side == upper, tail, 1.0 - tail)


def _log_from_logs(log_tail: Array, side: NDArray[np.bool_], *, upper: bool) -> Array:
    tail = np.minimum(log_tail, 0.0)
    # -inf on the far side means a probability of one there: log1p(-0) = 0
    return np.where(side == upper, tail, np.log1p(-np.exp(np.minimum(tail, -1e-300))))

"""What a kernel is: a finite non-negative mixture of Gaussian precisions,

    k(r²) = Σ_q w_q exp(−a_q r²/2),   Σ_q w_q = 1.

A kernel knows how wide it is; only together with the sample size n and the dimension d (and, for
the adaptive width, the data's mean squared norm) does it become precisions and weights.  That step
is ``resolve``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal

import numpy as np

from smmd import closed_form, quadrature

Profile = Literal["mixture", "imq", "sliced"]

#: γ² = s·d with this s unless something else is asked for.
DEFAULT_SCALE = 1 / 8


@dataclass(frozen=True)
class Mixture:
    """Precisions a_q and log-weights log w_q, and the radial shortcut of the sum if there is one.

    ``precisions`` is a tuple of floats, or an array (…, 1) where the width follows the data.
    ``gamma2`` is the squared width γ² as a user would quote it, when there is just one.
    """

    precisions: Any
    log_weights: tuple[float, ...]
    profile: Profile = "mixture"
    gamma2: Any = None

    @property
    def depends_on_data(self) -> bool:
        return not isinstance(self.precisions, tuple)


class Kernel:
    """Base class of the kernels; see ``Gaussian`` for the one to start with."""

    #: True if ``resolve`` needs the mean squared norm of the data.
    adaptive = False

    def resolve(self, n: int, d: int, mean_square: Any = None) -> Mixture:
        raise NotImplementedError


def as_kernel(kernel: Any) -> Kernel:
    """Refuse, early and by name, what is not a kernel."""
    if not isinstance(kernel, Kernel):
        hint = " (pass an instance, not the class)" if isinstance(kernel, type) else ""
        raise TypeError(
            f"kernel must be one of smmd.Gaussian, HenzeZirkler, Adaptive, MultiScale, IMQ, "
            f"Sliced{hint}; got {kernel!r}"
        )
    return kernel


def chosen(scale: float, adaptive: bool, kernel: Kernel | None) -> Kernel:
    """The kernel meant by the arguments ``scale``, ``adaptive`` and ``kernel`` of ``smmd``."""
    if isinstance(scale, Kernel):
        raise TypeError(f"scale must be a number, got {scale!r}; pass it as kernel={scale!r}")
    if kernel is None:
        return Adaptive(scale) if adaptive else Gaussian(scale)
    if adaptive:
        raise ValueError(
            "adaptive=True and kernel=... exclude each other; use smmd.Adaptive(scale)"
        )
    if scale != DEFAULT_SCALE:
        raise ValueError(
            f"scale={scale!r} and kernel={kernel!r} exclude each other; give the kernel its scale"
        )
    return as_kernel(kernel)


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a positive number, got {value!r}")
    number = float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return number


def _one_precision(gamma2: float, what: str) -> float:
    """1/γ², where the formulas (which square it) still have room in float64."""
    if not 1e-100 < gamma2 < 1e100:
        raise ValueError(
            f"{what} gives the squared width γ² = {gamma2:.3g}, outside [1e-100, 1e100]: "
            "nothing of the statistic is left in float64; choose a scale nearer to 1/8"
        )
    return 1.0 / gamma2


@dataclass(frozen=True, repr=False)
class _Width(Kernel):
    """A kernel whose squared width is ``scale``·d, or ``gamma``²."""

    scale: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None and self.gamma is not None:
            raise ValueError(
                f"give scale or gamma, not both: got scale={self.scale!r}, gamma={self.gamma!r}"
            )
        if self.gamma is not None:
            _positive("gamma", self.gamma)
        if self.scale is not None:
            _positive("scale", self.scale)

    def __repr__(self) -> str:
        if self.gamma is not None:
            return f"{type(self).__name__}(gamma={float(self.gamma)!r})"
        return f"{type(self).__name__}(scale={self._scale()!r})"

    def _scale(self) -> float:
        return DEFAULT_SCALE if self.scale is None else float(self.scale)

    def gamma2(self, d: int) -> float:
        """The squared width γ² in dimension d."""
        return self._scale() * d if self.gamma is None else float(self.gamma) ** 2


@dataclass(frozen=True, repr=False)
class Gaussian(_Width):
    """exp(−r²/(2γ²)) with γ² = scale·d (default scale 1/8), or with γ = ``gamma``."""

    def resolve(self, n: int, d: int, mean_square: Any = None) -> Mixture:
        gamma2 = self.gamma2(d)
        return Mixture((_one_precision(gamma2, repr(self)),), (0.0,), gamma2=gamma2)


@dataclass(frozen=True)
class HenzeZirkler(Kernel):
    """The Gaussian kernel of the Henze–Zirkler test: γ = √2·((2d+1)n/4)^(−1/(d+4)).

    The paper's tables used γ² where this γ belongs; ``Gaussian(gamma=HenzeZirkler.gamma(n, d)
    ** 0.5)`` is what they show.
    """

    @staticmethod
    def gamma(n: int, d: int) -> float:
        """The width γ for n points in d dimensions."""
        return math.sqrt(2.0) * ((2 * d + 1) * n / 4.0) ** (-1.0 / (d + 4))

    def resolve(self, n: int, d: int, mean_square: Any = None) -> Mixture:
        gamma2 = self.gamma(n, d) ** 2
        return Mixture((1.0 / gamma2,), (0.0,), gamma2=gamma2)


@dataclass(frozen=True)
class Adaptive(Kernel):
    """The Gaussian kernel with γ² = scale·mean‖z_i‖², through which no gradient flows.

    For codes that are not normalized (paper, appendix Code).  Without data, as in
    ``null_variance``, mean‖z‖² takes its value under N(0, I), which is d.
    """

    scale: float = DEFAULT_SCALE
    adaptive = True

    def __post_init__(self) -> None:
        _positive("scale", self.scale)

    def resolve(self, n: int, d: int, mean_square: Any = None) -> Mixture:
        if mean_square is None:
            gamma2 = self.scale * d
            return Mixture((_one_precision(gamma2, repr(self)),), (0.0,), gamma2=gamma2)
        return Mixture((1.0 / (self.scale * mean_square))[..., None], (0.0,))


@dataclass(frozen=True)
class MultiScale(Kernel):
    """Gaussian kernels of several scales, each weighing the same in null standard deviations.

    SMMD² with this kernel is the sum of the standardized statistics of the scales, standardized
    again to unit null variance with their exact covariances.  As a kernel, the weights are
    proportional to 1/√c(a_q, a_q) and sum to one.
    """

    scales: tuple[float, ...] = (1 / 16, 1 / 8, 1 / 4)

    def __post_init__(self) -> None:
        try:
            scales = tuple(_positive("scales", s) for s in self.scales)
        except TypeError as error:
            raise TypeError(
                f"scales must be a sequence of positive numbers, got {self.scales!r}"
            ) from error
        if not scales:
            raise ValueError("scales is empty; give at least one scale, such as (1/16, 1/8, 1/4)")
        object.__setattr__(self, "scales", scales)

    def resolve(self, n: int, d: int, mean_square: Any = None) -> Mixture:
        a = tuple(_one_precision(s * d, repr(self)) for s in self.scales)
        log_w = -0.5 * closed_form.log_cross_covariance(np.array(a), np.array(a), d)
        log_w = log_w - (log_w.max() + math.log(np.exp(log_w - log_w.max()).sum()))
        return Mixture(a, tuple(float(v) for v in log_w))


def _quadrature_mixture(
    precision: float, t: np.ndarray, weights: np.ndarray, profile: Profile, gamma2: float
) -> Mixture:
    a, log_w = precision * t, np.log(weights)
    return Mixture(
        tuple(a.astype(np.float64).tolist()),
        tuple(log_w.astype(np.float64).tolist()),
        profile,
        gamma2,
    )


@dataclass(frozen=True, repr=False)
class IMQ(_Width):
    """The inverse multiquadric 1/(1 + r²/(2γ²)), γ² = scale·d, as a mixture of Gaussians."""

    def resolve(self, n: int, d: int, mean_square: Any = None) -> Mixture:
        gamma2 = self.gamma2(d)
        t, weights = quadrature.exponential_rule(gamma2 / d)
        return _quadrature_mixture(_one_precision(gamma2, repr(self)), t, weights, "imq", gamma2)


@dataclass(frozen=True)
class Sliced(Kernel):
    """The mean over all directions of the one-dimensional Gaussian kernel of width γ.

    MMD² with it is the mean of the one-dimensional MMD² over all projections: the Cramér–Wold
    distance, and what SIGReg samples with random directions.  In one dimension it is
    ``Gaussian(gamma=gamma)``.
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        _positive("gamma", self.gamma)

    def resolve(self, n: int, d: int, mean_square: Any = None) -> Mixture:
        gamma2 = float(self.gamma) ** 2
        precision = _one_precision(gamma2, repr(self))
        if d == 1:
            return Mixture((precision,), (0.0,), gamma2=gamma2)
        t, weights = quadrature.beta_rule(d, gamma2)
        return _quadrature_mixture(precision, t, weights, "sliced", gamma2)


#: The kernels of this module by name.
NAMED: dict[str, Any] = {
    kind.__name__: kind for kind in (Gaussian, HenzeZirkler, Adaptive, MultiScale, IMQ, Sliced)
}
_FIELDS = {name: tuple(field.name for field in fields(kind)) for name, kind in NAMED.items()}


def to_plain(kernel: Kernel) -> tuple[Any, ...]:
    """A kernel of this module as its name and numbers, which compilers keep as constants.

    PyTorch 2.11's cannot do that with an object; a kernel from elsewhere stays one.
    """
    name = type(kernel).__name__
    if NAMED.get(name) is not type(kernel):
        return (kernel,)
    return (name, *(getattr(kernel, field) for field in _FIELDS[name]))


def from_plain(plain: tuple[Any, ...]) -> Kernel:
    """The inverse of ``to_plain``."""
    first, *values = plain
    made: Kernel = NAMED[first](*values) if isinstance(first, str) else first
    return made

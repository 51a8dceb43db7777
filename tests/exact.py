"""The paper's statistics in 50-digit arithmetic: the oracle of the tests and of the accuracy table.

Written from the paper (section 2, appendix A) and from textbook integrals, not from ``smmd``.
Inputs are floats or lists of floats, taken as exact; results are mpmath numbers.

A kernel here is a squared width γ² (``g``) and a dimension ``d``, and answers seven questions:

    k(r2), slope(r2)            the kernel and its derivative as functions of ‖x − y‖²
    cross(r2), cross_slope(r2)  E_x k(x, z), x ~ N(0, I), as a function of ‖z‖²
    constant()                  E k(x, x')
    squares()                   E k(x, x')²  and  E_z (E_x k(x, z))²
    overlap(delta2, v)          E k(X, Y), X − Y ~ N(Δ, diag v), from Δ² and v by coordinates
"""

from __future__ import annotations

from functools import cache

from mpmath import mp, mpf

mp.dps = 50

#: Step and left end of the trapezoidal rule in u = log t.  The integrands are analytic in the strip
#: |Im u| < π/2, so that its error is e^(−π²/h) ≈ 1e-51.
_STEP = mpf(1) / 12
_LEFT = -120


class Gaussian:
    """exp(−r²/(2g))."""

    def __init__(self, g, d):
        self.g, self.d = mpf(g), d

    def k(self, r2):
        return mp.exp(-r2 / (2 * self.g))

    def slope(self, r2):
        return -self.k(r2) / (2 * self.g)

    def cross(self, r2):
        g, d = self.g, self.d
        return (g / (1 + g)) ** (mpf(d) / 2) * mp.exp(-r2 / (2 * (1 + g)))

    def cross_slope(self, r2):
        return -self.cross(r2) / (2 * (1 + self.g))

    def constant(self):
        return (self.g / (2 + self.g)) ** (mpf(self.d) / 2)

    def squares(self):
        return gaussian_products(self.g, self.g, self.d)[:2]

    def overlap(self, delta2, v):
        g = self.g
        log = sum(mp.log(g / (g + s)) - x / (g + s) for x, s in zip(delta2, v, strict=True))
        return mp.exp(log / 2)


def gaussian_products(g, h, d):
    """E k_g k_h, E e_g e_h and E k_g · E k_h of two Gaussian kernels, e(z) = E_x k(x, z)."""
    half = -mpf(d) / 2
    a, b = 1 / mpf(g), 1 / mpf(h)
    return (
        (1 + 2 * a + 2 * b) ** half,
        ((1 + a) * (1 + b) * (1 + a / (1 + a) + b / (1 + b))) ** half,
        ((1 + 2 * a) * (1 + 2 * b)) ** half,
    )


class Mixture:
    """Σ weights · Gaussians of squared widths gs."""

    def __init__(self, weights, gs, d):
        self.weights, self.parts = [mpf(w) for w in weights], [Gaussian(g, d) for g in gs]
        self.d = d

    def _sum(self, values):
        return mp.fsum(w * v for w, v in zip(self.weights, values, strict=True))

    def k(self, r2):
        return self._sum(p.k(r2) for p in self.parts)

    def slope(self, r2):
        return self._sum(p.slope(r2) for p in self.parts)

    def cross(self, r2):
        return self._sum(p.cross(r2) for p in self.parts)

    def cross_slope(self, r2):
        return self._sum(p.cross_slope(r2) for p in self.parts)

    def constant(self):
        return self._sum(p.constant() for p in self.parts)

    def squares(self):
        pairs = [
            (v * w, gaussian_products(p.g, q.g, self.d))
            for v, p in zip(self.weights, self.parts, strict=True)
            for w, q in zip(self.weights, self.parts, strict=True)
        ]
        return tuple(mp.fsum(w * products[i] for w, products in pairs) for i in (0, 1))

    def overlap(self, delta2, v):
        return self._sum(p.overlap(delta2, v) for p in self.parts)


def multi_scale(scales, d):
    """The sum of the standardized kernels of several scales (paper, section 3.1), Σ weights = 1."""
    parts = [Gaussian(mpf(s) * d, d) for s in scales]
    weights = [1 / mp.sqrt(centred_second_moment(p)) for p in parts]
    return Mixture([w / mp.fsum(weights) for w in weights], [p.g for p in parts], d)


class Sliced:
    """The mean of the one-dimensional Gaussian kernel over directions, ₁F₁(1/2; d/2; −r²/(2g))."""

    def __init__(self, g, d):
        self.g, self.d = mpf(g), d

    def _phi(self, r2, g):
        return mp.hyp1f1(mpf(1) / 2, mpf(self.d) / 2, -r2 / (2 * g))

    def _phi_slope(self, r2, g):
        derivative = mp.hyp1f1(mpf(3) / 2, mpf(self.d) / 2 + 1, -r2 / (2 * g)) / self.d
        return -derivative / (2 * g)

    def k(self, r2):
        return self._phi(r2, self.g)

    def slope(self, r2):
        return self._phi_slope(r2, self.g)

    def cross(self, r2):
        return mp.sqrt(self.g / (1 + self.g)) * self._phi(r2, 1 + self.g)

    def cross_slope(self, r2):
        return mp.sqrt(self.g / (1 + self.g)) * self._phi_slope(r2, 1 + self.g)

    def constant(self):
        return mp.sqrt(self.g / (2 + self.g))

    def squares(self):
        """Over two directions with cosine ρ, E ρ^(2j) = (1/2)_j/(d/2)_j makes the series a ₂F₁."""
        g = self.g

        def mean_inverse_root(a, b):  # E (a² − b²ρ²)^(−1/2)
            half = mpf(1) / 2
            return mp.hyp2f1(half, half, mpf(self.d) / 2, (b / a) ** 2) / a

        return (
            mean_inverse_root(1 + 2 / g, 2 / g),
            g / (1 + g) * mean_inverse_root(1 + 1 / (1 + g), 1 / (1 + g)),
        )

    def overlap(self, delta2, v):
        if self.d == 1:
            return Gaussian(self.g, 1).overlap(delta2, v)
        return mp.fsum(
            w * Gaussian(self.g / t, self.d).overlap(delta2, v) for t, w in _beta(self.d)
        )


class InverseMultiquadric:
    """1/(1 + r²/(2g)) = ∫ e^(−t) exp(−t r²/(2g)) dt."""

    def __init__(self, g, d):
        self.g, self.d = mpf(g), d
        half = -mpf(d) / 2
        # t, weight, and what E_x k of precision t/g is: amplitude · exp(−rate · ‖z‖²)
        self.nodes = [
            (t, w * (1 + t / self.g) ** half, t / (2 * (self.g + t))) for t, w in _exponential()
        ]

    def k(self, r2):
        return 1 / (1 + r2 / (2 * self.g))

    def slope(self, r2):
        return -(self.k(r2) ** 2) / (2 * self.g)

    def cross(self, r2):
        return mp.fsum(w * mp.exp(-rate * r2) for _, w, rate in self.nodes)

    def cross_slope(self, r2):
        return mp.fsum(-rate * w * mp.exp(-rate * r2) for _, w, rate in self.nodes)

    def constant(self):
        return _laplace(2 / self.g, self.d)

    def squares(self):
        """1/(1+x)² = ∫ t e^(−t(1+x)) dt; the double integral of e has a closed inner one."""
        g, half = self.g, -mpf(self.d) / 2
        first = mp.fsum(w * t * (1 + 2 * t / g) ** half for t, w in _exponential())
        second = mp.fsum(
            w * (1 + 2 * t / g) ** half * _laplace((2 + 3 * t / g) / (1 + 2 * t / g) / g, self.d)
            for t, w in _exponential()
            if w > mpf("1e-45")
        )
        return first, second

    def overlap(self, delta2, v):
        return mp.fsum(
            w * Gaussian(self.g / t, self.d).overlap(delta2, v) for t, w in _exponential()
        )


def _laplace(c, d):
    """∫ e^(−t) (1 + c t)^(−d/2) dt = y e^y E_p(y), y = 1/c, p = d/2: the exponential integral."""
    with mp.workdps(mp.dps + 20):  # the recurrence loses up to e^30
        y, p = 1 / c, mpf(d) / 2
        if y > 30:  # the continued fraction of E_p, whose error is about exp(−4√(terms·y))
            tail = mpf(0)
            for j in range(int(4200 / y) + 12, 0, -1):
                tail = j * (p + j - 1) / (y + p + 2 * j - tail)
            return y / (y + p - tail)
        if d % 2:
            q, scaled = mpf(1) / 2, mp.exp(y) * mp.sqrt(mp.pi / y) * mp.erfc(mp.sqrt(y))
        else:
            q, scaled = mpf(1), mp.exp(y) * mp.e1(y)
        while q < p:  # E_(q+1) = (e^(−y) − y E_q)/q
            q, scaled = q + 1, (1 - y * scaled) / q
        return y * scaled


@cache
def _exponential():
    """t and weights of ∫ e^(−t) f(t) dt."""
    grid = [mp.exp(i * _STEP) for i in range(int(_LEFT / _STEP), int(5 / _STEP) + 1)]
    return [(t, _STEP * t * mp.exp(-t)) for t in grid]


@cache
def _beta(d):
    """t and weights of the mean over t ~ Beta(1/2, (d−1)/2), in u = log(t/(1−t))."""
    beta = mp.beta(mpf(1) / 2, mpf(d - 1) / 2)
    rule = []
    for i in range(int(2 * _LEFT / _STEP), int(-2 * _LEFT / _STEP) + 1):
        grow = mp.exp(i * _STEP)
        t = grow / (1 + grow)
        weight = _STEP * mp.sqrt(t) * (1 / (1 + grow)) ** (mpf(d - 1) / 2) / beta
        if weight > mpf("1e-52"):
            rule.append((t, weight))
    return rule


# The statistics ------------------------------------------------------------------------------


def _square(x):
    return mp.fsum(v * v for v in x)


def _distance2(x, y):
    return mp.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def _rows(z):
    return [[v if isinstance(v, mpf) else mpf(float(v)) for v in row] for row in z]


def centred_second_moment(kernel):
    """E h², h the kernel centred on both sides: the bracket of the paper's Var(γ, d, n)."""
    with mp.workdps(100):  # a wide kernel's three terms agree to many digits
        both, one = kernel.squares()
        return both - 2 * one + kernel.constant() ** 2


def mmd2(kernel, z, *, unbiased=True, var=None):
    """The paper's MMD²_u and MMD²_b; with ``var`` (a list like z) those of a random encoder."""
    z, n = _rows(z), len(z)
    if var is None:
        cross = [kernel.cross(_square(x)) for x in z]
        pairs = [kernel.k(_distance2(z[i], z[j])) for i in range(n) for j in range(i)]
        own = [mpf(1)] * n
    else:
        var = _rows(var)
        cross = [
            kernel.overlap([v * v for v in x], [1 + s for s in v2])
            for x, v2 in zip(z, var, strict=True)
        ]
        pairs = [
            kernel.overlap(
                [(a - b) ** 2 for a, b in zip(z[i], z[j], strict=True)],
                [s + t for s, t in zip(var[i], var[j], strict=True)],
            )
            for i in range(n)
            for j in range(i)
        ]
        own = [kernel.overlap([mpf(0)] * len(s), [2 * v for v in s]) for s in var]
    between = 2 * mp.fsum(pairs)
    mean = between / (n * (n - 1)) if unbiased else (between + mp.fsum(own)) / n**2
    return kernel.constant() - 2 * mp.fsum(cross) / n + mean


def null_variance(kernel, n, *, unbiased=True):
    """Var MMD² under N(0, I); for the biased estimator from h(z, z) = 1 + E k − 2 E_x k(x, z)."""
    second = centred_second_moment(kernel)
    if unbiased:
        return 2 * second / (n * (n - 1))
    diagonal = 4 * (kernel.squares()[1] - kernel.constant() ** 2)
    return (2 * (n - 1) * second + diagonal) / mpf(n) ** 3


def null_mean(kernel, n):
    """The mean of MMD²_b under N(0, I)."""
    return (1 - kernel.constant()) / n


def smmd(kernel, z, *, var=None):
    """MMD²_u over its null standard deviation."""
    return mmd2(kernel, z, var=var) / mp.sqrt(null_variance(kernel, len(z)))


def gradient(kernel, z):
    """∂ MMD²_u / ∂z, a list like z."""
    z, n = _rows(z), len(z)
    result = []
    for i, x in enumerate(z):
        pull = -4 * kernel.cross_slope(_square(x)) / n
        row = [pull * v for v in x]
        for j, y in enumerate(z):
            if j != i:
                push = 4 * kernel.slope(_distance2(x, y)) / (n * (n - 1))
                row = [r + push * (a - b) for r, a, b in zip(row, x, y, strict=True)]
        result.append(row)
    return result


def witness(kernel, z, at):
    """mean_i k(z_i, t) − E_x k(x, t) for each t in ``at``."""
    z, at = _rows(z), _rows(at)
    return [
        mp.fsum(kernel.k(_distance2(x, t)) for x in z) / len(z) - kernel.cross(_square(t))
        for t in at
    ]


def two_sample(kernel, z, y, *, unbiased=True):
    """The usual estimator of MMD² between two samples."""
    z, y = _rows(z), _rows(y)

    def within(x):
        n = len(x)
        total = 2 * mp.fsum(kernel.k(_distance2(x[i], x[j])) for i in range(n) for j in range(i))
        return total / (n * (n - 1)) if unbiased else (total + n) / n**2

    across = mp.fsum(kernel.k(_distance2(a, b)) for a in z for b in y) / (len(z) * len(y))
    return within(z) + within(y) - 2 * across


def mean_square(z):
    """mean‖z_i‖², which the adaptive width is a multiple of."""
    return mp.fsum(_square(x) for x in _rows(z)) / len(z)

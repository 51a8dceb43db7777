"""Derivatives in 50-digit arithmetic: of random encoders' MMD², and second ones of MMD²_u.

Written from the formulas by hand, not by the frameworks' automatic differentiation.
"""

from __future__ import annotations

from mpmath import mp, mpf

from tests import exact


def _overlap_slopes(kernel, delta, v):
    """∂/∂Δ_k and ∂/∂v_k of E k(X, Y), X − Y ~ N(Δ, diag v).

    For one Gaussian log E k = ½ Σ_k [log(g/(g + v_k)) − Δ_k²/(g + v_k)].
    """
    if isinstance(kernel, exact.Mixture):
        parts = [_overlap_slopes(p, delta, v) for p in kernel.parts]
        return tuple(
            [
                mp.fsum(w * part[side][k] for w, part in zip(kernel.weights, parts, strict=True))
                for k in range(len(delta))
            ]
            for side in (0, 1)
        )
    value = kernel.overlap([x * x for x in delta], v)
    wide = [kernel.g + s for s in v]
    by_delta = [-value * x / g for x, g in zip(delta, wide, strict=True)]
    by_v = [value * (x * x / g - 1) / (2 * g) for x, g in zip(delta, wide, strict=True)]
    return by_delta, by_v


def encoder_gradient(kernel, mu, var, *, unbiased=True):
    """∂ MMD² / ∂mu and ∂ MMD² / ∂var of a random encoder, lists like mu."""
    mu, var, n = exact._rows(mu), exact._rows(var), len(mu)
    pairs = n * (n - 1) if unbiased else n * n
    by_mu, by_var = [], []
    for i in range(n):
        slope, spread = _overlap_slopes(kernel, mu[i], [1 + s for s in var[i]])
        rows = [[-2 * s / n for s in slope]], [[-2 * s / n for s in spread]]
        for j in range(n):
            if j == i and unbiased:
                continue
            delta = [a - b for a, b in zip(mu[i], mu[j], strict=True)]
            slope, spread = _overlap_slopes(
                kernel, delta, [s + t for s, t in zip(var[i], var[j], strict=True)]
            )
            rows[0].append([2 * s / pairs for s in slope])
            rows[1].append([2 * s / pairs for s in spread])
        by_mu.append([mp.fsum(column) for column in zip(*rows[0], strict=True)])
        by_var.append([mp.fsum(column) for column in zip(*rows[1], strict=True)])
    return by_mu, by_var


def hessian_product(kernel, z, u):
    """The derivative of ∂ MMD²_u / ∂z along u, by a central difference of the exact gradient.

    With 50 digits more and a step of 1e-25 its error is about 1e-50 of the third derivative.
    """
    z, u = exact._rows(z), exact._rows(u)
    with mp.workdps(100):
        step = mpf(10) ** -25

        def at(sign):
            moved = [
                [a + sign * step * b for a, b in zip(x, y, strict=True)]
                for x, y in zip(z, u, strict=True)
            ]
            return exact.gradient(kernel, moved)

        return [
            [(a - b) / (2 * step) for a, b in zip(x, y, strict=True)]
            for x, y in zip(at(1), at(-1), strict=True)
        ]


def relative_error(got, truth):
    """‖got − truth‖ in units of ‖truth‖, over all entries; both as nested lists or arrays."""
    difference = mp.sqrt(
        mp.fsum(
            (mpf(float(a)) - b) ** 2
            for x, y in zip(got, truth, strict=True)
            for a, b in zip(x, y, strict=True)
        )
    )
    norm = mp.sqrt(mp.fsum(b**2 for y in truth for b in y))
    if norm == 0:
        return 0.0 if difference == 0 else float("inf")
    return float(difference / norm)

"""Random hard cases: scales, positions and shapes drawn where float64 arithmetic has most to lose.

Every case is small, so that 50 digits stay affordable, and the same for the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tests import cases

DIMENSIONS = (1, 1, 2, 3, 4, 8, 16, 31, 64, 128, 512)
SPREADS = (1e-9, 1e-4, 0.1, 0.5, 1.0, 1.0, 1.0, 2.0, 30.0, 1e6)
PLACES = (0.0, 0.0, 0.0, 0.5, 1.0, 3.0, 40.0, 1e3, 1e6)


@dataclass(frozen=True)
class Hard:
    """Points, a random encoder's variances or none, and a kernel."""

    label: str
    case: cases.Case
    z: np.ndarray
    var: np.ndarray | None


def random_cases(count: int, seed: int = 0, *, encoders: float = 0.25) -> Iterator[Hard]:
    """``count`` cases, a share ``encoders`` of them with variances."""
    made, index = 0, 0
    while made < count:
        rng = np.random.default_rng((seed, index))
        index += 1
        case = _kernel(rng)
        z, about = _points(rng)
        if not cases.worth_trying(case, z):
            continue
        var = None
        if rng.random() < encoders and not case.label.startswith(("IMQ", "Sliced", "Adaptive")):
            var, spread = _variances(rng, z)
            about = f"{about}, {spread}"
        made += 1
        yield Hard(f"#{index - 1} {case}: {about}", case, z, var)


def _kernel(rng: np.random.Generator) -> cases.Case:
    scale = float(10.0 ** rng.uniform(-6, 9)) if rng.random() < 0.7 else 1 / 8
    kind = rng.random()
    if kind < 0.6:
        return cases.gaussian(scale)
    if kind < 0.7:
        return cases.imq(scale)
    if kind < 0.8:
        return cases.sliced(float(10.0 ** rng.uniform(-2, 4)))
    if kind < 0.87:
        return cases.multi_scale(scale, 1 / 8, 30.0 * scale)
    return cases.HENZE_ZIRKLER if kind < 0.92 else cases.adaptive(scale)


def _points(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    n, d = int(rng.choice((2, 2, 3, 4, 6, 9))), int(rng.choice(DIMENSIONS))
    if d > 100:
        n = min(n, 4)
    spread, place = float(rng.choice(SPREADS)), float(rng.choice(PLACES))
    z = spread * rng.standard_normal((n, d)) + place * rng.choice((-1.0, 1.0), d)
    about = f"{n}x{d}, spread {spread:g} at {place:g}"
    twist = rng.random()
    if twist < 0.15:
        gap = float(10.0 ** rng.uniform(-15, -3))
        z[n // 2 :] = z[: n - n // 2] + gap * rng.standard_normal((n - n // 2, d))
        about += f", pairs {gap:.0e} apart"
    elif twist < 0.3:
        far = float(10.0 ** rng.uniform(0, 6))
        z[rng.integers(n)] += far * rng.standard_normal(d)
        about += f", one out by {far:.0e}"
    elif twist < 0.4:
        z *= 10.0 ** rng.uniform(-6, 3, d)
        about += ", columns of all sizes"
    elif twist < 0.45:
        z = np.round(z)
        about += ", rounded"
    elif twist < 0.5:
        z[:] = z[0]
        about += ", all equal"
    elif twist < 0.6 and n % 2 == 0:
        z[n // 2 :] = -z[: n // 2]
        about += ", mirrored"
    return z, about


def _variances(rng: np.random.Generator, z: np.ndarray) -> tuple[np.ndarray, str]:
    size = float(10.0 ** rng.uniform(-8, 4)) if rng.random() < 0.5 else 0.3
    one_each = bool(rng.random() < 0.4)
    var = size * rng.uniform(0.0, 2.0, z.shape[:-1] if one_each else z.shape)
    if rng.random() < 0.2:
        var[0] = 0.0
    return var, f"{'isotropic' if one_each else 'diagonal'} variances of {size:.1g}"


def full(hard: Hard) -> np.ndarray:
    """The variances in the shape of the points."""
    assert hard.var is not None
    var = hard.var if hard.var.ndim == hard.z.ndim else hard.var[..., None]
    return np.broadcast_to(var, hard.z.shape)

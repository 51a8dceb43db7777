"""Accuracy of the GPU kernels: sums and gradients against float64, in null standard deviations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import smmd
import smmd.torch
from benchmarks import _gpu_compile, _gpu_timing
from benchmarks._gpu_record import Record
from smmd import quadrature
from smmd.pairs import triton as pairs
from smmd.pairs.profile import rational_profile, series_profile

Radial = Callable[[Tensor], tuple[Tensor, Tensor]]

#: The path of large samples, with the gradient at once and by stored weights.
TILES = {
    "chosen": None,
    "gram": pairs.Tiles(128, 64, 8, 3, 2, 3),
    "strip": pairs.Tiles(128, 64, 8, 3, 2, 2, 64, 1024),
}
COLUMNS = (
    "kernel", "d", "n", "path", "value", "value+grad", "gradient", "amplification", "same bits",
)  # fmt: skip
#: Kernels by dimension, first things first: all of them where matrix units take one step, and
#: where they take several; in between and at the ends what is most used.
KINDS = ("s=0.125", "sliced", "multi", "imq", "s=1000", "s=0.03125")
CASES = [
    (8, KINDS),
    (65, KINDS),
    (512, KINDS[:4]),
    (1024, KINDS[:1]),
    (1, KINDS[:1]),
    (3, KINDS[:2]),
]
SIZES, LARGE = (2, 41, 401, 1271, 4096), 65537


@dataclass
class Problem:
    """A kernel for n points in d dimensions: how to sum it, and what it is in float64."""

    name: str
    d: int
    sums: Callable[..., tuple[Tensor, Tensor | None]]
    exact: Radial  # r² -> value, −4·slope
    spread: float  # √(2 E h²): the null standard deviation of MMD² times √(n(n−1))
    kernel: smmd.Kernel


def covariance(a: np.ndarray, b: np.ndarray, d: int) -> np.ndarray:
    """E[h_a h_b] under N(0, I_d) without cancellation."""
    lead = -0.5 * d * np.log1p(2 * a + 2 * b + 3 * a * b)
    first = np.expm1(0.5 * d * np.log1p(3 * a * b / (1 + 2 * a + 2 * b)))
    second = np.expm1(-0.5 * d * np.log1p(a * b / (1 + 2 * a + 2 * b + 3 * a * b)))
    return np.exp(lead) * (first + second)


def _mixture_spread(a: np.ndarray, w: np.ndarray, d: int) -> float:
    return math.sqrt(2.0 * float(w @ covariance(a[:, None], a[None, :], d) @ w))


def exponentials(
    name: str,
    d: int,
    a: list[float],
    weight: list[float],
    base: float,
    device: str,
    kernel: smmd.Kernel,
) -> Problem:
    fields = [torch.tensor([v], dtype=torch.float64, device=device) for v in (a, weight)]
    zero = torch.zeros_like(fields[0])

    def sums(z: Tensor, **how: object) -> tuple[Tensor, Tensor | None]:
        return pairs.pair_sums(z, z, fields[0], zero, fields[1], zero + base, **how)

    def exact(r2: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = torch.zeros_like(r2), torch.zeros_like(r2)
        for aq, wq in zip(a, weight, strict=True):
            e = -0.5 * aq * r2
            value += wq * (torch.expm1(e) if base else torch.exp(e))
            slope += 2.0 * wq * aq * torch.exp(e)
        return value, slope

    spread = _mixture_spread(np.array(a), np.array(weight), d)
    return Problem(name, d, sums, exact, spread, kernel)


def sliced(d: int, device: str) -> Problem:
    c, series = quadrature.sliced_series(d)
    flat = series_profile(d, 1.0, c, series[0]).flat()

    def exact(r2: Tensor) -> tuple[Tensor, Tensor]:
        x = 0.5 * r2
        w = torch.rsqrt(1.0 + x / c)
        value = 1.0 - x / (c + x) * _clenshaw(series[0], w)
        return value, 2.0 * w**3 * _clenshaw(series[1], w)

    t, weights = (v.astype(np.float64) for v in quadrature.beta_rule(d))
    spread = _mixture_spread(t, weights, d)
    return Problem("sliced", d, _profile_sums(flat), exact, spread, smmd.Sliced())


def imq(d: int, device: str) -> Problem:
    a = 8.0 / d
    flat = rational_profile(a).flat()

    def exact(r2: Tensor) -> tuple[Tensor, Tensor]:
        inverse = 1.0 / (1.0 + 0.5 * a * r2)
        return inverse, 2.0 * a * inverse * inverse

    t, weights = (v.astype(np.float64) for v in quadrature.exponential_rule())
    spread = _mixture_spread(a * t, weights, d)
    return Problem("imq", d, _profile_sums(flat), exact, spread, smmd.IMQ())


def _profile_sums(flat: list[float]) -> Callable[..., tuple[Tensor, Tensor | None]]:
    def sums(z: Tensor, **how: object) -> tuple[Tensor, Tensor | None]:
        return pairs.profile_sums(z, z, flat, **how)

    return sums


def _clenshaw(series: tuple[float, ...], w: Tensor) -> Tensor:
    y2 = 4.0 * w - 2.0
    one, two = torch.zeros_like(w), torch.zeros_like(w)
    for term in series[:0:-1]:
        one, two = y2 * one - two + term, one
    return 0.5 * y2 * one - two + series[0]


def reference(z: Tensor, exact: Radial) -> tuple[float, Tensor]:
    """The sum and the gradient in float64, by blocks of rows."""
    z = z.double()
    z = z - z.mean(0)
    n = len(z)
    square = (z * z).sum(1)
    total, gradient = 0.0, torch.empty_like(z)
    step = max(1, min(n, 100_000_000 // n))
    for start in range(0, n, step):
        rows = z[start : start + step]
        if z.shape[1] <= 8:
            r2 = torch.zeros((len(rows), n), dtype=torch.float64, device=z.device)
            for k in range(z.shape[1]):
                r2 += (rows[:, k, None] - z[None, :, k]) ** 2
        else:
            r2 = torch.addmm(square, rows, z.T, alpha=-2.0) + square[start : start + step, None]
        value, pull = exact(r2.clamp_(min=0.0))
        index = torch.arange(len(rows), device=z.device)
        value[index, start + index] = 0.0
        pull[index, start + index] = 0.0
        total += float(value.sum())
        gradient[start : start + step] = pull @ z - pull.sum(1, keepdim=True) * rows
    return total, gradient


def problems(d: int, device: str, kinds: list[str]) -> list[Problem]:
    """The kernels that are checked in d dimensions."""
    found = []
    for kind in kinds:
        if kind.startswith("s="):
            a = 1.0 / (float(kind[2:]) * d)
            wide = 1.0 if a * d < 0.5 else 0.0
            kernel = smmd.Gaussian(float(kind[2:]))
            found.append(exponentials(kind, d, [a], [1.0], wide, device, kernel))
        elif kind == "multi":
            a3 = np.array([16.0 / d, 8.0 / d, 4.0 / d])
            w3 = covariance(a3, a3, d) ** -0.5
            weight = (w3 / w3.sum()).tolist()
            scales = smmd.MultiScale((1 / 16, 1 / 8, 1 / 4))
            found.append(exponentials(kind, d, a3.tolist(), weight, 0.0, device, scales))
        elif kind == "sliced" and d >= 2:
            found.append(sliced(d, device))
        elif kind == "imq":
            found.append(imq(d, device))
    return found


def errors(
    problem: Problem, z: Tensor, exact: tuple[float, Tensor], tiles: pairs.Tiles | None
) -> dict[str, float]:
    """Errors of the value alone, of value with gradient, and of the gradient (relative norm)."""
    n = z.shape[0]
    batch = z.float().contiguous()[None]
    unit = problem.spread * math.sqrt(n * (n - 1.0))
    alone, _ = problem.sums(batch, gradient=False, tiles=tiles)
    both, gradient = problem.sums(batch, tiles=tiles)
    assert gradient is not None
    again, gradient_again = problem.sums(batch, tiles=tiles)
    assert gradient_again is not None
    same = bool((both == again).all() and (gradient == gradient_again).all())
    norm = float(exact[1].norm())
    return {
        "value": (float(alone) - exact[0]) / unit,
        "value+grad": (float(both) - exact[0]) / unit,
        "gradient": float((gradient[0].double() - exact[1]).norm()) / max(norm, 1e-300),
        "amplification": abs(exact[0]) / unit,
        "same bits": float(same),
    }


def loss_errors(kernel: smmd.Kernel, z: Tensor) -> dict[str, float]:
    """Errors of the loss as users call it, against the float64 path, which has no Triton kernel."""
    loss = smmd.torch.SMMDLoss(kernel=kernel)
    found = []
    for points in (z, z, z.double()):
        leaf = points.clone().requires_grad_()
        with nullcontext() if points is z else smmd.pairs.use("dense"):
            value = loss(leaf)
            found.append((value.detach().double(), torch.autograd.grad(value, leaf)[0].double()))
    with torch.no_grad():
        alone = loss(z).double()
    (both, gradient), (again, gradient_again), (value, exact) = found
    return {
        "value": float(alone - value),
        "value+grad": float(both - value),
        "gradient": float((gradient - exact).norm() / exact.norm().clamp(min=1e-300)),
        "amplification": float(value),
        "same bits": float((both == again) & (gradient == gradient_again).all()),
    }


def paths(problem: Problem, n: int, d: int) -> Iterator[str]:
    """Which ways a sum of this size is checked."""
    yield "chosen"
    if problem.name in ("s=0.125", "sliced") and 41 <= n <= 4096:
        if d <= 65:
            yield "gram"
        if d > 8:
            yield "strip"
    if n <= 1271 and n * d <= 1_000_000:
        yield "loss"


def warm(problem: Problem, n: int, d: int) -> None:
    """Call what ``check_one`` calls, for the compiler's cache."""
    z = torch.randn(1, n, d, device=_gpu_timing.DEVICE)
    for path in paths(problem, n, d):
        for gradient in (True, False):
            if path == "loss":
                leaf = z[0].requires_grad_(gradient)
                smmd.torch.SMMDLoss(kernel=problem.kernel)(leaf)
            else:
                problem.sums(z, gradient=gradient, tiles=TILES[path])


def check_one(problem: Problem, n: int, d: int) -> Iterator[dict[str, object]]:
    """Errors on every path, of points off the origin (of the loss, on it)."""
    torch.manual_seed(n + d)
    z = torch.randn(n, d, device=_gpu_timing.DEVICE) + 3.0
    exact = reference(z, problem.exact)
    for path in paths(problem, n, d):
        if path == "loss":
            e = loss_errors(problem.kernel, z - 3.0)
        else:
            e = errors(problem, z, exact, TILES[path])
        print(
            f"{problem.name:9s} {d:5d} {n:6d} {path:7s} {e['value']:+.1e} {e['value+grad']:+.1e} | "
            f"{e['gradient']:.1e} | {e['amplification']:.1e} same={e['same bits']:.0f}",
            flush=True,
        )
        yield {"kernel": problem.name, "d": d, "n": n, "path": path, **e}


def run(path: Path | None, seconds: float, *, tiny: bool = False) -> list[dict[str, object]]:
    """Errors at awkward shapes: sums on each path, and whole losses as users call them."""
    record = Record(COLUMNS, path, seconds)
    cases = [(d, kind) for d, kinds in CASES for kind in kinds]
    sizes: tuple[int, ...] = SIZES
    if tiny:
        cases, sizes = [(3, kind) for kind in KINDS] + [(65, "s=0.125")], (2, 41)
    _gpu_compile.compile_all(
        [("checked", (kind, d, sizes[:-1])) for d, kind in cases], 0.6 * seconds
    )
    print("errors in null sd: value, value+grad | gradient, relative | amplification")
    for d, kind in cases:
        large = [LARGE] if kind in ("s=0.125", "sliced") and d <= 512 and not tiny else []
        for problem in problems(d, _gpu_timing.DEVICE, [kind]):
            for n in (*sizes, *large):
                if record.over:
                    print(f"no time left for {kind}, d = {d}, n = {n}", flush=True)
                    continue
                for row in check_one(problem, n, d):
                    record.add(**row)
    summary(record.rows)
    return record.rows


def summary(rows: list[dict[str, object]]) -> None:
    """The largest errors of each path."""
    for path in dict.fromkeys(row["path"] for row in rows):
        here = [row for row in rows if row["path"] == path and int(str(row["n"])) <= 4096]
        value = max(abs(float(str(r[k]))) for r in here for k in ("value", "value+grad"))
        slope = max(float(str(r["gradient"])) for r in here)
        print(f"largest errors for n <= 4096, {path}: {value:.1e} null sd, gradient {slope:.1e}")
    print("same bits twice:", all(float(str(row["same bits"])) == 1.0 for row in rows))

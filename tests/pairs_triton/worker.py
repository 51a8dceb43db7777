"""Triton's kernels in its interpreter against float64: writes every case's errors to a file.

``test_kernels`` runs this in a process of its own: Triton reads TRITON_INTERPRET when imported.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import triton as compiler
import triton.language as tl
from scipy import special
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import smmd
import smmd.torch
from smmd import measure, pairs
from smmd.pairs import ranks, torch_statistic, triton
from smmd.pairs.triton import Tiles
from smmd.pairs.triton_gram_sums import _Split
from smmd.pairs.triton_math import profile
from smmd.pairs.triton_plan import NO_CROSS, choose_tiles, column_cuts

KERNELS = {
    "narrow": smmd.Gaussian(1 / 8),
    "narrower": smmd.Gaussian(1 / 32),
    "wide": smmd.Gaussian(1e3),
    "scales": smmd.MultiScale((1 / 16, 1 / 8, 1 / 4)),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
    "adaptive": smmd.Adaptive(),
}
#: How large samples are cut, small enough for small samples to be cut: gradient at once, weights
#: stored in strips, both with several programs a row.
FUSED = Tiles(32, 32, 4, 3, 3, 3, 32)
STRIPS = Tiles(32, 32, 4, 3, 2, 2, 32, 64)
TILES = {"direct": None, "fused": FUSED, "strips": STRIPS}
FIXED = ("narrow", "narrower", "wide", "scales", "imq", "sliced")
#: Paths and samples, whose n and d fit no tile.
CASES = [
    ("direct", (2, 1), ("narrow", "wide", "imq")),
    ("direct", (41, 3), FIXED),
    ("direct", (130, 8), ("narrow",)),
    ("direct", (97, 33), FIXED),
    ("fused", (41, 3), ("narrow",)),
    ("fused", (130, 8), FIXED),
    ("fused", (97, 33), ("narrow", "sliced")),
    ("strips", (130, 8), ("narrow",)),
    ("strips", (97, 65), FIXED),
]


def points(n: int, d: int, *batch: int) -> Tensor:
    """Not quite standard normal, and off the origin."""
    generator = torch.Generator().manual_seed(n + d)
    return 1.1 * torch.randn(*batch, n, d, generator=generator) + 0.3


def exact(z: Tensor, kernel: Any, **how: Any) -> tuple[Tensor, Tensor]:
    """Value and gradient in float64, by blocks of NumPy."""
    leaf = z.double().requires_grad_()
    value = smmd.mmd2(leaf, kernel, **how) if how else smmd.smmd(leaf, kernel=kernel)
    (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), slope


def errors(found: tuple[Tensor, Tensor | None], truth: tuple[Tensor, Tensor]) -> dict[str, float]:
    """Of the value, in null standard deviations; of the gradient, relative to its norm."""
    value, slope = found
    largest = float(((value.double() - truth[0]) / truth[0].abs().clamp(min=1.0)).abs().max())
    answer = {"value": largest}
    if slope is not None:
        scale = truth[1].norm().clamp(min=1e-300)
        answer["gradient"] = float((slope.double() - truth[1]).norm() / scale)
    return answer


def through_autograd(z: Tensor, kernel: Any, **how: Any) -> tuple[Tensor, Tensor]:
    """As a user calls it."""
    leaf = z.clone().requires_grad_()
    with pairs.use("triton"):
        value = smmd.mmd2(leaf, kernel, **how) if how else smmd.smmd(leaf, kernel=kernel)
        (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), slope


def statistic(z: Tensor, kernel: Any, tiles: Tiles | None, gradient: bool) -> Any:
    """One statistic on a given path."""
    n, d = z.shape[-2:]
    form = measure._fixed_terms(kernel, n, d, True, False, measure._LARGEST_LOG["float64"])
    device = torch.device("cpu")
    prepared = triton.prepare(form.pair, form.cross, float(form.constant), n, d, device)
    x = z[None]
    return triton.ready(prepared, x.shape, x.dtype, device, tiles)(x, gradient)


def paths() -> Iterator[tuple[str, dict[str, float]]]:
    """Every kernel on every path, value and gradient, and value alone."""
    for path, (n, d), names in CASES:
        z = points(n, d)
        for name in names:
            truth = exact(z, KERNELS[name])
            value, slope = statistic(z, KERNELS[name], TILES[path], True)
            found = errors((value, slope[0]), truth)
            if path != "strips":
                alone, _ = statistic(z, KERNELS[name], TILES[path], False)
                found["alone"] = errors((alone, None), truth)["value"]
            yield f"{path} {n}x{d} {name}", found


def uses() -> Iterator[tuple[str, dict[str, float]]]:
    """What reaches the kernels in other ways than a plain sample in float32."""
    narrow = KERNELS["narrow"]
    for name in ("adaptive", "scales"):
        z = points(29, 3, 2, 3)
        yield f"batch {name}", errors(through_autograd(z, KERNELS[name]), exact(z, KERNELS[name]))
    z = points(37, 4)
    how = {"unbiased": False}
    found, truth = through_autograd(z, narrow, **how), exact(z, narrow, **how)
    spread = smmd.null_variance(37, 4, narrow, unbiased=False) ** 0.5
    yield "biased", errors((found[0] / spread, found[1]), (truth[0] / spread, truth[1]))
    for dtype in (torch.float16, torch.bfloat16):
        z = points(33, 5).to(dtype)
        value, slope = through_autograd(z.float(), narrow)
        half = through_autograd(z, narrow)
        assert half[0].dtype == half[1].dtype == dtype
        # The answer is rounded to the type of the data, nothing else is.
        yield f"type {dtype}", errors(half, (value.double(), slope.double()))
    far = points(50, 3) + 1000.0
    yield "far away", errors(through_autograd(far, narrow), exact(far, narrow))
    z = points(24, 3)
    leaf = z.clone().requires_grad_()
    with pairs.use("triton"):
        (slope,) = torch.autograd.grad(smmd.smmd(leaf), leaf, create_graph=True)
        (bend,) = torch.autograd.grad((slope * z).sum(), leaf)
    twin = z.double().requires_grad_()
    (slope64,) = torch.autograd.grad(smmd.smmd(twin), twin, create_graph=True)
    (bend64,) = torch.autograd.grad((slope64 * z.double()).sum(), twin)
    yield "second derivative", errors((bend64.sum() * 0.0, bend), (bend64.sum() * 0.0, bend64))


def rows_against_columns() -> Iterator[tuple[str, dict[str, float]]]:
    """Some rows against all, as ranks sum them; at last in strips and ranges of columns."""
    import array_api_compat.torch as xp

    wide = choose_tiles(1, 150, 2100, 65, True)._replace(strip=128)
    assert column_cuts(2, 2100) == 2
    for name, tiles, (n, d), (start, stop) in (
        ("direct", None, (70, 3), (11, 52)),
        ("fused", FUSED, (70, 3), (11, 52)),
        ("strips", STRIPS, (70, 3), (11, 52)),
        ("strips cut", wide, (2100, 65), (1940, 2090)),
    ):
        z = points(n, d)
        form = measure._fixed_terms(KERNELS["narrow"], n, d, True, False, 680.0)
        count = n * (n - 1)
        kernel = triton._kernel(form.pair, d, z.device)
        value, pull = triton._sums(z[None, start:stop], z[None], kernel, start, False, True, tiles)
        leaf = z[start:stop].double().requires_grad_()
        values = form.pair.value(xp, (leaf[:, None] - z.double()).square().sum(-1))
        own = torch.arange(stop - start)
        total = values.index_put((own, start + own), torch.zeros(1).double()).sum()
        (slope,) = torch.autograd.grad(total, leaf)
        truth = (total.detach()[None] / count, 2.0 * slope / count)
        yield f"rows {name}", errors((value / count, pull[0] / count), truth)

    z, count = points(70, 3), 70 * 69
    form = measure._fixed_terms(KERNELS["narrow"], 70, 3, True, False, 680.0)
    twin = z.double().requires_grad_()
    whole = pairs.pair_sum(twin, form.pair)
    (slope,) = torch.autograd.grad(whole, twin)
    parts = ((0, z[:40]), (1, z[40:]))
    with pairs.use("triton"):
        for gradient in (True, False):
            found = [
                ranks.pair_sum(part, z, form.pair, ranks.Ranks(None, here, (40, 30), gradient))
                for here, part in parts
            ]
            total = (found[0][0] + found[1][0])[None] / count
            pulls = torch.cat([pull for _, pull in found]) / count if gradient else None
            truth = (whole.detach()[None] / count, slope / count)
            yield f"ranks, gradient {gradient}", errors((total, pulls), truth)


class NoWaiting(TorchDispatchMode):
    """Refuses what would make the host wait for a GPU: reading a number off a tensor."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "_local_scalar_dense" in str(function) or "nonzero" in str(function):
            raise AssertionError(f"{function} waits for the device")
        return function(*args, **(kwargs or {}))


def operator() -> Iterator[tuple[str, dict[str, float]]]:
    """The statistic as one operator: the registry's rules, one graph, no waiting."""
    z, kernel = points(21, 3), KERNELS["scales"]
    loss = smmd.torch.SMMDLoss(kernel=kernel)
    with pairs.use("triton"):
        leaf = z.clone().requires_grad_()
        with NoWaiting():
            value = loss(leaf)
            value.backward()
        eager = value.detach(), leaf.grad
        yield "no waiting", errors(eager, exact(z, kernel))

        leaf = z.clone().requires_grad_()
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(leaf)
        compiled.backward()
        yield "compiled", errors((compiled.detach(), leaf.grad), eager)

        form = measure._fixed_terms(kernel, 21, 3, True, False, 680.0)
        numbers = [
            (name, list(values)) for name, values in (form.pair.encode(), form.cross.encode())
        ]
        given = (z.requires_grad_(), *numbers[0], *numbers[1], float(form.constant), True)
        names = ("test_schema", "test_autograd_registration", "test_faketensor")
        torch.library.opcheck(torch_statistic._operator, (*given, True), test_utils=names)
        torch.library.opcheck(
            torch_statistic._operator_bend,
            (z.detach(), z.detach(), *given[1:]),
            test_utils=names[:1],
        )
        yield "registry", {"value": 0.0}


@compiler.jit
def profiles(e, coef, values, COUNT: tl.constexpr, BASE: tl.constexpr):
    """f − f₀ of as many exponents −r²/c."""
    at = tl.arange(0, COUNT)
    value, _ = profile(tl.load(e + at), coef, False, BASE)
    tl.store(values + at, value)


def shared_errors() -> Iterator[tuple[str, dict[str, float]]]:
    """What the mean error over pairs of N(0, I) adds to SMMD² of 4096 points."""
    count = 1 << 19
    levels = (np.arange(count) + 0.5) / count
    for kernel, dimensions in (
        (smmd.Sliced(), (2, 8, 65, 1024)),
        (smmd.Sliced(1e3), (2, 65, 1024)),
        (smmd.Sliced(0.1), (2, 65)),
        (smmd.IMQ(), (8, 65, 1024)),
        (smmd.IMQ(1e6), (2, 65)),
        (smmd.IMQ(1e-2), (2, 65)),
    ):
        for d in dimensions:
            pair = measure._fixed_terms(kernel, 4096, d, True, False, 680.0).pair
            made = triton._kernel(pair, d, torch.device("cpu"))
            r2 = 4.0 * special.gammaincinv(0.5 * d, levels)  # 2χ²
            e = torch.from_numpy(-r2 * sum(made.inverse_c)).float()
            values = torch.empty(count)
            profiles[(1,)](e, made.coef, values, COUNT=count, BASE=made.bases)
            error = np.mean(values.double().numpy() + made.top - pair.value(np, r2))
            yield f"mean {kernel} d={d}", {"value": abs(float(error))}


def norms() -> Iterator[tuple[str, dict[str, float]]]:
    """What rounding the norms of rows adds to SMMD² of 4096 points, by that of 64."""
    n, d = 64, 1024
    z = torch.randn(1, n, d, generator=torch.Generator().manual_seed(1))
    for name in ("narrow", "scales", "sliced", "imq"):
        pair = measure._fixed_terms(KERNELS[name], 4096, d, True, False, 680.0).pair
        kernel = triton._kernel(pair, d, z.device)
        (_, side, _), _, centre = _Split(kernel, NO_CROSS, z.shape, d, 0, True)(z, z.mean(1))
        norm = side[0, :n].to(torch.int32).view(torch.float32).double()
        unit = 2.0 * sum(kernel.inverse_c) if kernel.kind == "profile" else max(pair.a)
        if kernel.kind == "gaussian":
            unit *= math.log2(math.e)
        exact = -0.5 * unit * (z.double() - centre[:, None].double()).square().sum(-1)[0]
        error = norm - exact
        error -= error[0].float()  # what all rows leave out, a float32 number
        # Beside √2 times the spread of inner products, which is what SMMD² is measured in.
        shift = 2.0 * error.square().mean().sqrt() * math.sqrt(4096) / (unit * math.sqrt(2 * d))
        yield f"norms {name}", {"value": float(shift)}


def bits() -> Iterator[tuple[str, dict[str, float]]]:
    """The same input gives the same bits."""
    z = points(130, 8)
    for path in ("direct", "fused", "strips"):
        first, second = (statistic(z, KERNELS["narrow"], TILES[path], True) for _ in range(2))
        same = torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])
        yield f"bits {path}", {"value": 0.0 if same else math.inf}


def main() -> None:
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    with pairs.use("triton"):
        explained = smmd.explain(points(100, 3)).path, smmd.explain(points(3000, 65)).path
    found = {"explained": explained}
    sums = paths(), uses(), rows_against_columns(), operator()
    for group in (*sums, shared_errors(), norms(), bits()):
        found.update(group)
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()

"""The statistics of one sample whose rows several processes hold.

    torchrun --nproc-per-node 4 -m smmd.distributed codes.npy

Every rank passes its own rows and gets the statistic of all of them.  The value has the same bits
on each rank; the gradient is the number of ranks times the global one, so that the mean which
DistributedDataParallel takes over ranks is the global gradient.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from smmd import arrays, measure, pairs, samples
from smmd.closed_form import Terms
from smmd.kernels import Gaussian, Kernel, as_kernel
from smmd.pairs import ranks
from smmd.samples import Sample
from smmd.sharpen import sharpened

__all__ = ["mmd2", "smmd"]


def smmd(
    z: Tensor, kernel: Kernel = Gaussian(), group: Any = None, *, var: Tensor | None = None
) -> Tensor:
    """SMMD² of the rows of all ranks; see ``smmd.smmd``.

    Parameters
    ----------
    z : tensor (..., n, d)
        This rank's rows.  n may differ between ranks, and be 0 on some.
    kernel : Kernel
    group : process group, optional
        By default all processes, or this one alone where torch.distributed is not started.
    var : tensor, optional
        Variances of a random encoder.

    Differentiable once: second derivatives would need the other ranks' rows as variables.
    """
    return _of_all(z, kernel, group, var, standardized=True, unbiased=True)


def mmd2(
    z: Tensor,
    kernel: Kernel = Gaussian(),
    group: Any = None,
    *,
    var: Tensor | None = None,
    unbiased: bool = True,
) -> Tensor:
    """MMD² of the rows of all ranks; see ``smmd.mmd2`` and ``smmd`` here."""
    return _of_all(z, kernel, group, var, standardized=False, unbiased=unbiased)


def _of_all(
    z: Tensor, kernel: Kernel, group: Any, var: Tensor | None, *, standardized: bool, unbiased: bool
) -> Tensor:
    kernel = as_kernel(kernel)
    if group is None:
        if not (dist.is_available() and dist.is_initialized()):
            if standardized:
                return measure.smmd(z, kernel=kernel, var=var)
            return measure.mmd2(z, kernel, var=var, unbiased=unbiased)
        group = dist.group.WORLD
    here = samples.take(z, var, minimum=0)
    wanted = torch.is_grad_enabled() and (
        z.requires_grad or (var is not None and var.requires_grad)
    )
    met = ranks.meet(here.given, group, wanted)
    least = 2 if unbiased else 1
    if met.total < least:
        raise ValueError(
            f"z has n={met.total} points on all {met.world} ranks together, but the "
            f"{'unbiased' if unbiased else 'biased'} estimator needs at least {least}"
        )
    given = ranks.gathered(here.given, met)
    spread = None if here.var is None else ranks.gathered(here.var, met)
    whole = Sample(arrays.astype(given, here.z.dtype), spread, here.xp, here.dtype, given)
    terms = measure.terms_for(kernel, whole, standardized=standardized)
    value: Tensor = _Statistic.apply(  # type: ignore[no-untyped-call]
        here.z, here.var, here.given.detach(), whole, terms, met, unbiased
    )
    if standardized:
        value = sharpened(value, whole, terms)
    return arrays.saturating_cast(value, here.dtype)


class _Statistic(torch.autograd.Function):
    """Value and gradient in one pass; the backward pass is a multiplication."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        var: Tensor | None,
        given: Tensor,
        whole: Sample,
        terms: Terms,
        met: ranks.Ranks,
        unbiased: bool,
    ) -> Tensor:
        n = met.total
        count = n * (n - 1) if unbiased else n * n
        on_z = on_var = None
        if var is None:
            parts, on_z = _points(whole, z, given, terms, met, count)
        else:
            parts, slopes = _encoders(whole, z, var, terms, met, count)
            on_z, on_var = slopes or (None, None)
        if on_z is not None:
            # All ranks differentiate the same loss, and DDP will divide by their number.
            on_z, on_var = (None if v is None else met.world * v for v in (on_z, on_var))
            ctx.save_for_backward(on_z, on_var, z, var)
        value = terms.constant + ranks.added(parts, met)
        if var is None and not unbiased:
            zero = torch.zeros(value.shape, dtype=value.dtype, device=value.device)
            value = value + terms.pair.value(whole.xp, zero) / n
        return value

    @staticmethod
    def backward(ctx: Any, on_value: Tensor) -> tuple[Any, ...]:
        scale = on_value[..., None, None]
        on_z, on_var, z, var = ctx.saved_tensors
        on_z = scale * _Once.apply(on_z, z)  # type: ignore[no-untyped-call]
        if on_var is not None:
            on_var = scale * _Once.apply(on_var, var)  # type: ignore[no-untyped-call]
        return on_z, on_var, None, None, None, None, None


class _Once(torch.autograd.Function):
    """A gradient that cannot be differentiated again, and says so rather than being constant."""

    @staticmethod
    def forward(ctx: Any, slope: Tensor, of: Tensor) -> Tensor:
        return slope.view_as(slope)

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Any, ...]:
        raise NotImplementedError(
            "smmd over several ranks is differentiable once: a second derivative would need the "
            "other ranks' rows as variables; use smmd.smmd on one process for it"
        )


def _points(
    whole: Sample, z: Tensor, given: Tensor, terms: Terms, met: ranks.Ranks, count: int
) -> tuple[Tensor, Tensor | None]:
    """This rank's part of the statistic, and the statistic's gradient in its rows."""
    xp, n = whole.xp, met.total
    norms = xp.sum(z * z, axis=-1)
    part, slope = ranks.pair_sum(given, whole.given, terms.pair, met)
    part = part / count - (2.0 / n) * xp.sum(pairs.radial_value(terms.cross, norms), axis=-1)
    if slope is None:
        return part, None
    pull = terms.cross.slope(xp, norms)[..., None] * z
    return part, slope / count - (4.0 / n) * pull


def _encoders(
    whole: Sample, z: Tensor, var: Tensor, terms: Terms, met: ranks.Ranks, count: int
) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
    """The same for a random encoder's means and variances."""
    xp, n, parts = whole.xp, met.total, terms.components
    assert whole.var is not None
    part, slopes = ranks.overlap_sum(z, var, (whole.z, whole.var), parts, met)
    with torch.set_grad_enabled(met.gradient):
        mu, sigma2 = (v.detach().requires_grad_(met.gradient) for v in (z, var))
        cross = pairs.overlap_terms(xp, mu * mu, 1.0 + sigma2, parts)
        alone = (-2.0 / n) * xp.sum(cross, axis=-1)
        if count == n * n:  # the biased estimator has the pairs i = j too
            own = pairs.overlap_terms(xp, 0.0 * mu, 2.0 * sigma2, parts)
            alone = alone + xp.sum(own, axis=-1) / count
        own_slopes = torch.autograd.grad(alone.sum(), (mu, sigma2)) if met.gradient else None
    value = part / count + alone.detach()
    if slopes is None or own_slopes is None:
        return value, None
    first, second = (s / count + own for s, own in zip(slopes, own_slopes, strict=True))
    return value, (first, second)


def main() -> None:
    """SMMD² of the rows of a NumPy file, shared out among the processes of ``torchrun``."""
    parser = argparse.ArgumentParser(prog="torchrun -m smmd.distributed", description=main.__doc__)
    parser.add_argument("file", help="an NPY file of shape (n, d)")
    parser.add_argument("--scale", type=float, default=1 / 8, help="kernel scale s")
    options = parser.parse_args()
    dist.init_process_group()
    try:
        world, here = dist.get_world_size(), dist.get_rank()
        points = np.load(options.file, mmap_mode="r")
        if points.ndim != 2:
            raise SystemExit(f"{options.file} must have shape (n, d), got {points.shape}")
        edges = [len(points) * r // world for r in range(world + 1)]
        z = torch.from_numpy(np.array(points[edges[here] : edges[here + 1]]))
        if torch.cuda.is_available():  # pragma: no cover - needs a GPU
            torch.cuda.set_device(here % torch.cuda.device_count())
            z = z.cuda()
        value = float(smmd(z, Gaussian(options.scale)))
        if here == 0:
            n, d = points.shape
            print(f"SMMD² = {value:.6g}  (n = {n}, d = {d}, {world} processes)")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""The sliced statistic on random directions: linear in n, for very large batches.

Along a unit direction w the codes y_i = w·z_i are compared with N(0, 1) under the Gaussian kernel
of width γ, which is a mixture of cosines, k(r) = Σ_q p_q cos(t_q r), so that one pass over the
codes is enough:  Σ_{i≠j} k(y_i − y_j) = Σ_q p_q (|Σ_i exp(i t_q y_i)|² − n).
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from smmd.arrays import constant_under_compile
from smmd.kernels import Sliced
from smmd.pairs import gpu
from smmd.sigreg import sliced_null_sd
from smmd.torch.distributed import Group, check_group, resolve, total
from smmd.torch.layout import Layout, check_layout, to_rows
from smmd.torch.precision import at_least_single, is_recomputed, outside_autocast
from smmd.torch.standardizing import serves

#: Up to where frequencies are taken, in units of 1/γ: cut off there the kernel is exact to 2e-9.
_LAST = 6.0
#: Sampled at K frequencies after 0 the kernel repeats after 2πKγ/6, and within 5.8 γ of that it is
#: off by more than 1e-7.  Projections from N(0, 1) and codes like it differ by up to 11.
_FARTHEST, _TAIL = 11.0, 5.8
_FEWEST, _MOST = 16, 256
#: Up to so many frequencies a GPU has kernels: they are unrolled.
_UNROLLED = 64


@constant_under_compile
def frequencies(gamma: float) -> tuple[int, float]:
    """How many frequencies t_q = q · step there are, and their step."""
    period = _FARTHEST / gamma + _TAIL
    many = max(_FEWEST, math.ceil(_LAST * period / (2.0 * math.pi)))
    if many > _MOST:
        raise ValueError(
            f"gamma={gamma!r} is too narrow for random slices: it takes {many} frequencies, the "
            f"most is {_MOST}; use SMMDLoss(kernel=smmd.Sliced({gamma!r})) or a wider kernel"
        )
    return many + 1, _LAST / many / gamma


def cosines(gamma: float, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """t_q ≥ 0 and p_q of the cosines, made on the device; the p_q sum to one."""
    waves, step = frequencies(gamma)
    t = torch.arange(waves, dtype=torch.float64, device=device) * step
    heights = torch.exp(-0.5 * (gamma * t) ** 2)
    heights = torch.where(t > 0.0, heights, 0.5)
    return t, heights / heights.sum()


@constant_under_compile
def _null_sd(n: int, d: int, gamma: float, n_slices: int) -> float:
    return sliced_null_sd(n, d, gamma, n_slices)


class SlicedLoss(nn.Module):
    """SMMD² with the kernel ``Sliced(gamma)``, by random directions: O(n·n_slices) work and memory.

    Zero mean and unit variance under normality, over the codes and the directions together.
    On an NVIDIA GPU float32 codes have kernels, which take O(n·d) memory, for gamma ≥ 0.2 and
    outside ``torch.compile``.
    ``SMMDLoss(kernel=smmd.Sliced(gamma))`` takes all directions exactly and is faster up to tens of
    thousands of codes; this one wins where n² pairs do not fit the time.

    Parameters
    ----------
    n_slices : int
        How many directions.
    gamma : float
        The kernel's width in each direction; narrow ones take more time.  It is exact to 1e-7 as
        long as projections differ by less than 11 (and 11 γ); beyond, the kernel repeats.
    seed : int
        With the same seed the same directions come in the same order on every device and rank.
    resample : bool
        New directions in each training step.  The step is in the state dict, so that a resumed
        training sees what an uninterrupted one would.  In evaluation the current step's stay.
    group, layout
        As in ``SMMDLoss``.
    """

    step: Tensor

    def __init__(
        self,
        n_slices: int = 1024,
        *,
        gamma: float = 1.0,
        seed: int = 0,
        resample: bool = True,
        group: Group = None,
        layout: Layout = "rows",
    ) -> None:
        super().__init__()
        if isinstance(n_slices, bool) or int(n_slices) != n_slices or n_slices < 1:
            raise ValueError(f"n_slices must be a whole number >= 1, got {n_slices!r}")
        check_group(group)
        check_layout(layout)
        self.kernel = Sliced(gamma)
        frequencies(gamma)  # refuses what is too narrow
        self.n_slices, self.seed, self.resample = int(n_slices), int(seed), bool(resample)
        self.group, self.layout = group, layout
        self.register_buffer("step", torch.zeros((), dtype=torch.long))

    def forward(self, z: Tensor) -> Tensor:
        with outside_autocast(z):
            rows, _ = to_rows(at_least_single(z), self.layout)
            if rows.ndim < 2:
                raise ValueError(f"z must have shape (..., n, d), got {tuple(rows.shape)}")
            if rows.device != self.step.device:
                raise ValueError(
                    f"z is on {rows.device}, but this loss draws directions on {self.step.device}: "
                    "move it there with .to(z.device)"
                )
            group = resolve(self.group)
            directions = random_directions(self.seed, self.step, self.n_slices, rows.shape[-1])
            if self.training and self.resample:
                self._advance()
            sums = _sums(rows, directions.to(rows.dtype), *frequencies(self.kernel.gamma))
            n = _count(rows, group)
            value = self._value(total(sums, group), n, rows.shape[-1]).mean()
            return value.to(rows.dtype)

    def _advance(self) -> None:
        if is_recomputed():
            raise RuntimeError(
                "SlicedLoss is in a part of the model that activation checkpointing runs again, "
                "and would take other directions then: call it outside, or give resample=False"
            )
        self.step.add_(1)  # in place: a replayed CUDA graph goes on, too

    def _value(self, sums: Tensor, n: int, d: int) -> Tensor:
        """The U-statistic of each direction, averaged, in null standard deviations."""
        t, p = (
            v.reshape(-1, *[1] * (sums.ndim - 3)) for v in cosines(self.kernel.gamma, sums.device)
        )
        target = torch.exp(-0.5 * t * t)
        square = (sums * sums).sum(1).mean(-1)
        gap = (square - n) / (n * (n - 1)) - (2.0 / n) * target * sums[:, 0].mean(-1) + target**2
        return (p * gap).sum(0) / _null_sd(n, d, self.kernel.gamma, self.n_slices)

    def extra_repr(self) -> str:
        return f"n_slices={self.n_slices}, gamma={self.kernel.gamma}, seed={self.seed}"


def _count(rows: Tensor, group: Group) -> int:
    """The rows of all ranks.  Shapes are not data: they are exchanged on the host."""
    n = rows.shape[-2] if group is None else _total_count(rows.shape[-2], group)
    if n < 2:
        raise ValueError(f"z has n={n} points, but the unbiased estimator needs at least 2")
    return n


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _total_count(n: int, group: Any) -> int:
    counts: list[int | None] = [None] * dist.get_world_size(group)
    dist.all_gather_object(counts, n, group=group)
    return sum(count or 0 for count in counts)


def _sums(rows: Tensor, directions: Tensor, waves: int, step: float) -> Tensor:
    """Σ_i cos(t_q y_i) and Σ_i sin(t_q y_i) in float64, shape (waves, 2, …, n_slices)."""
    if _has_kernels(rows, waves):
        found: Tensor = _WaveSums.apply(rows, directions, waves, step)  # type: ignore[no-untyped-call]
        return found
    return _recorded(rows, directions, waves, step)


def _recorded(rows: Tensor, directions: Tensor, waves: int, step: float) -> Tensor:
    """The same in operators.

    One direction's cosines at a time would be slow, all at once large: in the backward pass they
    are computed again, so that only the projections stay.
    """
    found: Tensor = checkpoint(
        _wave_sums, rows, directions, waves, step, use_reentrant=False, preserve_rng_state=False
    )
    return found


def _wave_sums(rows: Tensor, directions: Tensor, waves: int, step: float) -> Tensor:
    """One sine and cosine serve all frequencies by the addition theorems: parts of a power."""
    angle = (rows @ directions.mT) * step
    cosine, sine = torch.cos(angle), torch.sin(angle)
    real, imaginary = torch.ones_like(cosine), torch.zeros_like(sine)
    sums = []
    for _ in range(waves):
        sums.append(torch.stack([v.sum(-2, dtype=torch.float64) for v in (real, imaginary)]))
        real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
    return torch.stack(sums)


def _has_kernels(rows: Tensor, waves: int) -> bool:
    return (
        waves <= _UNROLLED
        and rows.dtype is torch.float32
        and rows.numel() > 0
        and serves(rows)
        and gpu.serves(rows)
    )


class _WaveSums(torch.autograd.Function):
    """One kernel each way, which write nothing of n times the number of directions."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, directions: Tensor, waves: int, step: float) -> Tensor:
        from smmd.torch import slices_triton as kernels

        ctx.save_for_backward(rows, directions)
        ctx.waves, ctx.step = waves, step
        found = kernels.sums(_stacked(rows), directions, step, waves)
        return found.reshape(waves, 2, *rows.shape[:-2], len(directions))

    @staticmethod
    def backward(ctx: Any, on_sums: Tensor) -> tuple[Tensor, None, None, None]:
        from smmd.torch import slices_triton as kernels

        rows, directions = ctx.saved_tensors
        if torch.is_grad_enabled():  # the graph of this pass is wanted, too
            with outside_autocast(rows):
                sums = _recorded(rows, directions, ctx.waves, ctx.step)
                (slope,) = torch.autograd.grad(sums, rows, on_sums, create_graph=True)
            return slope, None, None, None
        pull = on_sums.reshape(ctx.waves, 2, -1, len(directions))
        slope = kernels.slopes(_stacked(rows), directions, ctx.step, pull)
        return slope.reshape(rows.shape), None, None, None


def _stacked(rows: Tensor) -> Tensor:
    """(…, n, d) as contiguous (B, n, d)."""
    return rows.reshape(-1, *rows.shape[-2:]).contiguous()


def random_directions(seed: int, step: Tensor, count: int, d: int) -> Tensor:
    """``count`` uniformly distributed unit vectors, a function of seed and step alone.

    Normal numbers come from hashed counters by Box and Muller's transformation: no generator, so
    that the same are drawn on every device, under compilation and in a replayed CUDA graph.
    """
    size = count * d
    index = torch.arange(2 * size, device=step.device).reshape(2, count, d)
    stream = _hash(torch.full_like(step, seed & _MASK) + _hash(step & _MASK))
    bits = _hash(index ^ stream)
    bits = _hash(bits + 0x9E3779B9 * (index >> 1) & _MASK)
    uniform = (bits.to(torch.float64) + 0.5) / 2.0**32
    normal = torch.sqrt(-2.0 * torch.log(uniform[0])) * torch.cos(2.0 * math.pi * uniform[1])
    return normal / torch.linalg.vector_norm(normal, dim=-1, keepdim=True)


_MASK = 0xFFFFFFFF


def _hash(x: Tensor) -> Tensor:
    """A bijection of 32-bit integers (held in 64 bits) that mixes them well."""
    x = x & _MASK
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _MASK
    return x ^ (x >> 16)

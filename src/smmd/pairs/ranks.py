"""Rows here × columns of all ranks: sums over pairs of a sample that several processes hold.

Each rank takes its own rows against everybody's, gathered without gradient.  A symmetric sum's
derivative in a row is twice that of the row's own part, so no rank needs to hear of another's
gradient: there is no collective in the backward pass.  Where no gradient is wanted each pair is
taken by one rank only.

Ranks may hold different numbers of rows, or none.  Their numbers are exchanged on the host, if the
process group has a CPU backend (as ``init_process_group()`` without arguments gives); a group of
NCCL alone has to wait for the device there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

# Functions of this module have the process group of the time of its import as default argument.
# Were it imported later (the first operator call does), that group would outlive
# ``destroy_process_group``, and gloo's threads the interpreter, which may then abort.
import torch.distributed.nn.functional
from torch import Tensor

from smmd.pairs import dense
from smmd.pairs import torch as torch_pairs
from smmd.radial import Exponentials, Radial


@dataclass(frozen=True)
class Ranks:
    """Who holds what: the group, this rank, and the rows of every rank."""

    group: Any
    here: int
    counts: tuple[int, ...]
    gradient: bool  # whether any rank will want one

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def world(self) -> int:
        return len(self.counts)

    def rows(self, rank: int) -> slice:
        """Where this rank's rows are among all."""
        start = sum(self.counts[:rank])
        return slice(start, start + self.counts[rank])


def meet(z: Tensor, group: Any, gradient: bool) -> Ranks:
    """Agree on the sizes of all ranks' z (…, n, d), of which only n may differ."""
    sizes = (z.shape[-2], int(gradient), z.shape[-1], z.ndim, math.prod(z.shape[:-2]), z.itemsize)
    on_host = "cpu:" in str(dist.get_backend_config(group))
    mine = torch.tensor(sizes, device="cpu" if on_host else z.device)
    table = stacked(mine, group).tolist()
    if any(row[2:] != table[0][2:] for row in table):
        raise ValueError(
            "z must have the same type, dimension d and leading axes on every rank; this one has "
            f"{z.dtype} {tuple(z.shape)}, and (d, axes, samples, bytes) by rank are "
            f"{[tuple(row[2:]) for row in table]}"
        )
    counts = tuple(int(row[0]) for row in table)
    return Ranks(group, dist.get_rank(group), counts, any(row[1] for row in table))


def gathered(x: Tensor, ranks: Ranks) -> Tensor:
    """The rows (axis −2) of every rank's x, in the order of ranks, without gradient."""
    largest = max(ranks.counts)
    rows = x.detach().movedim(-2, 0)
    if rows.shape[0] < largest:
        rows = torch.cat([rows, rows.new_zeros((largest - rows.shape[0], *rows.shape[1:]))])
    parts = stacked(rows, ranks.group).flatten(0, 1)
    if min(ranks.counts) < largest:
        held = enumerate(ranks.counts)
        parts = torch.cat([parts[r * largest : r * largest + count] for r, count in held])
    return parts.movedim(0, -2).contiguous()


def added(x: Tensor, ranks: Ranks) -> Tensor:
    """The sum of every rank's x, in the order of ranks: the same bits on each."""
    return stacked(x, ranks.group).sum(0)


def stacked(x: Tensor, group: Any) -> Tensor:
    """Every rank's x (all of one shape) on a new axis 0."""
    parts = x.new_empty((dist.get_world_size(group), *x.shape))
    dist.all_gather(list(parts.unbind(0)), x.contiguous(), group=group)
    return parts


def pair_sum(
    rows: Tensor, cols: Tensor, radial: Radial, ranks: Ranks
) -> tuple[Tensor, Tensor | None]:
    """This rank's part of Σ_{i≠j} f(‖z_i − z_j‖²), in float64, and the whole sum's gradient in its

    ``rows``.  Without gradient it takes its share of the pairs, each of which stands for two.
    """
    if ranks.gradient:
        return torch_pairs.row_sum(rows, cols, ranks.rows(ranks.here).start, radial)
    total, _ = torch_pairs.pair_sum_outside(rows, radial, gradient=False)
    for mine, theirs in _shares(ranks):
        other = cols[..., ranks.rows(theirs[0]), :][..., theirs[1], :]
        part, _ = torch_pairs.cross_sum(rows[..., mine, :], other, radial, gradient=False)
        total = total + 2.0 * part
    return total, None


def _shares(ranks: Ranks) -> Iterator[tuple[slice, tuple[int, slice]]]:
    """(rows of this rank, (rank, rows of that rank)) that are this rank's to sum.

    Round a table each rank takes those half-way round after it; who sits just opposite shares.
    """
    world, here = ranks.world, ranks.here
    everything = slice(None)
    for step in range(1, (world + 1) // 2):
        yield everything, ((here + step) % world, everything)
    if world % 2 == 0:
        opposite = (here + world // 2) % world
        half = ranks.counts[min(here, opposite)] // 2
        if here < opposite:
            yield slice(None, half), (opposite, everything)
        else:
            yield everything, (opposite, slice(half, None))


def overlap_sum(
    mu: Tensor, var: Tensor, cols: tuple[Tensor, Tensor], components: Exponentials, ranks: Ranks
) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
    """The same for random encoders: the gradient is in ``mu`` and ``var``."""
    start = ranks.rows(ranks.here).start
    with torch.set_grad_enabled(ranks.gradient):
        leaves = [v.detach().requires_grad_(ranks.gradient) for v in (mu, var)]
        total = dense.overlap_row_sum(leaves[0], leaves[1], *cols, components, start)
        if not ranks.gradient:
            return total, None
        on_mu, on_var = torch.autograd.grad(total.sum(), leaves)
    return total.detach(), (2.0 * on_mu, 2.0 * on_var)

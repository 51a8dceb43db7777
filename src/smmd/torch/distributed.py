"""Process groups, and the two collectives through which gradients flow.

The convention is that of ``SyncBatchNorm``: the backward pass sums what reaches a rank's rows from
the losses of all ranks, so that the mean that DDP takes over ranks is the gradient of the mean of
the ranks' losses.

``torch.compile`` leaves its graph for what ranks exchange: numbers of rows are read on the host.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from smmd.pairs import ranks

Group = Any  # None, "world" or a torch.distributed.ProcessGroup


def check_group(group: Group) -> None:
    """Refuse, when a module is made, what cannot be a process group."""
    if isinstance(group, str) and group != "world":
        raise ValueError(
            f'group must be None, "world" or a torch.distributed process group, got {group!r}'
        )


def resolve(group: Group) -> Any:
    """The process group meant, or None for this process alone.

    Asked at each call, since a script may make its modules before it starts its processes.
    ``"world"`` is this process alone where torch.distributed was not started, so that one script
    serves both.
    """
    if group is None:
        return None
    started = dist.is_available() and dist.is_initialized()
    if isinstance(group, str):
        check_group(group)
        return dist.group.WORLD if started else None
    return group


class _Gather(torch.autograd.Function):
    """Stack every rank's tensor (all of one shape) on a new axis 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return ranks.stacked(x, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        total = grads[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=ctx.group)
        return total[dist.get_rank(ctx.group)], None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        total = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        total = grads[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=ctx.group)
        return total, None


@torch.compiler.disable  # type: ignore[untyped-decorator]
def gather(x: Tensor, group: Any) -> Tensor:
    """Every rank's ``x`` (one shape on all), stacked on a new axis 0."""
    stacked: Tensor = _Gather.apply(x, group)  # type: ignore[no-untyped-call]
    return stacked


def total(x: Tensor, group: Any) -> Tensor:
    """The sum of every rank's ``x``."""
    return x if group is None else _total(x, group)


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _total(x: Tensor, group: Any) -> Tensor:
    summed: Tensor = _Sum.apply(x, group)  # type: ignore[no-untyped-call]
    return summed

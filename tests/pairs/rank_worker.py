"""What the processes of ``test_ranks`` do: every case, and their answers into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import smmd
from smmd import distributed

N, D = 23, 3

KERNELS = {
    "narrow": smmd.Gaussian(1 / 8),
    "wide": smmd.Gaussian(1e3),
    "scales": smmd.MultiScale((1 / 16, 1 / 8, 1.0)),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
    "adaptive": smmd.Adaptive(),
}

#: How many of the N rows each rank holds.
SPLITS = {
    2: [(15, 8), (23, 0), (1, 22)],
    3: [(8, 8, 7), (10, 0, 13), (1, 21, 1)],
}


def points(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Two samples, not quite normal, and variances for a random encoder."""
    generator = torch.Generator().manual_seed(5)
    z = 1.3 * torch.randn(2, N, D, generator=generator, dtype=torch.float64) + 0.2
    var = 0.1 + torch.rand(2, N, D, generator=generator, dtype=torch.float64)
    return z.to(dtype), var.to(dtype)


class Encoder(torch.nn.Module):
    """Something for DistributedDataParallel to wrap: rows go through a linear map."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(D, D).double()
        with torch.no_grad():
            self.linear.weight.copy_(torch.eye(D) + 0.1)
            self.linear.bias.fill_(0.3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def _answers(group: Any, split: tuple[int, ...]) -> dict[str, Any]:
    here = dist.get_rank(group)
    start = sum(split[:here])
    mine = slice(start, start + split[here])
    found: dict[str, Any] = {}
    for dtype in (torch.float64, torch.float32):
        z, var = (v[:, mine] for v in points(dtype))
        for name, kernel in KERNELS.items():
            leaf = z.clone().requires_grad_()
            value = distributed.smmd(leaf, kernel, group)
            (slope,) = torch.autograd.grad((value * torch.tensor([1.0, 3.0])).sum(), leaf)
            found[f"{name} {dtype}"] = (value.detach(), slope)
            # Without gradient each pair is one rank's.
            found[f"{name} {dtype} value"] = (distributed.smmd(z, kernel, group), None)
            if name not in ("imq", "sliced"):
                leaves = [v.clone().requires_grad_() for v in (z, var)]
                value = distributed.smmd(leaves[0], kernel, group, var=leaves[1])
                slopes = torch.autograd.grad(value.sum(), leaves)
                found[f"{name} {dtype} encoder"] = (value.detach(), slopes)
        found[f"biased {dtype}"] = (distributed.mmd2(z, group=group, unbiased=False), None)
        biased = distributed.mmd2(z, group=group, var=var, unbiased=False)
        found[f"biased {dtype} encoder"] = (biased, None)
    model = torch.nn.parallel.DistributedDataParallel(Encoder(), process_group=group)
    distributed.smmd(model(points()[0][0, mine]), group=group).backward()
    found["ddp"] = [p.grad.clone() for p in model.parameters()]
    return found


def _alone(group: Any) -> torch.Tensor:
    """A backward pass that one rank makes without the others: it must not wait for them."""
    z = points()[0][:, dist.get_rank(group) :: 3].requires_grad_()
    value = distributed.smmd(z, group=group)
    if dist.get_rank(group) == 0:
        value.sum().backward()
    dist.barrier(group)
    return value.detach()


def _errors(group: Any) -> dict[str, str]:
    here = dist.get_rank(group)
    tries = {
        "dimension": lambda: distributed.smmd(torch.zeros(4, 3 + here), group=group),
        "points": lambda: distributed.smmd(torch.zeros(int(here == 1), 3), group=group),
    }
    said = {}
    for name, call in tries.items():
        try:
            call()
        except ValueError as error:
            said[name] = str(error)
    leaf = points()[0].requires_grad_()
    (slope,) = torch.autograd.grad(
        distributed.smmd(leaf, group=group).sum(), leaf, create_graph=True
    )
    try:
        slope.sum().backward()
    except NotImplementedError as error:
        said["second"] = str(error)
    return said


def work(rank: int, folder: str) -> None:
    """Three processes: a group of two of them, and one of all."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=3)
    pair = dist.new_group([0, 1])
    found: dict[Any, Any] = {}
    for world, group in ((2, pair), (3, dist.group.WORLD)):
        if rank < world:
            for split in SPLITS[world]:
                found[world, split] = _answers(group, split)
    found["alone"] = _alone(dist.group.WORLD)
    found["errors"] = _errors(dist.group.WORLD)
    torch.save(found, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()

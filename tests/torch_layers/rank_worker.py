"""What the processes of ``test_ranks`` do: a model under DDP for every case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import smmd
import smmd.torch

N, D = 25, 3
#: How many of the N rows each rank holds, the last rank of three also none.
SPLITS = {2: [(16, 9), (1, 24)], 3: [(7, 12, 6), (13, 12, 0)]}
CASES = ("smmd", "adaptive", "sliced", "encoder", "slices", "norm", "all")
STEPS = 2


def rows(step: int) -> Tensor:
    generator = torch.Generator().manual_seed(step)
    return 1.5 * torch.randn(N, D, generator=generator, dtype=torch.float64) + 0.5


class Model(nn.Module):
    """x → codes → loss; ``share`` is the part of all rows that this process holds."""

    def __init__(self, case: str, group: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.case = case
        self.linear, self.spread = nn.Linear(D, D), nn.Linear(D, D)
        self.norm = smmd.torch.CodeNorm(D, group=group)
        self.gaussian_norm = smmd.torch.GaussianCodeNorm(D, group=group)
        kernel = {"sliced": smmd.Sliced(), "all": smmd.MultiScale()}.get(case)
        self.loss = smmd.torch.SMMDLoss(kernel=kernel, adaptive=case == "adaptive", group=group)
        self.slices = smmd.torch.SlicedLoss(8, group=group)
        self.double()

    def forward(self, x: Tensor, share: float) -> Tensor:
        z = torch.tanh(self.linear(x)) + x
        if self.case == "slices":
            return self.slices(z)
        if self.case == "norm":  # a loss of each rank's own rows; DDP takes the mean over ranks
            return share * (self.norm(z) ** 4 * torch.arange(1.0, D + 1)).sum(-1).mean()
        if self.case == "encoder":
            return self.loss(*self.gaussian_norm(z, torch.exp(self.spread(x))))
        if self.case == "all":
            z = self.norm(z)
            rebuilt = share * (z - x).square().mean() if len(x) else 0.0 * z.sum()
            return rebuilt + 0.1 * self.loss(z) + 0.1 * self.slices(z)
        return self.loss(z)


def trained(model: nn.Module, parts: list[Tensor], share: float) -> dict[str, Any]:
    """A few steps of gradient descent; the last gradients, the losses and the state after them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for part in parts:
        optimizer.zero_grad()
        loss = model(part, share)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    inner = getattr(model, "module", model)
    gradients = {k: p.grad.clone() for k, p in inner.named_parameters() if p.grad is not None}
    return {"losses": losses, "gradients": gradients, "state": inner.state_dict()}


def answers(name: Any, group: Any, split: tuple[int, ...]) -> dict[str, Any]:
    """``name`` is what modules are given for the group: itself, or "world"."""
    here, world = dist.get_rank(group), len(split)
    mine = slice(sum(split[:here]), sum(split[: here + 1]))
    found = {}
    for case in CASES:
        if has_loss(case, split):
            model = nn.parallel.DistributedDataParallel(
                Model(case, name), process_group=group, find_unused_parameters=True
            )
            parts = [rows(step)[mine] for step in range(STEPS)]
            found[case] = trained(model, parts, world * split[here] / N)
    return found


def compiled(group: Any) -> list[Any]:
    """Loss and gradients of a compiled and of a plain model, which leaves its graph to gather."""
    answers = []
    for wrap in (lambda m: m, lambda m: torch.compile(m, backend="aot_eager")):
        model = Model("encoder", group)
        loss = wrap(model)(rows(0)[dist.get_rank(group) :: 2], 1.0)
        loss.backward()
        answers.append((loss.detach(), model.linear.weight.grad))
    return answers


def has_loss(case: str, split: tuple[int, ...]) -> bool:
    """The mean over no rows, which the case "norm" would want of an idle rank, is none."""
    return case != "norm" or 0 not in split


def work(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=3)
    pair = dist.new_group([0, 1])
    found: dict[Any, Any] = {"metrics": _metrics(rank)}
    for world, name, group in ((2, pair, pair), (3, "world", dist.group.WORLD)):
        for split in SPLITS[world] if rank < world else ():
            found[world, split] = answers(name, group, split)
    if rank < 2:
        found["compiled"] = compiled(pair)
    torch.save(found, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


def _metrics(rank: int) -> dict[str, Any]:
    """Each rank's own batches, reduced; and values that all ranks share."""
    own, moving = smmd.torch.BStatistic(), smmd.torch.EStatistic(0.9)
    shared = smmd.torch.BStatistic(shared=True)
    for step in range(3 + rank):
        own.update(torch.tensor(float(10 * rank + step)))
    for step in range(5):
        moving.update(torch.tensor(float(rank + step)))
        shared.update(torch.tensor(float(step)))
    return {
        "b": (own.value, own.band(), own.statistic().count, own.compute().item()),
        "e": (moving.value, moving.band(), moving.compute().item()),
        "shared": (shared.value, shared.band(), shared.statistic().count),
        "after": (own.total.item(), own.count.item()),
    }

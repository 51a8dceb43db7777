"""DDP: with ``group="world"`` two processes' unequal shares train as one process with all rows."""

import tempfile

import torch
import torch.distributed as dist
from torch import nn

import smmd.torch

SHARES, STEPS = (64, 32), 5


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 4)
        self.norm = smmd.torch.CodeNorm(4, group="world")  # statistics of all processes' rows
        self.penalty = smmd.torch.SMMDLoss(group="world")  # and so the pairs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.penalty(self.norm(torch.relu(self.linear(x))))


def train(model: nn.Module, rows: slice) -> tuple[list[float], torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
    for _ in range(STEPS):
        loss = model(torch.randn(sum(SHARES), 8, generator=generator)[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 3))
    return losses, torch.cat([p.detach().flatten() for p in model.parameters()])


def work(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    mine = (slice(None, SHARES[0]), slice(SHARES[0], None))[rank]
    torch.save(train(nn.parallel.DistributedDataParallel(Encoder()), mine), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def main() -> float:
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (folder,), nprocs=2)
        found = [torch.load(f"{folder}/{rank}.pt") for rank in (0, 1)]
    losses, weights = train(Encoder(), slice(None))
    print("one process:  ", losses, *(f"\nprocess {r}:    {v}" for r, (v, _) in enumerate(found)))
    difference = max((w - weights).abs().max().item() for _, w in found)
    print(f"weights differ by at most {difference:.0e}")
    return difference


if __name__ == "__main__":
    main()

"""A Wasserstein auto-encoder in plain PyTorch: two lines make its codes normal."""

import torch
from torch import nn

import smmd
import smmd.torch

D, N = 4, 128


def data(count: int, generator: torch.Generator) -> torch.Tensor:
    """Two bent clouds in 16 dimensions."""
    turn = torch.randn(D, 16, generator=torch.Generator().manual_seed(1))
    side = torch.randint(0, 2, (count, 1), generator=generator) - 0.5
    return torch.tanh((torch.randn(count, D, generator=generator) * 0.3 + 2 * side) @ turn)


def main(steps: int = 400) -> dict[float, float]:
    found = {}
    for weight in (0.0, 0.01):
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(0)
        encoder = nn.Sequential(
            nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, D), smmd.torch.CodeNorm(D)  # line one
        )  # fmt: skip
        decoder = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 16))
        penalty = smmd.torch.SMMDLoss()
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
        for _ in range(steps):
            x = data(N, generator)
            z = encoder(x)
            loss = (decoder(z) - x).square().mean()
            loss = loss + weight * penalty(z)  # line two
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        encoder.eval()
        validation = smmd.BStatistic(batch=smmd.monitor.Batch(N, D))
        with torch.no_grad():
            for _ in range(20):
                validation.update(smmd.smmd(encoder(data(N, generator))))
        print(f"λ = {weight:g}, training loss {loss.item():.3f}\n  {validation.verdict()}")
        found[weight] = validation.value
    return found


if __name__ == "__main__":
    main()

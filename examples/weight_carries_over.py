"""One weight λ for every dimension, kernel scale and batch size: SMMD² against raw MMD².

Auto-encoders are trained without penalty, with λ·SMMD², and with λ'·MMD²; in the first row the two
are the same loss, in the others d, s or n is changed.  Printed is SMMD² of fresh codes, 256 at a
time (normal codes: 0 ± 1), and the reconstruction error.  The last rows show what λ does not carry
over: far from normality SMMD² grows like n, as evidence does, and MMD² is the steadier of the two.
"""

import torch
from torch import nn

import smmd
import smmd.torch

WEIGHT = 1e-2
RUNS = [(8, 1 / 8, 128), (2, 1 / 8, 128), (32, 1 / 8, 128)]
RUNS += [(8, 1 / 64, 128), (8, 1.0, 128), (8, 1 / 8, 32), (8, 1 / 8, 512)]


def data(count: int, generator: torch.Generator) -> torch.Tensor:
    """Points near a bent 4-dimensional sheet in 32 dimensions."""
    sheet = torch.rand(count, 4, generator=generator)
    bends = torch.randn(4, 32, generator=torch.Generator().manual_seed(1))
    return torch.sin(3 * sheet @ bends) + 0.1 * torch.randn(count, 32, generator=generator)


def train(d: int, n: int, penalty, weight: float, steps: int) -> tuple[float, float]:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, d), smmd.torch.CodeNorm(d))
    decoder = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
    for _ in range(steps):
        x = data(n, generator)
        z = encoder(x)
        loss = (decoder(z) - x).square().mean() + weight * penalty(z)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        z = encoder.eval()(x := data(8 * 256, generator))
        value = smmd.smmd(z.reshape(8, 256, d)).mean()
        return float(value), float((decoder(z) - x).square().mean())


def main(steps: int = 300) -> None:
    print("  d      s    n |  sd of MMD² | no penalty     | λ·SMMD²        | λ'·MMD²")
    first = smmd.null_variance(128, 8) ** 0.5
    for d, scale, n in RUNS:
        sd = smmd.null_variance(n, d, smmd.Gaussian(scale)) ** 0.5
        penalty = smmd.torch.SMMDLoss(scale)  # MMD² is sd times this
        weights = (0.0, WEIGHT, WEIGHT / first * sd)
        found = [train(d, n, penalty, weight, steps) for weight in weights]
        shown = " | ".join("{:6.1f}  {:6.4f}".format(*pair) for pair in found)
        print(f"{d:3d} {scale:6.3f} {n:4d} | {sd:11.1e} | {shown}")


if __name__ == "__main__":
    main()

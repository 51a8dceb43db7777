"""A random encoder: SMMD² of the mixture of Gaussians N(μ_i, diag σ_i²), nothing sampled."""

import torch
from torch import nn

import smmd.torch

D, N = 2, 256


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2 * D))
        self.norm = smmd.torch.GaussianCodeNorm(D)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mu, log_var = self.body(x).chunk(2, dim=-1)
        return self.norm(mu, log_var.exp())  # the mixture's mean is 0, its variance 1


def main(steps: int = 300) -> tuple[float, float]:
    torch.manual_seed(0)
    encoder = Encoder()
    decoder = nn.Sequential(nn.Linear(D, 64), nn.ReLU(), nn.Linear(64, 8))
    penalty = smmd.torch.SMMDLoss()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    turn = torch.randn(D, 8)
    first = last = 0.0
    for step in range(steps):
        x = torch.tanh(torch.rand(N, D).mul(4).sub(2) @ turn)
        mu, var = encoder(x)
        z = mu + var.sqrt() * torch.randn_like(mu)  # one draw for the decoder
        value = penalty(mu, var)  # the whole law for the penalty
        loss = (decoder(z) - x).square().mean() + 0.01 * value
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first, last = (value.item() if step == 0 else first), value.item()
    print(f"SMMD² of the mixture: {first:.1f} at first, {last:.1f} after {steps} steps")
    print(f"mean σ: {var.detach().sqrt().mean():.2f}")
    return first, last


if __name__ == "__main__":
    main()

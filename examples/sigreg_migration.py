"""From SIGReg to SMMD²: what your loss values meant, and the one line that changes.

SIGReg draws directions and sums over a grid of frequencies.  The kernel ``Sliced()`` is what that
samples, in closed form: no randomness, and 0 ± 1 for normal codes instead of 1.05 ± something.
"""

import torch

import smmd
import smmd.sigreg
import smmd.torch

N, D, SLICES, KNOTS = 256, 64, 1024, 17


def sigreg(z: torch.Tensor) -> torch.Tensor:
    """The loss being replaced: 1024 random directions, 17 frequencies in [0, 3]."""
    directions = torch.nn.functional.normalize(torch.randn(z.shape[1], SLICES), dim=0)
    t = torch.linspace(0, 3, KNOTS)
    target = torch.exp(-t * t / 2)
    angles = (z @ directions)[..., None] * t
    error = (angles.cos().mean(0) - target) ** 2 + angles.sin().mean(0) ** 2
    return len(z) * 2 * torch.trapezoid(error * target, t).mean()


def main() -> list[tuple[float, float, float]]:
    torch.manual_seed(0)
    exact = smmd.torch.SMMDLoss(kernel=smmd.Sliced())  # the one line
    normal, found = torch.randn(N, D), []
    low = torch.randn(N, D) * torch.linspace(0.1, 1.9, D)
    for name, z in (("normal", normal), ("uneven", low), ("shifted", normal + 0.2)):
        value = sigreg(z).item()
        # Our grid is exact; the old one's 17 knots are off by a factor of about 1.0524 / 1.0594.
        grid = smmd.sigreg.expected() / smmd.sigreg.expected(KNOTS)
        converted = smmd.sigreg.to_smmd(value * grid, N, D)
        print(f"{name:8s} SIGReg {value:6.2f}   as SMMD² {converted:7.2f}   exact {exact(z):7.2f}")
        found.append((value, converted, exact(z).item()))
    sd = smmd.sigreg.null_sd(N, D, SLICES)
    print(f"SIGReg of normal codes: {smmd.sigreg.expected(KNOTS):.3f} ± {sd:.3f}")
    weight = smmd.sigreg.weight(0.05, N, D)
    print(f"0.05·SIGReg pulls like {weight:.2g}·SMMD² at n = {N}, d = {D}")
    return found


if __name__ == "__main__":
    main()

"""Many values of SMMD² and BHEP under the three nulls, at several widths, from the same draws.

One simulated sample (n, d) serves every null and every width: the scales are powers of two
apart, so that one exponential gives them all by squaring.  PyTorch, on the CPU or a GPU, and
nothing of smmd: the closed form is written out here a second time, on purpose, and `check`
holds it against the library before anything is counted.
"""

from __future__ import annotations

import math
import zlib
from functools import lru_cache

import numpy as np
import torch

NULLS = ("standard", "diagonal", "normal")
#: The scales that are squarings of the first, then the Henze–Zirkler width γ²_{n,d}.
SCALES = {"4": 4.0, "2": 2.0, "1": 1.0, "1/2": 1 / 2, "1/4": 1 / 4, "1/8": 1 / 8}
SCALES |= {"1/16": 1 / 16, "1/32": 1 / 32}
FIRST, HZ = "4", "HZ"
WIDTHS = (*SCALES, HZ)
#: Kernels that are mixtures: the default of `smmd.MultiScale`, and `smmd.IMQ`.
MULTI, IMQ = "multi", "imq"
MULTI_SCALES = ("1/16", "1/8", "1/4")
STATISTICS = ("smmd", "bhep")
#: From this many rows on a CPU's distances are float32; `check` says what that does.
SINGLE = 100
#: How many pairs a CPU holds at once, in its cache; how many coordinates a GPU is given.
_PAIRS, _NUMBERS = 1 << 17, 1 << 25

Sums = dict[str, torch.Tensor]


def gamma2(width: str, n: int, d: int) -> float:
    """The squared width that a name means; γ_{n,d} = √2 ((2d+1)n/4)^(−1/(d+4))."""
    if width == HZ:
        return 2.0 * ((2.0 * d + 1.0) * n / 4.0) ** (-2.0 / (d + 4.0))
    return SCALES[width] * d


def second_moment(g: float, d: int, other: float | None = None) -> float:
    """E h h' of two widths (precisions 1/g), the bracket of Var(γ, d, n), without cancellation."""
    a, b = 1.0 / g, 1.0 / (other or g)
    middle = math.log1p(2 * a + 2 * b + 3 * a * b)
    up = math.expm1(0.5 * d * math.log1p(3 * a * b / (1 + 2 * a + 2 * b)))
    down = math.expm1(-0.5 * d * math.log1p(a * b / (1 + 2 * a + 2 * b + 3 * a * b)))
    # (1+2a+2b)^(-d/2) − 2 m^(-d/2) + ((1+2a)(1+2b))^(-d/2) with m = 1+2a+2b+3ab
    return math.exp(-0.5 * d * middle) * (up + down)


def nulls(n: int, d: int) -> tuple[str, ...]:
    """At d = 1 scaling is whitening; with fewer rows than columns there is no whitening."""
    return NULLS if 1 < d < n - 1 else NULLS[:2]


def seeds(*parts: int) -> int:
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


class Simulation:
    """Values of every series, "statistic null width", for samples drawn from N(0, I)."""

    def __init__(self, n: int, d: int, seed: int, part: int = 0, device: str = "cpu") -> None:
        self.n, self.d, self.device = n, d, torch.device(device)
        self.rng = torch.Generator(self.device).manual_seed(seeds(seed, n, d, part))
        self.fused = self.device.type == "cuda"
        self.dtype = torch.float32 if n >= SINGLE else torch.float64
        self.edge = n if n < 100 else min(128, -(-n // 2))
        held = _NUMBERS // (n * d) if self.fused else _PAIRS // self.edge**2
        self.step = max(1, held)

    def draw(self, count: int) -> torch.Tensor:
        """A step's worth of samples at most: the same ones however they are asked for."""
        shape = (self.step, self.n, self.d)
        z = torch.randn(shape, generator=self.rng, device=self.device, dtype=torch.float64)
        return z[:count]

    def values(self, count: int) -> dict[str, torch.Tensor]:
        """``count`` values of every series, in the order in which they were drawn."""
        parts: dict[str, list[torch.Tensor]] = {}
        done = 0
        while done < count:
            z = self.draw(min(self.step, count - done))
            done += len(z)
            for null in nulls(self.n, self.d):
                for name, value in self.statistics(normalize(z, null), null).items():
                    parts.setdefault(name, []).append(value)
        return {name: torch.cat(found) for name, found in parts.items()}

    def statistics(self, z: torch.Tensor, null: str) -> dict[str, torch.Tensor]:
        n, d = self.n, self.d
        out: dict[str, torch.Tensor] = {}
        norms = (z * z).sum(dim=-1)
        # BHEP divides by the 1/n (co)variances: the same points, stretched.
        stretch = 1.0 if null == "standard" else n / (n - 1.0)
        sums, stretched = self.both_sums(z, stretch)
        for width in WIDTHS:
            rest = _closed_part(norms, gamma2(width, n, d), d)
            unit = math.sqrt(2.0 * second_moment(gamma2(width, n, d), d) / (n * (n - 1.0)))
            out[f"smmd {null} {width}"] = (rest + sums[width] / (n * (n - 1.0))) / unit
        several = [out[f"smmd {null} {width}"] for width in MULTI_SCALES]
        out[f"smmd {null} {MULTI}"] = torch.stack(several).sum(dim=0) / math.sqrt(_spread(d))
        out[f"smmd {null} {IMQ}"] = self._imq(norms, sums[IMQ])
        for width in WIDTHS:
            rest = _closed_part(stretch * norms, gamma2(width, n, d), d)
            out[f"bhep {null} {width}"] = n * (rest + stretched[width] / n**2) + 1.0
        return out

    def both_sums(self, z: torch.Tensor, stretch: float) -> tuple[Sums, Sums]:
        """The pair sums of the points, and of the stretched points."""
        if not self.fused:
            sums = self.pair_sums(z, 1.0)
            return sums, sums if stretch == 1.0 else self.pair_sums(z, stretch)
        from benchmarks import _null_sums

        precisions = [0.5 / gamma2(w, self.n, self.d) for w in (FIRST, HZ, "1/8")]
        try:
            columns = _null_sums.pair_sums(z, *precisions, len(SCALES), stretch).T
        except Exception as error:
            print(f"the fused kernel failed, going on without: {error!r}"[:2000], flush=True)
            self.fused = False
            return self.both_sums(z, stretch)
        names = [HZ, *SCALES, IMQ]
        sums = dict(zip(names, columns, strict=False))
        half = columns[_null_sums.SLOTS // 2 :]
        return sums, sums if stretch == 1.0 else dict(zip(names, half, strict=False))

    def _imq(self, norms: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """IMQ of scale 1/8, 1/(1 + r²/(2γ²)) = ∫ e^(−t) e^(−t r²/(2γ²)) dt, up to a factor."""
        n, d = self.n, self.d
        weights, widths, second = _imq_mixture(d)
        cross = torch.zeros_like(pairs)
        for weight, width in zip(weights, widths, strict=True):
            cross += weight * _closed_part(norms, width, d)
        return (cross + pairs / (n * (n - 1.0))) / math.sqrt(2.0 * second / (n * (n - 1.0)))

    def pair_sums(self, z: torch.Tensor, stretch: float) -> Sums:
        """Σ_{i≠j} exp(−stretch·‖z_i − z_j‖²/(2γ²)) of each sample, for every width."""
        n, d, edge = self.n, self.d, self.edge
        z = z.to(self.dtype)
        norms = (z * z).sum(dim=-1, keepdim=True)
        ones = torch.ones_like(norms)
        rows = torch.cat([-2.0 * z, norms, ones], dim=-1)
        columns = torch.cat([z, ones, norms], dim=-1).transpose(1, 2)
        wanted = [*WIDTHS, *([IMQ] if stretch == 1.0 else [])]
        totals = {
            width: torch.zeros(len(z), dtype=torch.float64, device=z.device) for width in wanted
        }
        starts = range(0, n, edge)
        wide, hz, imq = (0.5 * stretch / gamma2(w, n, d) for w in (FIRST, HZ, "1/8"))
        for i in starts:
            for j in starts[i // edge :]:
                r2 = torch.bmm(rows[:, i : i + edge], columns[:, :, j : j + edge])
                times = 1.0 if i == j else 2.0
                own = slice(None, None, r2.shape[-1] + 1) if i == j else slice(0)

                def add(width: str, k: torch.Tensor, times: float = times) -> None:
                    totals[width] += times * k.sum(dim=(1, 2), dtype=torch.float64)

                k = torch.exp_(r2 * -hz)
                k.flatten(1)[:, own] = 0.0
                add(HZ, k)
                if IMQ in totals:
                    torch.mul(r2, imq, out=k).add_(1.0).reciprocal_()
                    k.flatten(1)[:, own] = 0.0
                    add(IMQ, k)
                k = r2.mul_(-wide).exp_()
                k.flatten(1)[:, own] = 0.0
                for width in SCALES:
                    if width != FIRST:
                        k.mul_(k)
                    add(width, k)
        return totals


@lru_cache(maxsize=64)
def _imq_mixture(d: int) -> tuple[list[float], list[float], float]:
    """Weights and squared widths of IMQ at scale 1/8, and E h²."""
    # trapezoid in x, t = exp(x − e^(−x)): 1e-12 for the kernel at any r
    x = np.linspace(-3.6, 5.0, 72)
    t = np.exp(x - np.exp(-x))
    w = (np.exp(-t) * t * (1.0 + np.exp(-x)) * (x[1] - x[0])).tolist()
    g = (SCALES["1/8"] * d / t).tolist()
    pairs = [(w1 * w2, g1, g2) for w1, g1 in zip(w, g) for w2, g2 in zip(w, g)]  # noqa: B905
    return w, g, sum(weight * second_moment(g1, d, g2) for weight, g1, g2 in pairs)


def _closed_part(norms: torch.Tensor, g: float, d: int) -> torch.Tensor:
    """c₀ − 2 c₁ mean_i exp(−‖z_i‖²/(2(1+g)))."""
    cross = torch.exp(norms / (-2.0 * (1.0 + g))).mean(dim=-1)
    return (1.0 + 2.0 / g) ** (-0.5 * d) - 2.0 * (1.0 + 1.0 / g) ** (-0.5 * d) * cross


def _spread(d: int) -> float:
    """Variance of the sum of the standardized statistics of MULTI_SCALES."""
    g = [SCALES[width] * d for width in MULTI_SCALES]
    return sum(
        second_moment(x, d, y) / math.sqrt(second_moment(x, d) * second_moment(y, d))
        for x in g
        for y in g
    )


def normalize(z: torch.Tensor, null: str) -> torch.Tensor:
    """The paper's appendix: centre and scale, or centre and whiten, with n − 1."""
    if null == "standard":
        return z
    z = z - z.mean(dim=-2, keepdim=True)
    n = z.shape[-2]
    if null == "diagonal":
        return z / z.square().sum(dim=-2, keepdim=True).div(n - 1).sqrt()
    factor = torch.linalg.cholesky(z.mT @ z / (n - 1))
    return torch.linalg.solve_triangular(factor, z.mT, upper=False).mT


def check(n: int, d: int, seed: int, device: str = "cpu", count: int = 6) -> dict[str, float]:
    """The largest difference from the library, by series, for a few samples, in units of 1."""
    import smmd
    from smmd.nulls import montecarlo

    simulation = Simulation(n, d, seed, zlib.crc32(b"check"), device)
    z = simulation.draw(count)
    worst = {}
    for null in nulls(n, d):
        ours = simulation.statistics(normalize(z, null), null)
        for name, values in ours.items():
            statistic, _, width = name.split()
            if width == MULTI:
                kernel: smmd.Kernel = smmd.MultiScale()
            elif width == IMQ:
                kernel = smmd.IMQ()
            else:
                kernel = smmd.Gaussian(gamma=gamma2(width, n, d) ** 0.5)
            divisor = "n-1" if statistic == "smmd" else "n"
            here = montecarlo.normalize(z.cpu().numpy(), null, divisor=divisor)
            exact = smmd.mmd2(here, kernel, unbiased=statistic == "smmd")
            exact *= n if statistic == "bhep" else smmd.null_variance(n, d, kernel) ** -0.5
            worst[name] = float(np.max(np.abs(exact - values.cpu().numpy())))
    return worst

"""Null laws by simulation, as the paper's appendix on hypothesis tests constructs them.

"Sample Z_1 ... Z_n from N(0, I), then apply centering by the mean and whitening by the sample
covariance matrix": the statistic of such samples has the law that the statistic of any normal
sample has, whatever its mean and covariance.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from smmd import arrays
from smmd.arrays import Array
from smmd.samples import whole_number

#: The seed of every null that is simulated without ``rng``: results do not change between runs.
SEED = 20_190_108
#: Goes up when the simulated values of an unchanged request would change.
RECIPE = 1
#: How many coordinates are drawn at once when ``batch`` does not say.
_NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class SimulatedNull:
    """The law of a statistic as ``values`` simulated under the null, in ascending order."""

    values: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def sd(self) -> float:
        return float(self.values.std(ddof=1))

    def sf(self, x: float) -> float:
        """(k + 1)/(B + 1), k of the B values being at least x: never zero."""
        above = self.values.size - int(np.searchsorted(self.values, x, side="left"))
        return (above + 1) / (self.values.size + 1)

    def standard_error(self, p: float) -> float:
        """Of a p-value from this many values."""
        return float(np.sqrt(p * (1.0 - p) / (self.values.size + 1)))

    def isf(self, alpha: float) -> float:
        """The threshold above which sf(x) ≤ alpha; infinite if that takes more values."""
        rank = int(np.floor(alpha * (self.values.size + 1) * (1.0 + 1e-12)))
        return float(self.values[-rank]) if rank >= 1 else float("inf")

    def isf_standard_error(self, alpha: float) -> float:
        """Of the threshold: half the distance of the order statistics one binomial sd around."""
        size = self.values.size
        spread = np.sqrt(alpha * (1.0 - alpha) * size)
        ranks = np.clip(np.round(alpha * size + spread * np.array([-1.0, 1.0])), 1, size)
        lower, upper = (float(self.values[-int(r)]) for r in ranks[::-1])
        return 0.5 * (upper - lower)


def normalize(z: Array, null: str, *, divisor: str = "n-1") -> Array:
    """What a null that estimates parameters does to samples (…, n, d).

    "standard": nothing.  "diagonal": centre and scale.  "normal": centre and whiten, here by the
    Cholesky factor, which differs from the symmetric root by a rotation.
    """
    if null == "standard":
        return z
    xp = arrays.namespace(z)
    n = z.shape[-2]
    z = z - xp.mean(z, axis=-2, keepdims=True)
    count = n - 1 if divisor == "n-1" else n
    if null == "diagonal":
        return z / xp.sqrt(xp.sum(z * z, axis=-2, keepdims=True) / count)
    factor = xp.linalg.cholesky(xp.matrix_transpose(z) @ z / count)
    return z @ xp.matrix_transpose(xp.linalg.inv(factor))


def generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """``rng`` as a NumPy generator; None is the fixed seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        rng = SEED
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer):
        raise TypeError(
            f"rng must be a seed (int), a numpy.random.Generator or None, got {rng!r}; "
            "make one with numpy.random.default_rng(seed)"
        )
    if rng < 0:
        raise ValueError(f"rng must be a non-negative seed, got {rng}")
    return np.random.default_rng(int(rng))


def batches(total: int, n: int, d: int, batch: int | None) -> Iterator[int]:
    """How many samples to draw at a time: ``total`` in all."""
    if batch is None:
        batch = max(1, _NUMBERS_AT_ONCE // (n * d))
    batch = whole_number("batch", batch, 1)
    done = 0
    while done < total:
        step = min(batch, total - done)
        yield step
        done += step


def simulate(
    value: Callable[[Array], Array],
    null: str,
    n: int,
    d: int,
    *,
    n_resamples: int,
    rng: int | np.random.Generator | None = None,
    batch: int | None = None,
    divisor: str = "n-1",
) -> np.ndarray:
    """``n_resamples`` values of the statistic under the null, in ascending order.

    ``value`` maps normalized samples (b, n, d) to (b,).  The numbers drawn do not depend on
    ``batch``, nor on whether a GPU computes the statistic.
    """
    rng = generator(rng)
    parts = []
    for size in batches(n_resamples, n, d, batch):
        z = on_fast_device(rng.standard_normal((size, n, d)))
        parts.append(arrays.to_numpy(value(normalize(z, null, divisor=divisor)), "a simulation"))
    return np.sort(np.concatenate(parts))


def on_fast_device(z: np.ndarray) -> Any:
    """``z`` on the GPU if PyTorch is imported and has one, else as it is."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if torch is None or cuda is None or not cuda.is_available():
        return z
    return torch.as_tensor(z, device="cuda")  # pragma: no cover - needs a GPU

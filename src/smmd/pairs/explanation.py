"""Which way a sum over pairs will go, and why, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smmd import arrays, samples
from smmd.kernels import Gaussian, Kernel, as_kernel
from smmd.pairs import blocks, plan
from smmd.radial import Radial


@dataclass(frozen=True)
class Explanation:
    """What ``explain`` found; printed, it is one sentence.

    ``error`` bounds the relative error of a kernel value (of SMMD², in null standard deviations,
    for ``"gram32"``) that this path adds to float64 rounding; None where no bound decided.
    """

    path: str
    why: str
    where: str
    n: int
    d: int
    samples: int
    error: float | None

    def __str__(self) -> str:
        pairs = self.samples * self.n * (self.n - 1) // 2
        many = "" if self.samples == 1 else f"{self.samples:,} samples of "
        return (
            f"{many}n={self.n:,}, d={self.d}: {pairs:,} pairs on {self.where} by "
            f"{self.path!r} ({_WORDS[self.path]}), because {self.why}"
        )


_WORDS = {
    "difference": "blocks of summed squared differences in float64",
    "gram": "blocks of matrix products in float64",
    "gram32": "blocks of matrix products in float32, summed in float64",
    "direct": "one fused Triton kernel",
    "triton": "fused Triton kernels on matrix units",
    "dense": "the formulas as they read, a block of rows at a time",
}


def explain(z: Any, kernel: Kernel = Gaussian(), *, gradient: bool = False) -> Explanation:
    """Which way the sum over pairs of z will go, and why; nothing is summed.

    Parameters
    ----------
    z : array (..., n, d)
    kernel : Kernel
    gradient : bool
        Whether a gradient will be wanted: it may go another way.

    ``smmd.pairs.use(path)`` and the environment variable ``SMMD_PAIRS`` override the choice.

    Examples
    --------
    >>> import numpy as np, smmd
    >>> z = np.random.default_rng(0).standard_normal((2000, 8))
    >>> smmd.explain(z).path
    'gram'
    >>> smmd.explain(z.astype(np.float32)).path
    'gram32'
    >>> print(smmd.explain(1e9 * z))  # doctest: +ELLIPSIS
    n=2,000, d=8: 1,999,000 pairs on ... core... by 'difference' (blocks of summed squared ...
    """
    from smmd import measure

    sample = samples.take(z, name="z")
    name = arrays.kind(z)
    count = int(np.prod(sample.z.shape[:-2], dtype=np.int64))
    if name == "torch":
        found = _on_gpu(sample.given, count, gradient)
        if found is not None:
            return found
    where = _device(z) if name in ("torch", "jax", "cupy") else _cores()
    if name == "jax" or name == "cupy":
        return Explanation("dense", f"{name} has no other", where, sample.n, sample.d, count, None)
    if plan.forced() == "dense" or (name == "torch" and z.device.type != "cpu"):
        why = "'dense' was asked for" if plan.forced() == "dense" else _not_triton(sample.given)
        return Explanation("dense", why, where, sample.n, sample.d, count, None)
    terms = measure.terms_for(as_kernel(kernel), sample, standardized=sample.n > 1)
    points = arrays.to_numpy(sample.given, "explain reads z")
    choice = _choice(points, _plain(terms.pair), gradient)
    return Explanation(choice.path, choice.why, _cores(), sample.n, sample.d, count, choice.bound)


def _choice(points: np.ndarray, radial: Radial, gradient: bool) -> plan.Choice:
    single = points.dtype == np.float32
    x = points.astype(np.float64).reshape(-1, *points.shape[-2:])
    if not x.size:
        return plan.Choice("difference", "there are no points", 0.0)
    return blocks.prepare(x, None, radial, single, gradient)[0]


def _plain(radial: Radial) -> Radial:
    """Widths that follow the data, as NumPy arrays."""
    from smmd.radial import Exponentials

    if not isinstance(radial, Exponentials) or isinstance(radial.a, tuple):
        return radial
    fields = (arrays.to_numpy(v, "explain reads the width") for v in radial.parameters())
    return Exponentials(*fields)


def _on_gpu(z: Any, count: int, gradient: bool) -> Explanation | None:
    from smmd.pairs import gpu

    if not gpu.serves(z):
        return None
    from smmd.pairs.triton_plan import choose_tiles, prefers_direct

    n, d = z.shape[-2:]
    where, asked = _device(z), plan.forced() == "triton"
    lead = "'triton' was asked for" if asked else f"{z.dtype} data are on a GPU"
    if prefers_direct(count, n, n, d):
        why = f"{lead}, and few enough for launches to matter more than arithmetic"
        return Explanation("direct", why, where, n, d, count, None)
    cut = choose_tiles(count, n, n, d, gradient)
    why = f"{lead}; tiles of {cut.rows} × {cut.columns} pairs"
    return Explanation("triton", why, where, n, d, count, None)


def _not_triton(z: Any) -> str:
    from smmd.pairs import gpu

    return gpu.why_not(z)


def _device(z: Any) -> str:
    device = z.device
    return str(device() if callable(device) else device)


def _cores() -> str:
    from smmd.pairs.threads import cores

    count = cores()
    return f"{count} core" if count == 1 else f"{count} cores"

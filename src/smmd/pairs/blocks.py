"""Sums over pairs on the CPU: NumPy, blocks of the upper triangle, all cores.

Squared distances come from one of two places:

* ``"difference"``: summed squared differences, exact to rounding wherever the points lie.
* ``"gram"``: ‖x‖² + ‖y‖² − 2x·y of the centred data through BLAS, several times faster.  With R
  the largest centred norm and T the largest coordinate offset, its error in a kernel value is
  below 2aR(R + T)·2⁻⁵² relative; it is used only where that is below ``GRAM_TOLERANCE``.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from scipy.spatial.distance import cdist

from smmd.radial import Exponentials, Radial, Rational, SeriesRadial

#: Largest relative error in a kernel value that the faster distances may bring.
GRAM_TOLERANCE = 2e-13
#: Up to this many points exact differences cost nothing worth saving.
SMALL = 64
#: Rows and columns of a block: two float64 blocks stay in a core's L2 cache.
BLOCK = 256


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=cores(), thread_name_prefix="smmd")


def cores() -> int:
    """The number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not Linux
        return os.cpu_count() or 1


def largest_precision(radial: Radial) -> float:
    """The steepest |f'/f|·2 of the kernel: what an error in r² is multiplied by."""
    if isinstance(radial, Exponentials):
        return float(np.max(np.asarray(radial.a)))
    assert isinstance(radial, Rational | SeriesRadial)
    return radial.a


def choose_distances(z: np.ndarray, a: float) -> str:
    """``"gram"`` where its error bound is below ``GRAM_TOLERANCE``, else ``"difference"``."""
    if z.shape[-2] <= SMALL:
        return "difference"
    centre = z.mean(axis=-2, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        radius = math.sqrt(float(np.max(np.sum((z - centre) ** 2, axis=-1))))
        bound = 2.0 * a * radius * (radius + float(np.max(np.abs(z)))) * 2.0**-52
    return "gram" if bound <= GRAM_TOLERANCE else "difference"


def pair_sum(
    z: np.ndarray, radial: Radial, *, gradient: bool = False, distances: str | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Σ_{i≠j} f(‖z_i − z_j‖²) for z (…, n, d), and its gradient if asked, in float64."""
    z = np.asarray(z, dtype=np.float64)
    batch, (n, d) = z.shape[:-2], z.shape[-2:]
    flat = z.reshape(-1, n, d)
    if distances is None:
        distances = choose_distances(flat, largest_precision(radial)) if flat.size else "difference"
    if distances == "gram":
        flat = flat - flat.mean(axis=-2, keepdims=True)
    totals = np.zeros(len(flat))
    slopes = np.zeros_like(flat) if gradient else None
    jobs = _whole_samples if n <= BLOCK else _triangles
    jobs(flat, radial, distances == "gram", totals, slopes)
    return totals.reshape(batch), None if slopes is None else slopes.reshape(z.shape)


def _run(work: list[Callable[[], None]]) -> None:
    if len(work) == 1 or cores() == 1:
        for job in work:
            job()
        return
    for future in [_pool().submit(job) for job in work]:
        future.result()


def _whole_samples(
    z: np.ndarray, radial: Radial, gram: bool, totals: np.ndarray, slopes: np.ndarray | None
) -> None:
    """Many small samples: a few at a time, every pair of each."""
    count, n, d = z.shape
    step = max(1, min(-(-count // cores()), (BLOCK * BLOCK) // (n * n) or 1))
    diagonal = np.arange(n)

    def chunk(start: int) -> None:
        part = slice(start, min(start + step, count))
        x = z[part]
        f = _restrict(radial, part)
        r2 = _squared_distances(x, x, gram)
        values = f.value(np, r2)
        values[:, diagonal, diagonal] = 0.0
        totals[part] = values.sum(axis=(-2, -1))
        if slopes is not None:
            slope = f.slope(np, r2)
            slope[:, diagonal, diagonal] = 0.0
            slopes[part] = 4.0 * _weighted_differences(slope, x, x, gram)

    _run([lambda s=s: chunk(s) for s in range(0, count, step)])  # type: ignore[misc]


def _triangles(
    z: np.ndarray, radial: Radial, gram: bool, totals: np.ndarray, slopes: np.ndarray | None
) -> None:
    """Large samples: the blocks of the upper triangle, shared out among the cores."""
    n = z.shape[-2]
    starts = range(0, n, BLOCK)
    blocks = [(i, j) for i in starts for j in starts if j >= i]
    for b, x in enumerate(z):
        f = _restrict(radial, slice(b, b + 1))
        sums: list[float] = []
        lock = threading.Lock()

        def share(mine: Iterator[tuple[int, int]], x=x, f=f, sums=sums, lock=lock) -> None:
            local: list[float] = []
            pull = np.zeros_like(x) if slopes is not None else None
            for i, j in mine:
                local.append(_block(x, f, gram, i, j, pull))
            with lock:
                sums.extend(local)
                if slopes is not None:
                    slopes[b] += pull

        workers = min(cores(), len(blocks))
        _run([lambda w=w, share=share: share(blocks[w::workers]) for w in range(workers)])  # type: ignore[misc]
        totals[b] = math.fsum(sums)


def _block(
    x: np.ndarray, radial: Radial, gram: bool, i: int, j: int, pull: np.ndarray | None
) -> float:
    """One block's share of the sum; its share of the gradient is added to ``pull``."""
    rows, cols = x[None, i : i + BLOCK], x[None, j : j + BLOCK]
    r2 = _squared_distances(rows, cols, gram)
    values = radial.value(np, r2)[0]
    if i == j:
        np.fill_diagonal(values, 0.0)
    if pull is not None:
        slope = radial.slope(np, r2)
        if i == j:
            np.fill_diagonal(slope[0], 0.0)
        pull[i : i + BLOCK] += 4.0 * _weighted_differences(slope, rows, cols, gram)[0]
        if i != j:
            back = _weighted_differences(slope.swapaxes(-1, -2), cols, rows, gram)[0]
            pull[j : j + BLOCK] += 4.0 * back
    return float(values.sum()) * (1.0 if i == j else 2.0)


def _squared_distances(x: np.ndarray, y: np.ndarray, gram: bool) -> np.ndarray:
    if gram:
        r2 = x @ y.swapaxes(-1, -2)
        r2 *= -2.0
        r2 += np.einsum("...k,...k->...", x, x)[..., :, None]
        r2 += np.einsum("...k,...k->...", y, y)[..., None, :]
        return np.maximum(r2, 0.0, out=r2)
    with np.errstate(over="ignore"):
        return np.stack([cdist(a, b, "sqeuclidean") for a, b in zip(x, y, strict=True)])


def _weighted_differences(w: np.ndarray, x: np.ndarray, y: np.ndarray, gram: bool) -> np.ndarray:
    """Σ_j w_ij (x_i − y_j)."""
    if gram:
        return w.sum(axis=-1)[..., None] * x - w @ y
    out = np.empty_like(x)
    for k in range(x.shape[-1]):
        diff = x[..., :, None, k] - y[..., None, :, k]
        diff *= w
        out[..., k] = diff.sum(axis=-1)
    return out


def _restrict(radial: Radial, part: slice) -> Radial:
    """The samples ``part`` of a radial function whose width differs from sample to sample."""
    if not isinstance(radial, Exponentials) or isinstance(radial.a, tuple):
        return radial
    terms = radial.a.shape[-1]
    return Exponentials(*(np.reshape(v, (-1, terms))[part] for v in radial.parameters()))

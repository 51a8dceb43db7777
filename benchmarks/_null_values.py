"""Many values of SMMD² and BHEP under the three nulls, at several widths, from the same draws.

One simulated sample (n, d) serves every null and every width: the scales are powers of two
apart, so that one exponential gives them all by squaring.  The closed form is written out here a
second time, on purpose: `check` holds it against `smmd` before anything is counted.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

import smmd
from smmd import files
from smmd.nulls import NULLS
from smmd.nulls.montecarlo import normalize
from smmd.progress import Bar

#: The scales that are squarings of the first; then the Henze–Zirkler width γ²_{n,d}.
SCALES = {"1": 1.0, "1/2": 0.5, "1/4": 0.25, "1/8": 0.125, "1/16": 0.0625}
WIDTHS = (*SCALES, "HZ")
STATISTICS = ("smmd", "bhep")
#: From this many rows on distances are float32; `check` says what that does.
SINGLE = 100
#: How many pairs are held at once: in the cache, as float32.
_PAIRS = 1 << 17


def gamma2(width: str, n: int, d: int) -> float:
    """The squared width that a name means."""
    return smmd.HenzeZirkler.gamma(n, d) ** 2 if width == "HZ" else SCALES[width] * d


def names(d: int) -> list[str]:
    """ "statistic null width" of every series; at d = 1 scaling is whitening."""
    nulls = [null for null in NULLS if d > 1 or null != "normal"]
    return [f"{s} {null} {w}" for s in STATISTICS for null in nulls for w in WIDTHS]


def simulate(n: int, d: int, count: int, seed: int) -> dict[str, np.ndarray]:
    """``count`` values of every series of ``names(d)``, in the order in which they were drawn."""
    rng = np.random.Generator(np.random.SFC64([seed, n, d]))
    dtype = np.float32 if n >= SINGLE else np.float64
    out = {name: np.empty(count) for name in names(d)}
    step = max(1, _PAIRS // min(n, 128) ** 2)
    bar = Bar(count, f"n={n} d={d}")
    for start in range(0, count, step):
        z = rng.standard_normal((min(step, count - start), n, d))
        part = slice(start, start + len(z))
        for null in NULLS:
            if null == "normal" and d == 1:
                continue
            here = normalize(z, null)
            for name, values in _statistics(here, null, dtype).items():
                out[name][part] = values
        bar.advance(len(z))
    bar.close()
    return out


def _statistics(z: np.ndarray, null: str, dtype: type) -> dict[str, np.ndarray]:
    n, d = z.shape[-2:]
    out = {}
    # BHEP divides by the 1/n (co)variances: the same points, stretched.
    stretches = {"smmd": 1.0, "bhep": 1.0 if null == "standard" else n / (n - 1.0)}
    sums: dict[float, dict[str, np.ndarray]] = {}
    for statistic, stretch in stretches.items():
        if stretch not in sums:
            sums[stretch] = pair_sums(z.astype(dtype), stretch)
        norms = stretch * np.einsum("bnd,bnd->bn", z, z)
        for width in WIDTHS:
            g, pairs = gamma2(width, n, d), sums[stretch][width]
            cross = np.exp(norms / (-2.0 * (1.0 + g))).mean(axis=-1)
            rest = -2.0 * (1.0 + 1.0 / g) ** (-0.5 * d) * cross + (1.0 + 2.0 / g) ** (-0.5 * d)
            if statistic == "bhep":
                value = n * (rest + pairs / n**2) + 1.0
            else:
                variance = smmd.null_variance(n, d, smmd.Gaussian(gamma=g**0.5))
                value = (rest + pairs / (n * (n - 1.0))) / variance**0.5
            out[f"{statistic} {null} {width}"] = value
    return out


def pair_sums(z: np.ndarray, stretch: float) -> dict[str, np.ndarray]:
    """Σ_{i≠j} exp(−stretch·‖z_i − z_j‖²/(2γ²)) of each sample, for every width."""
    samples, n, d = z.shape
    totals = {width: np.zeros(samples) for width in WIDTHS}
    norms = np.einsum("bnd,bnd->bn", z, z)[..., None]
    ones = np.ones_like(norms)
    rows = np.concatenate([-2.0 * z, norms, ones], axis=-1)
    columns = np.concatenate([z, ones, norms], axis=-1).transpose(0, 2, 1)
    edge = n if n < 100 else min(128, -(-n // 2))
    starts = range(0, n, edge)
    precisions = [1.0 / gamma2("1", n, d), 1.0 / gamma2("HZ", n, d)]
    for i in starts:
        for j in starts[i // edge :]:
            r2 = rows[:, i : i + edge] @ columns[:, :, j : j + edge]
            times = 1.0 if i == j else 2.0
            k, hz = (np.exp(r2 * z.dtype.type(-0.5 * stretch * a)) for a in precisions)
            for power in (k, hz):
                if i == j:
                    power.reshape(samples, -1)[:, :: power.shape[-1] + 1] = 0.0
            totals["HZ"] += times * _total(hz)
            for width in SCALES:
                if width != "1":
                    np.multiply(k, k, out=k)
                totals[width] += times * _total(k)
    return totals


def _total(block: np.ndarray) -> np.ndarray:
    return block.reshape(len(block), -1).sum(axis=-1).astype(np.float64)


def check(n: int, d: int, seed: int, count: int = 6) -> dict[str, float]:
    """The largest difference from the library, by series, for a few samples."""
    step = max(1, _PAIRS // min(n, 128) ** 2)
    count = min(count, step)
    z = np.random.Generator(np.random.SFC64([seed, n, d])).standard_normal((step, n, d))[:count]
    ours = {}
    for null in NULLS[: 3 if d > 1 else 2]:
        dtype = np.float32 if n >= SINGLE else np.float64
        ours.update(_statistics(normalize(z, null), null, dtype))
    worst = {}
    for name, values in ours.items():
        statistic, null, width = name.split()
        kernel = smmd.Gaussian(gamma=gamma2(width, n, d) ** 0.5)
        here = normalize(z, null, divisor="n-1" if statistic == "smmd" else "n")
        if statistic == "smmd":
            exact = smmd.smmd(here, kernel=kernel)
        else:
            exact = n * smmd.mmd2(here, kernel, unbiased=False)
        worst[name] = float(np.max(np.abs(exact - values)))
    return worst


def fetch(folder: Path, n: int, d: int, count: int, seed: int) -> dict[str, np.ndarray]:
    """The values of a cell from ``folder``, or simulated now and kept there."""
    path = folder / f"values-n{n}-d{d}-{count}-seed{seed}.npz"
    try:
        with np.load(path) as stored:
            if set(stored.files) == set(names(d)):
                return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        pass
    values = {k: v.astype(np.float32) for k, v in simulate(n, d, count, seed).items()}
    folder.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as file:
        np.savez(file, **values)
    return values

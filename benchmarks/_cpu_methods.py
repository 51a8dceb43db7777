"""One method at one size, in a process of its own: prints its times and its memory as JSON.

    python -m benchmarks._cpu_methods METHOD N D wall|cpu

Run by ``benchmarks.cpu``, maybe by an interpreter where a peer is installed and smmd is not: so
everything is imported where it is used.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

#: Largest time for the repeats of a call, and how many there are.
BUDGET, REPEATS = 5.0, 7
#: Short calls are repeated for so long: the first dozens are slower, and nobody trains for seven.
SETTLED = 0.2
#: Resident bytes are counted in units of 1 KiB on Linux and of 1 byte on macOS.
UNIT = 1 if sys.platform == "darwin" else 1024

Call = Callable[[], object]
Maker = Callable[[np.ndarray, np.random.Generator], Call]
METHODS: dict[str, tuple[str, Maker]] = {}


def method(name: str, package: str) -> Callable[[Maker], Maker]:
    """Under ``name``; ``package`` is what is installed for it."""

    def keep(maker: Maker) -> Maker:
        METHODS[name] = package, maker
        return maker

    return keep


def gamma(d: int) -> float:
    """The width of the default kernel."""
    return float(np.sqrt(d / 8.0))


@method("smmd float64", "smmd")
def _smmd(z: np.ndarray, rng: np.random.Generator) -> Call:
    import smmd

    return lambda: smmd.smmd(z)


@method("smmd float32", "smmd")
def _smmd_single(z: np.ndarray, rng: np.random.Generator) -> Call:
    return _smmd(z.astype(np.float32), rng)


@method("batch float64", "smmd")
def _batch(z: np.ndarray, rng: np.random.Generator) -> Call:
    """The shape of a Monte Carlo null law: 10,000 samples in one call."""
    import smmd

    many = rng.standard_normal((10_000, *z.shape))
    return lambda: smmd.smmd(many)


@method("batch float32", "smmd")
def _batch_single(z: np.ndarray, rng: np.random.Generator) -> Call:
    import smmd

    many = rng.standard_normal((10_000, *z.shape), dtype=np.float32)
    return lambda: smmd.smmd(many)


@method("exp float64", "numpy")
def _exp(z: np.ndarray, rng: np.random.Generator) -> Call:
    """Bare ``np.exp``, in the cache and on every core: the limit of any sum of exponentials."""
    return _exponentials(np.float64)


@method("exp float32", "numpy")
def _exp_single(z: np.ndarray, rng: np.random.Generator) -> Call:
    return _exponentials(np.float32)


#: How many exponentials each core computes.
EXPONENTIALS = 65_536 * 2000


def _exponentials(dtype: Any) -> Call:
    from threading import Thread

    block = np.linspace(-20.0, 0.0, 65_536).astype(dtype)

    def work() -> None:
        room = np.empty_like(block)
        for _ in range(EXPONENTIALS // block.size):
            np.exp(block, out=room)

    def call() -> None:
        threads = [Thread(target=work) for _ in os.sched_getaffinity(0)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return call


@method("smmd test", "smmd")
def _smmd_test(z: np.ndarray, rng: np.random.Generator) -> Call:
    import smmd

    return lambda: smmd.normality_test(z)


@method("smmd HZ test", "smmd")
def _smmd_hz(z: np.ndarray, rng: np.random.Generator) -> Call:
    import smmd

    return lambda: smmd.normality_test(z, statistic="henze-zirkler")


@method("pingouin", "pingouin")
def _pingouin(z: np.ndarray, rng: np.random.Generator) -> Call:
    import pingouin

    return lambda: pingouin.multivariate_normality(z, alpha=0.05)


@method("KeOps", "pykeops")
def _keops(z: np.ndarray, rng: np.random.Generator) -> Call:
    import torch

    sums = _keops_sum(z.shape[1])
    x = torch.from_numpy(z.astype(np.float32))
    return lambda: sums(x)


def _keops_sum(d: int) -> Callable[[Any], Any]:
    import pykeops
    from pykeops.torch import LazyTensor

    pykeops.set_verbose(False)

    def sums(x: Any) -> Any:
        r2 = ((LazyTensor(x[:, None, :]) - LazyTensor(x[None, :, :])) ** 2).sum(-1)
        return (-r2 / (2.0 * gamma(d) ** 2)).exp().sum(1).sum()

    return sums


def _against_draws(z: np.ndarray, rng: np.random.Generator) -> tuple[Any, Any]:
    import torch

    y = rng.standard_normal(z.shape).astype(np.float32)
    return torch.from_numpy(z.astype(np.float32)), torch.from_numpy(y)


@method("geomloss", "geomloss")
def _geomloss(z: np.ndarray, rng: np.random.Generator) -> Call:
    from geomloss import SamplesLoss

    loss = SamplesLoss("gaussian", blur=gamma(z.shape[1]), backend="tensorized")
    x, y = _against_draws(z, rng)
    return lambda: loss(x, y)


@method("alibi-detect", "alibi-detect")
def _alibi(z: np.ndarray, rng: np.random.Generator) -> Call:
    import torch
    from alibi_detect.utils.pytorch.distance import mmd2
    from alibi_detect.utils.pytorch.kernels import GaussianRBF

    kernel = GaussianRBF(sigma=torch.tensor([gamma(z.shape[1])]))
    x, y = _against_draws(z, rng)

    def call() -> object:
        with torch.no_grad():
            return mmd2(x, y, kernel)

    return call


@method("ignite", "pytorch-ignite")
def _ignite(z: np.ndarray, rng: np.random.Generator) -> Call:
    from ignite.metrics import MaximumMeanDiscrepancy

    x, y = _against_draws(z, rng)

    def call() -> object:
        metric = MaximumMeanDiscrepancy(var=gamma(z.shape[1]) ** 2)
        metric.update((x, y))
        return metric.compute()

    return call


@method("frouros", "frouros")
def _frouros(z: np.ndarray, rng: np.random.Generator) -> Call:
    from functools import partial

    from frouros.detectors.data_drift import MMD
    from frouros.utils.kernels import rbf_kernel

    detector = MMD(kernel=partial(rbf_kernel, sigma=gamma(z.shape[1])))
    detector.fit(X=rng.standard_normal(z.shape))
    return lambda: detector.compare(X=z)


@method("hyppo", "hyppo")
def _hyppo(z: np.ndarray, rng: np.random.Generator) -> Call:
    from hyppo.ksample import MMD

    y = rng.standard_normal(z.shape)
    test = MMD("gaussian", bias=False, gamma=1.0 / (2.0 * gamma(z.shape[1]) ** 2))
    return lambda: test.statistic(z, y)


def _gradient(loss: Callable[[Any], Any], z: np.ndarray) -> Call:
    import torch

    leaf = torch.from_numpy(z.astype(np.float32)).requires_grad_()
    return lambda: torch.autograd.grad(loss(leaf), leaf)


@method("smmd loss", "smmd")
def _loss(z: np.ndarray, rng: np.random.Generator) -> Call:
    import smmd.torch

    return _gradient(smmd.torch.SMMDLoss(), z)


@method("smmd sliced loss", "smmd")
def _sliced_loss(z: np.ndarray, rng: np.random.Generator) -> Call:
    import smmd.torch

    return _gradient(smmd.torch.SMMDLoss(kernel=smmd.Sliced()), z)


@method("listing loss", "torch")
def _listing(z: np.ndarray, rng: np.random.Generator) -> Call:
    from benchmarks._gpu_baselines import listing

    return _gradient(listing, z)


@method("listing loss compiled", "torch")
def _listing_compiled(z: np.ndarray, rng: np.random.Generator) -> Call:
    import torch

    from benchmarks._gpu_baselines import listing

    return _gradient(torch.compile(listing, dynamic=False), z)


@method("SIGReg loss", "torch")
def _sigreg(z: np.ndarray, rng: np.random.Generator) -> Call:
    from benchmarks._gpu_baselines import sigreg

    return _gradient(sigreg, z)


@method("KeOps loss", "pykeops")
def _keops_loss(z: np.ndarray, rng: np.random.Generator) -> Call:
    return _gradient(_keops_sum(z.shape[1]), z)


@method("geomloss loss", "geomloss")
def _geomloss_loss(z: np.ndarray, rng: np.random.Generator) -> Call:
    import torch
    from geomloss import SamplesLoss

    loss = SamplesLoss("gaussian", blur=gamma(z.shape[1]), backend="tensorized")
    y = torch.from_numpy(rng.standard_normal(z.shape).astype(np.float32))
    return _gradient(lambda x: loss(x, y), z)


def peak() -> int:
    """The largest resident size so far, in bytes."""
    return UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measured(name: str, n: int, d: int, processor: bool) -> dict[str, Any]:
    """Seconds of single calls, by the wall's clock or the processor's, and their memory."""
    package, maker = METHODS[name]
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, d))
    # What is imported, compiled and cached on first use is not the call's; torch.compile does it
    # for each shape.
    warm = z if "compiled" in name else z[: min(n, max(100, 4 * d))]
    maker(np.ascontiguousarray(warm), rng)()
    call, before = maker(z, rng), peak()
    clock = time.process_time if processor else time.perf_counter
    times: list[float] = []
    begun = time.perf_counter()
    passed = 0.0
    while len(times) < 2 or (passed < BUDGET and (len(times) < REPEATS or passed < SETTLED)):
        start = clock()
        call()
        times.append(clock() - start)
        passed = time.perf_counter() - begun
        if times[0] > 2.0 * BUDGET:
            break
    low, median, high = (float(v) for v in np.percentile(times, [10, 50, 90]))
    return {
        "s_p10": low, "s_median": median, "s_p90": high, "calls": len(times),
        "MiB": (peak() - before) / 2**20, "version": importlib.metadata.version(package),
    }  # fmt: skip


if __name__ == "__main__":
    print(
        json.dumps(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "cpu"))
    )

"""Fill the compilers' caches by many processes, so that little time of a GPU is spent on waiting.

Each job is a function's name in this module and its arguments; it is run once, for its effect on
Triton's and Inductor's caches on the disk.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from unittest import mock

import torch

from benchmarks import _gpu_timing

#: A job: the name of a function here, and its arguments.
Job = tuple[str, tuple[object, ...]]
#: No job takes more points than this: the kernels are the same.
LARGEST = 100_000


def smmd_step(kernel: str, shape: tuple[int, ...], gradient: bool) -> None:
    """The loss with or without gradient, and sums of its kernel."""
    from benchmarks import _gpu_table as table

    shape = (min(shape[0], 200 if len(shape) == 3 else LARGEST), *shape[1:])
    z = table.points(shape)
    (table.step(kernel, z) if gradient else table.value(kernel, z))()


def compiled(loss: str, shape: tuple[int, int]) -> None:
    """A baseline under ``torch.compile``."""
    from benchmarks import _gpu_table as table

    table.compiled_baseline(loss, table.points(shape))()


def checked(kind: str, d: int, sizes: tuple[int, ...]) -> None:
    """What the check of a kernel calls."""
    from benchmarks import _gpu_check as check

    for problem in check.problems(d, _gpu_timing.DEVICE, [kind]):
        for n in sizes:
            check.warm(problem, n, d)


def _run(job: Job) -> tuple[Job, str]:
    name, arguments = job
    function: Callable[..., None] = globals()[name]
    try:
        function(*arguments)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    except Exception as error:
        return job, f"{type(error).__name__}: {str(error)[:200]}"
    return job, ""


def compile_all(jobs: list[Job], seconds: float) -> None:
    """Run the jobs side by side for at most so many seconds; says what failed."""
    begun, done = time.perf_counter(), 0
    workers = min(15, len(jobs), os.cpu_count() or 1)
    # Inductor would give each of them processes of its own, which a pool's workers may not have.
    alone = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with (
        mock.patch.dict(os.environ, alone),
        multiprocessing.get_context("spawn").Pool(workers) as pool,
    ):
        results = pool.imap_unordered(_run, jobs, chunksize=1)
        try:
            for _ in jobs:
                left = seconds - (time.perf_counter() - begun)
                job, error = results.next(timeout=max(0.1, left))
                done += 1
                if error:
                    print("failed:", job, error, flush=True)
        except multiprocessing.TimeoutError:
            print("compiling takes too long; the rest is compiled when it is needed", flush=True)
        pool.terminate()
    spent = time.perf_counter() - begun
    print(f"compiled {done} of {len(jobs)} jobs in {spent:.0f} s", flush=True)

"""Compile the launches of a few statistics for a GPU that is not there; prints kernels' names."""

from __future__ import annotations

from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

import smmd
from smmd import measure
from smmd.pairs import gpu, triton_launch


class Absent:
    """What Triton's compiler asks of a device."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_device_interface(self) -> None:
        return None

    def is_active(self) -> bool:
        return True


def compile_only(kernel: Any, programs: int, arguments: Any, constants: Any) -> dict[Any, None]:
    made = kernel.warmup(*arguments, grid=(programs,), **constants)
    assert made.asm["cubin"]
    print(kernel.__name__)
    return {(programs, 1, 1): None}


def main() -> None:
    driver.set_active(Absent())
    triton_launch.first = compile_only
    for n, d, kernel, dtype in (
        (100, 8, smmd.Gaussian(), torch.bfloat16),
        (256, 64, smmd.Gaussian(), torch.float32),
        (16384, 8, smmd.Sliced(), torch.float32),
        (1024, 100, smmd.MultiScale((1 / 8, 1 / 4)), torch.float32),
    ):
        z = torch.empty(1, n, d, dtype=dtype)
        triton_launch._compiled.clear()
        terms = measure._fixed_terms(kernel, n, d, True, False, 680.0)
        form = terms.pair, terms.cross, float(terms.constant)
        statistic = gpu.statistic(*form, True, z.shape, z.dtype, z.device)
        assert statistic is not None
        statistic(z, True)
    # Widths that follow the data are tensors, tables made on the device.
    triton_launch._compiled.clear()
    widths = (torch.ones(2, 3, dtype=torch.float64) for _ in range(4))
    z = torch.empty(2, 100, 8)
    gpu.pair_sum(z, smmd.radial.Exponentials(*widths), gradient=True)


if __name__ == "__main__":
    main()

"""When Triton's kernels do the sums of PyTorch tensors, and calling them for any batch shape."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from smmd import arrays
from smmd.pairs import plan
from smmd.radial import Radial

#: The first release that has what the kernels use.
OLDEST_TRITON = (3, 3)
#: Types whose sums the kernels take; they compute in float32, so float64 data go elsewhere.
TYPES = ("torch.float32", "torch.float16", "torch.bfloat16")


def serves(z: Tensor) -> bool:
    """Whether Triton's kernels sum over pairs of z."""
    return not why_not(z)


def why_not(z: Tensor) -> str:
    """Why Triton's kernels do not sum over pairs of z; empty if they do."""
    return _why_not(z.device.type, z.device.index or 0, str(z.dtype))


@arrays.constant_under_compile
def _why_not(device: str, index: int, dtype: str) -> str:
    asked = plan.forced()
    if asked == "triton":
        return _unavailable(device, index, interpreter=True)
    if asked in ("dense", "difference"):
        return f"{asked!r} was asked for"
    if device != "cuda":
        return "the tensor is not on an NVIDIA GPU"
    if dtype not in TYPES:
        return f"{dtype} data: the kernels compute in float32"
    return _unavailable(device, index, interpreter=False)


@lru_cache(maxsize=16)
def _unavailable(device: str, index: int, interpreter: bool) -> str:
    try:
        import triton
    except ImportError:
        return "Triton is not installed"
    version = tuple(int(v) for v in triton.__version__.split(".")[:2])
    if version < OLDEST_TRITON:
        return f"Triton {triton.__version__} is older than 3.3"
    if device != "cuda":
        from smmd.pairs.triton_launch import INTERPRETED

        if interpreter and INTERPRETED:
            return ""
        return "kernels run on a CPU only in Triton's interpreter (TRITON_INTERPRET=1)"
    if torch.version.cuda is None or torch.cuda.get_device_capability(index) < (8, 0):
        return "the GPU is older than NVIDIA's compute capability 8.0, or not NVIDIA's"
    return ""


def pair_sum(z: Tensor, radial: Radial, *, gradient: bool) -> tuple[Tensor, Tensor | None] | None:
    """Σ_{i≠j} f(r²_ij) in float64 and its gradient in the type of z.

    None where the kernels have no room for f.
    """
    return _sums(z, z, radial, 0, symmetric=True, gradient=gradient)


def row_sum(
    rows: Tensor, cols: Tensor, start: int, radial: Radial, *, gradient: bool
) -> tuple[Tensor, Tensor | None] | None:
    """Σ_ij f(‖rows_i − cols_j‖²) over j ≠ start + i, and twice its gradient in ``rows``."""
    return _sums(rows, cols, radial, start, symmetric=False, gradient=gradient)


def _sums(
    rows: Tensor, cols: Tensor, radial: Radial, start: int, *, symmetric: bool, gradient: bool
) -> tuple[Tensor, Tensor | None] | None:
    from smmd.pairs import triton

    batch = rows.shape[:-2]
    x = _stacked(rows)
    y = x if symmetric else _stacked(cols)
    if not x.numel() or not y.numel():
        value = torch.zeros(batch, dtype=torch.float64, device=rows.device)
        return value, torch.zeros_like(rows) if gradient else None
    found = triton.radial_sums(
        x, y, radial, row_start=start, symmetric=symmetric, gradient=gradient
    )
    if found is None:
        return None
    value, slope = found
    return value.reshape(batch), None if slope is None else slope.reshape(rows.shape).to(rows.dtype)


def _stacked(x: Tensor) -> Tensor:
    """(…, n, d) as contiguous (B, n, d), in a type that kernels read."""
    x = x.detach().reshape(-1, *x.shape[-2:]).contiguous()
    return x if str(x.dtype) in TYPES else x.float()


class Statistic:
    """constant − 2 mean cross(‖z_i‖²) + mean pair(r²_ij) for samples of one shape, ready to run."""

    def __init__(self, ready: Any, device: torch.device, narrowed: bool) -> None:
        self.ready, self.index, self.narrowed = ready, device.index, narrowed

    def __call__(self, z: Tensor, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """The statistic of z in its type, and its gradient in float32."""
        if self.index is not None and self.index != torch.cuda.current_device():
            with torch.cuda.device(self.index):
                return self(z, gradient)
        x = z if z.is_contiguous() else z.detach().contiguous()
        found: tuple[Tensor, Tensor | None]
        if not self.narrowed:
            found = self.ready(x, gradient)
            return found
        value, slope = self.ready(x.detach().float(), gradient)
        return value.to(z.dtype), slope


@lru_cache(maxsize=4096)
def statistic(
    pair: Radial, cross: Radial, constant: float, unbiased: bool,
    shape: torch.Size, dtype: torch.dtype, device: torch.device,
) -> Statistic | None:  # fmt: skip
    """What computes it; None where the kernels have no room for it."""
    from smmd.pairs import triton

    if 0 in shape:
        return None
    n, d = shape[-2:]
    prepared = triton.prepare(pair, cross, constant, n, d, device, unbiased=unbiased)
    if prepared is None:
        return None
    narrowed = str(dtype) not in TYPES
    ready = triton.ready(prepared, shape, torch.float32 if narrowed else dtype, device)
    return Statistic(ready, device, narrowed)

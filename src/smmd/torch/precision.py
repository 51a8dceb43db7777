"""In which type codes are computed with: at least float32, under autocast too."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

#: Asked once: older compilers cannot trace the question.
_HAVE_AUTOCAST = frozenset(
    device for device in ("cpu", "cuda", "mps", "xpu") if torch.amp.is_autocast_available(device)
)


def at_least_single(x: Tensor) -> Tensor:
    """Half precision as float32; float64 stays."""
    return x.float() if x.is_floating_point() and x.dtype.itemsize < 4 else x


def outside_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Where operations on x keep its type.

    Entered only under autocast: that takes longer than the kernels of a small batch.
    """
    device = x.device.type
    if device in _HAVE_AUTOCAST and torch.is_autocast_enabled(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def is_recomputed() -> bool:
    """Whether activation checkpointing runs a forward pass again, inside a backward pass."""
    if torch.compiler.is_compiling():
        return False
    return bool(torch._C._current_graph_task_id() != -1)

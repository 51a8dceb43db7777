"""smmd in PyTorch training: the loss, code normalization, and monitors.

    loss = reconstruction + 0.01 * smmd.torch.SMMDLoss()(z)

``BStatistic`` and ``EStatistic`` need torchmetrics, ``LatentMonitor`` needs lightning; they are
imported when first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from smmd.errors import MissingExtra

try:
    import torch as _torch  # noqa: F401
except ImportError as error:  # pragma: no cover - the tests run where torch is
    raise MissingExtra("smmd.torch", "torch", "torch") from error

from smmd.torch.codenorm import CodeNorm, GaussianCodeNorm
from smmd.torch.loss import SMMDLoss
from smmd.torch.slices import SlicedLoss

if TYPE_CHECKING:
    from smmd.torch.lightning import LatentMonitor
    from smmd.torch.metrics import BStatistic, EStatistic

__all__ = [
    "BStatistic",
    "CodeNorm",
    "EStatistic",
    "GaussianCodeNorm",
    "LatentMonitor",
    "SMMDLoss",
    "SlicedLoss",
]

_LATER = {
    "BStatistic": "smmd.torch.metrics",
    "EStatistic": "smmd.torch.metrics",
    "LatentMonitor": "smmd.torch.lightning",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'smmd.torch' has no attribute {name!r}")

"""The B- and E-statistic as torchmetrics metrics, reduced across ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd import monitor
from smmd.errors import MissingExtra

try:
    from torchmetrics import Metric
except ImportError as error:  # pragma: no cover - the tests run where torchmetrics is
    raise MissingExtra("smmd.torch.BStatistic and EStatistic", "metrics", "torchmetrics") from error


class _Monitored(Metric):  # type: ignore[misc]
    """A metric with the names of the plain statistic."""

    higher_is_better = False
    is_differentiable = False
    # A moving average is not the sum of its batches' own, which torchmetrics would else make of it
    # where a metric is called rather than updated.
    full_state_update = True

    def __init__(
        self, *, batch: monitor.Batch | None = None, shared: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.batch, self.shared = batch, shared

    def _plain(self) -> Any:
        raise NotImplementedError

    def statistic(self) -> Any:
        """The plain ``smmd.BStatistic`` or ``smmd.EStatistic`` of all ranks; reads the device.

        Every rank must call it, like ``compute``.
        """
        if self._is_synced:
            return self._plain()
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=True
        ):
            return self._plain()

    @property
    def value(self) -> float:
        """The statistic of all ranks as a float."""
        return float(self.statistic().value)

    def band(self, sigmas: float = 3) -> tuple[float, float]:
        """Where it lies under normality."""
        low, high = self.statistic().band(sigmas)
        return low, high

    @property
    def converged(self) -> bool:
        """Whether it lies in the three-sigma band."""
        return bool(self.statistic().converged)

    def verdict(self) -> str:
        """What it says about the codes, in words."""
        return str(self.statistic().verdict())


class BStatistic(_Monitored):
    """The mean of SMMD² over batches, of all ranks; see ``smmd.BStatistic``.

    ``update`` takes one batch's SMMD², or several in a tensor, and does not wait for the device.
    Each rank's values are batches of their own unless ``shared=True``, which says that all ranks
    update with the same value, as that of a loss with ``group=`` is.

    >>> import torch, smmd.torch
    >>> metric = smmd.torch.BStatistic()
    >>> metric.update(torch.tensor([0.5, -1.0, 0.8, 0.1]))
    >>> round(metric.compute().item(), 3), metric.band(), metric.converged
    (0.1, (-1.5, 1.5), True)
    """

    total: Tensor
    count: Tensor

    def __init__(
        self, *, batch: monitor.Batch | None = None, shared: bool = False, **options: Any
    ) -> None:
        super().__init__(batch=batch, shared=shared, **options)
        how = "mean" if shared else "sum"
        self.add_state("total", torch.zeros(()), dist_reduce_fx=how)
        # A float, so that a mean over ranks is one, too.
        self.add_state("count", torch.zeros(()), dist_reduce_fx=how)

    def update(self, value: Tensor | float) -> None:
        """Add the SMMD² of one batch or of several."""
        values = torch.as_tensor(value, device=self.total.device).detach()
        self.total += values.sum()
        self.count += values.numel()

    def compute(self) -> Tensor:
        """The mean so far."""
        return self.total / self.count

    def _plain(self) -> monitor.BStatistic:
        return monitor.BStatistic(round(float(self.count)), float(self.total), batch=self.batch)


class EStatistic(_Monitored):
    """The exponential moving average of SMMD², the mean over ranks; see ``smmd.EStatistic``.

    With the values of ranks being batches of their own the band is narrower by √ranks; ``shared``
    is as in ``BStatistic``.
    """

    average: Tensor
    count: Tensor
    ranks: Tensor

    def __init__(
        self,
        momentum: float = 0.99,
        *,
        batch: monitor.Batch | None = None,
        shared: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(batch=batch, shared=shared, **options)
        self.momentum = monitor.EStatistic(momentum).momentum
        self.add_state("average", torch.zeros(()), dist_reduce_fx="mean")
        self.add_state("count", torch.zeros(()), dist_reduce_fx="mean")
        self.add_state("ranks", torch.ones(()), dist_reduce_fx="mean" if shared else "sum")

    def update(self, value: Tensor | float) -> None:
        """Add one batch's SMMD², or several in their order."""
        values = torch.as_tensor(value, device=self.average.device).detach()
        for number in values.reshape(-1).unbind():
            self.average.lerp_(number.to(self.average.dtype), 1.0 - self.momentum)
        self.count += values.numel()

    def compute(self) -> Tensor:
        """The average so far."""
        return self.average.clone()

    def _plain(self) -> monitor.EStatistic:
        return monitor.EStatistic(
            self.momentum,
            round(float(self.count)),
            float(self.average),
            batch=self.batch,
            parallel=round(float(self.ranks)),
        )

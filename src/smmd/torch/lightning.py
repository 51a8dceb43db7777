"""SMMD² of the codes in a Lightning run, logged beside everything else."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from smmd import measure, monitor
from smmd.errors import MissingExtra
from smmd.kernels import Kernel, chosen
from smmd.torch.codenorm import CodeNorm, GaussianCodeNorm
from smmd.torch.layout import Layout, check_layout, to_rows
from smmd.torch.metrics import BStatistic, EStatistic
from smmd.torch.precision import at_least_single, outside_autocast


def _callbacks() -> tuple[type, ...]:
    """``Callback`` of each Lightning package there is: a Trainer asks for that of its own."""
    places = {"lightning": "lightning.pytorch", "pytorch_lightning": "pytorch_lightning"}
    found = tuple(import_module(p).Callback for n, p in places.items() if find_spec(n))
    if not found:
        raise MissingExtra("smmd.torch.LatentMonitor", "lightning", "lightning")
    return found


class LatentMonitor(*_callbacks()):  # type: ignore[misc]
    """Follow the distribution of the codes: the E-statistic in training, B in validation.

    Where codes come from is one of two things:

    module : str
        The name of the submodule whose output they are, as in ``named_modules()``, such as
        ``"norm"`` for a ``CodeNorm``.
    output : str
        The key under which ``training_step`` and ``validation_step`` return them beside ``"loss"``.

    Logged, with the flat names that every logger takes (TensorBoard, W&B, CSV, ...):
    ``smmd/e``, ``smmd/e_low``, ``smmd/e_high``, ``smmd/e_converged`` every ``every`` training
    batches and ``smmd/val_b``, ``smmd/val_b_low``, ... for each validation.  ``train`` and
    ``validation`` hold the statistics themselves, ``verdicts()`` says what they mean.

    Codes that are normalized by their own batch in training lie below those of the validation,
    which population statistics normalize, although nothing is overfitted.  ``code_normalized`` says
    that they are; by default it is whether the model has a ``CodeNorm`` layer.  The training band
    is then that of such codes.  (A statistic of the rows of all ranks, ``CodeNorm(group=...)``,
    hardly moves one rank's rows: give False for many ranks.)

    Parameters
    ----------
    scale, adaptive, kernel, layout
        As in ``SMMDLoss``.
    momentum : float
        Of the E-statistic.
    every : int
        How many training batches there are between two logs of it.  Its value is taken from all.
    """

    def __init__(
        self,
        module: str | None = None,
        *,
        output: str | None = None,
        scale: float = 1 / 8,
        adaptive: bool = False,
        kernel: Kernel | None = None,
        layout: Layout = "rows",
        momentum: float = 0.99,
        every: int = 50,
        code_normalized: bool | None = None,
        prefix: str = "smmd/",
    ) -> None:
        super().__init__()
        if (module is None) == (output is None):
            raise ValueError(
                "give module='name of the layer whose output the codes are' or "
                f"output='their key in what steps return', got {module!r} and {output!r}"
            )
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every!r}")
        check_layout(layout)
        self.module, self.output, self.layout, self.every = module, output, layout, every
        self.kernel, self.code_normalized = chosen(scale, adaptive, kernel), code_normalized
        self.prefix = prefix
        self.train, self.validation = EStatistic(momentum), BStatistic()
        self._caught: Tensor | None = None
        self._hook: Any = None
        self._own = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Listen to the module whose output the codes are."""
        if self.code_normalized is None:
            kinds = (CodeNorm, GaussianCodeNorm)
            self._own = any(isinstance(m, kinds) for m in pl_module.modules())
        else:
            self._own = self.code_normalized
        if self.module is not None and self._hook is None:
            self._hook = _submodule(pl_module, self.module).register_forward_hook(self._catch)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Stop listening."""
        if self._hook is not None:
            self._hook.remove()
        self._hook = self._caught = None

    def _catch(self, module: nn.Module, args: Any, output: Any) -> None:
        z = output[0] if isinstance(output, tuple) else output
        self._caught = z.detach()

    def _codes(self, outputs: Any) -> Tensor:
        if self.output is None:
            z, self._caught = self._caught, None
            if z is None:
                raise RuntimeError(f"the module {self.module!r} was not called in this step")
            return z
        if not isinstance(outputs, Mapping) or self.output not in outputs:
            has = sorted(outputs) if isinstance(outputs, Mapping) else type(outputs).__name__
            raise KeyError(
                f"output={self.output!r}: steps must return a dict with the codes under this key, "
                f"got {has}"
            )
        z = outputs[self.output]
        assert isinstance(z, Tensor)
        return z.detach()

    @torch.no_grad()
    def _add(self, metric: EStatistic | BStatistic, outputs: Any, device: Any, own: bool) -> None:
        rows, _ = to_rows(at_least_single(self._codes(outputs)), self.layout)
        n, d = rows.shape[-2:]
        if n < 2:
            return  # a last batch of one: SMMD² needs two
        if metric.batch is None:
            metric.batch = monitor.Batch(n, d, self.kernel, "diagonal" if own else "standard")
        with outside_autocast(rows):
            metric.to(device).update(measure.smmd(rows, kernel=self.kernel).reshape(-1))

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Take in one batch."""
        self._add(self.train, outputs, pl_module.device, self._own)
        if (batch_idx + 1) % self.every == 0 or trainer.is_last_batch:
            pl_module.log_dict(self.train.statistic().as_dict(self.prefix))

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """A validation's batches count for themselves."""
        self.validation.reset()

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Take in one batch."""
        self._add(self.validation, outputs, pl_module.device, False)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the B-statistic of all ranks' batches."""
        statistic = self.validation.statistic()
        if statistic.count:
            pl_module.log_dict(statistic.as_dict(f"{self.prefix}val_"))

    def verdicts(self) -> dict[str, str]:
        """Both statistics in words."""
        return {"train": self.train.verdict(), "validation": self.validation.verdict()}

    def state_dict(self) -> dict[str, Any]:
        """The moving average goes on where a checkpoint was written."""
        self.train.persistent(True)
        return {"train": self.train.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        self.train.persistent(True)
        self.train.load_state_dict(state_dict["train"])


def _submodule(pl_module: nn.Module, name: str) -> nn.Module:
    try:
        return pl_module.get_submodule(name)
    except AttributeError as error:
        known = ", ".join(repr(n) for n, _ in pl_module.named_modules() if n)
        raise ValueError(f"module={name!r} is not a submodule; there are {known}") from error

"""SMMD² as a metric, and a callback that follows the codes."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from smmd import measure, monitor
from smmd.keras.backend import kernel_config, kernel_from_config, smmd
from smmd.keras.layers import CodeNorm, SMMDPenalty
from smmd.kernels import Kernel, chosen


@keras.saving.register_keras_serializable(package="smmd")
class SMMD(keras.metrics.Metric):  # type: ignore[misc]
    """The B-statistic: the mean of SMMD² over batches of codes.

    Give it to the output that holds the codes, ``metrics={"code": smmd.keras.SMMD()}``; targets
    and sample weights are not looked at.  ``statistic()`` is the value with its band.
    """

    def __init__(
        self,
        *,
        scale: float = 1 / 8,
        adaptive: bool = False,
        kernel: Kernel | dict[str, Any] | None = None,
        name: str = "smmd",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        given = None if kernel is None else kernel_from_config(kernel)
        self.kernel = chosen(scale, adaptive, given)
        self.total = self.add_variable((), "zeros", name="total")
        self.count = self.add_variable((), "zeros", name="count")

    def update_state(self, y_true: Any, y_pred: Any = None, sample_weight: Any = None) -> None:
        """Add one batch: the codes are the last of the tensors given."""
        codes = ops.convert_to_tensor(y_true if y_pred is None else y_pred)
        value = ops.stop_gradient(smmd(codes, self.kernel))
        self.total.assign(self.total + ops.cast(value, self.total.dtype))
        self.count.assign(self.count + 1.0)

    def result(self) -> Any:
        """The mean so far, 0 before the first batch."""
        return ops.divide_no_nan(self.total, self.count)

    def statistic(self, batch: monitor.Batch | None = None) -> monitor.BStatistic:
        """The plain ``smmd.BStatistic``: value, bands and verdict."""
        count, total = (float(ops.convert_to_numpy(v)) for v in (self.count, self.total))
        return monitor.BStatistic(round(count), total, batch=batch)

    def get_config(self) -> dict[str, Any]:
        """What the metric is made of."""
        own = {"kernel": kernel_config(self.kernel), "name": self.name, "dtype": self.dtype}
        return own


class LatentMonitor(keras.callbacks.Callback):  # type: ignore[misc]
    """Log the E-statistic of training and the B-statistic of validation at the end of each epoch.

    Flat floats go into ``logs``, so that ``History``, ``CSVLogger`` and ``TensorBoard`` (after it
    in the list of callbacks) have them: ``smmd_e``, ``smmd_e_low``, ``smmd_e_high``,
    ``smmd_e_converged``, and with ``encoder`` and ``x`` ``val_smmd_b``, ``val_smmd_b_low``, ....
    ``train`` and ``validation`` hold the statistics, whose ``verdict()`` says what they mean.

    Where the model has a ``CodeNorm`` layer the training band is that of codes normalized by their
    own batch, which lies below that of the validation.

    Parameters
    ----------
    encoder, x : model and array, optional
        From data to codes, and validation data.  Whole batches of ``batch_size`` rows are used.
    batch_size : int
    scale, adaptive, kernel
        As in ``smmd.smmd``, for the validation; the penalty layer has its own.
    """

    def __init__(
        self,
        encoder: Any = None,
        x: Any = None,
        *,
        batch_size: int = 128,
        scale: float = 1 / 8,
        adaptive: bool = False,
        kernel: Kernel | None = None,
    ) -> None:
        super().__init__()
        if (encoder is None) != (x is None):
            raise ValueError("give encoder and x together: the codes of x are what is measured")
        if x is not None and len(x) < batch_size:
            raise ValueError(f"x has {len(x)} rows, but a batch has batch_size={batch_size}")
        self.encoder, self.x, self.batch_size = encoder, x, batch_size
        self.kernel = chosen(scale, adaptive, kernel)
        self.train: monitor.EStatistic | None = None
        self.validation: monitor.BStatistic | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Measure and log."""
        logs = {} if logs is None else logs
        layers = self.model._flatten_layers()
        penalty = next((v for v in layers if isinstance(v, SMMDPenalty) and v.built), None)
        if penalty is not None:
            self.train = self._training(penalty)
            logs.update(self.train.as_dict("smmd_"))
        if self.encoder is not None:
            self.validation = self._validation()
            logs.update(self.validation.as_dict("val_smmd_"))

    def _training(self, penalty: SMMDPenalty) -> monitor.EStatistic:
        state = (penalty.average, penalty.batches, penalty.rows)
        average, batches, rows = (float(ops.convert_to_numpy(v)) for v in state)
        own = any(isinstance(v, CodeNorm) for v in self.model._flatten_layers())
        null: Any = "diagonal" if own else "standard"
        batch = monitor.Batch(round(rows), penalty.d, penalty.kernel, null) if rows > 1 else None
        return monitor.EStatistic(penalty.momentum, round(batches), average, batch=batch)

    def _encode(self, x: Any) -> np.ndarray:
        # A model made with ``inputs=[image]`` wants, and gives, a list of one.
        listed = isinstance(getattr(self.encoder, "_inputs_struct", None), list)
        codes = self.encoder([x] if listed else x, training=False)
        codes = codes[0] if isinstance(codes, list | tuple) else codes
        return np.asarray(ops.convert_to_numpy(codes))

    def _validation(self) -> monitor.BStatistic:
        statistic = monitor.BStatistic()
        size = self.batch_size
        for start in range(0, len(self.x) - size + 1, size):
            codes = self._encode(self.x[start : start + size])
            statistic.update(measure.smmd(codes, kernel=self.kernel))
            statistic.batch = statistic.batch or monitor.Batch(size, codes.shape[-1], self.kernel)
        return statistic

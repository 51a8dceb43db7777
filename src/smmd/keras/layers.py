"""Code normalization and the penalty as layers."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from smmd.keras.backend import (
    at_least_single,
    check_codes,
    kernel_config,
    kernel_from_config,
    smmd,
)
from smmd.kernels import Kernel, chosen
from smmd.samples import moments

_register = keras.saving.register_keras_serializable(package="smmd")


@_register
class CodeNorm(keras.layers.Layer):  # type: ignore[misc]
    """Zero mean and unit variance of each code dimension (paper, section 3.2).

    In training by the batch's mean and n−1 standard deviation, in evaluation by their moving
    averages; there is no affine part.  ``BatchNormalization(center=False, scale=False)`` differs:
    it divides by n, and adds ε = 0.001 to the variance.

    Because a training batch is normalized by its own statistics, its SMMD² lies below that of the
    validation: that is no overfitting.

    Parameters
    ----------
    momentum : float
        The weight of the past in the moving averages, as in ``BatchNormalization``.
    epsilon : float
        The smallest variance divided by; it is a floor and not added.
    """

    def __init__(self, momentum: float = 0.99, epsilon: float = 1e-10, **options: Any) -> None:
        super().__init__(**options)
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum must be in [0, 1), got {momentum!r}")
        if not epsilon > 0.0:
            raise ValueError(f"epsilon must be positive, got {epsilon!r}")
        self.momentum, self.epsilon = float(momentum), float(epsilon)
        self.autocast = False

    def build(self, input_shape: Any) -> None:
        """Make the moving averages."""
        check_codes(input_shape, "CodeNorm")
        shape = (input_shape[-1],)
        self.moving_mean = self.add_weight(
            name="moving_mean", shape=shape, initializer="zeros", trainable=False, autocast=False
        )
        self.moving_variance = self.add_weight(
            name="moving_variance", shape=shape, initializer="ones", trainable=False, autocast=False
        )
        self.built = True

    def call(self, z: Any, training: bool = False) -> Any:
        """Normalize codes (n, d)."""
        x = at_least_single(z)
        if training:
            n = self._count(x)
            mean, centred, squares = moments(x, xp=ops, count=n)
            variance = squares / (n - 1)
            self._track(mean, variance)
        else:
            centred = x - ops.cast(self.moving_mean, x.dtype)
            variance = ops.cast(self.moving_variance, x.dtype)
        scaled = centred * ops.rsqrt(ops.maximum(variance, self.epsilon))
        return ops.cast(scaled, self.compute_dtype)

    def _count(self, x: Any) -> Any:
        n = ops.shape(x)[0]
        if not isinstance(n, int):
            return ops.cast(n, x.dtype)
        if n < 2:
            raise ValueError(
                f"codes have n={n} rows, but in training the batch's own variance needs at least "
                "2: leave out the last batch, or call with training=False"
            )
        return n

    def _track(self, mean: Any, variance: Any) -> None:
        for moving, fresh in ((self.moving_mean, mean), (self.moving_variance, variance)):
            new = ops.cast(ops.reshape(ops.stop_gradient(fresh), (-1,)), moving.dtype)
            moving.assign(moving + (1.0 - self.momentum) * (new - moving))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """As the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """What the layer is made of."""
        own = {"momentum": self.momentum, "epsilon": self.epsilon}
        return {**super().get_config(), **own}


@_register
class SMMDPenalty(keras.layers.Layer):  # type: ignore[misc]
    """Pass codes through and add ``weight``·SMMD² to the model's loss.

    Added as it is, not divided by the batch size as an activity regularizer would be.  Call it with
    codes (n, d), and on the torch and JAX backends for a random encoder also with their variances.
    The E-statistic of the training batches is kept in ``average`` and ``batches``;
    ``LatentMonitor`` logs it.

    Parameters
    ----------
    weight : float
        λ.
    scale, adaptive, kernel
        As in ``smmd.smmd``.
    momentum : float
        Of the E-statistic.
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        scale: float = 1 / 8,
        adaptive: bool = False,
        kernel: Kernel | dict[str, Any] | None = None,
        momentum: float = 0.99,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        given = None if kernel is None else kernel_from_config(kernel)
        self.weight, self.kernel = float(weight), chosen(scale, adaptive, given)
        self.momentum = float(momentum)
        self.autocast = False

    def build(self, z_shape: Any, var_shape: Any = None) -> None:
        """Make the E-statistic's state."""
        z_shape = _only(z_shape)
        check_codes(z_shape, "SMMDPenalty")
        self.d = z_shape[-1]
        self.average, self.batches, self.rows = (
            self.add_weight(
                name=name, shape=(), initializer="zeros", trainable=False, autocast=False
            )
            for name in ("average", "batches", "rows")
        )
        self.built = True

    def call(self, z: Any, var: Any = None, training: bool = False) -> Any:
        """Add the penalty; return ``z``."""
        z = _only(z)
        value = smmd(z, self.kernel, var)
        self.add_loss(self.weight * value)
        if training:
            fresh = ops.cast(ops.stop_gradient(value), self.average.dtype)
            rows = ops.cast(ops.shape(z)[0], self.rows.dtype)
            self.average.assign(self.momentum * self.average + (1.0 - self.momentum) * fresh)
            self.batches.assign(self.batches + 1.0)
            self.rows.assign(ops.maximum(self.rows, rows))
        return z

    def compute_output_shape(self, z_shape: Any, var_shape: Any = None) -> Any:
        """As the codes."""
        return _only(z_shape)

    def get_config(self) -> dict[str, Any]:
        """What the layer is made of."""
        own = {"weight": self.weight, "momentum": self.momentum}
        return {**super().get_config(), **own, "kernel": kernel_config(self.kernel)}


def _only(codes: Any) -> Any:
    """A model made with ``outputs=[codes]`` gives a list of one tensor, and of one shape."""
    return codes[0] if isinstance(codes, list | tuple) and len(codes) == 1 else codes

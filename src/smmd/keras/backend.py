"""SMMD² of a Keras tensor, and a kernel as part of a layer's config."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import numpy as np

from smmd import kernels, measure
from smmd.arrays import Array
from smmd.kernels import Kernel


def smmd(z: Any, kernel: Kernel, var: Any = None) -> Any:
    """SMMD² of codes (n, d) as a float32 (or float64) tensor of the backend."""
    z = at_least_single(z)
    if keras.backend.backend() != "tensorflow":
        return measure.smmd(z, kernel=kernel, var=None if var is None else at_least_single(var))
    if var is not None:
        raise NotImplementedError(
            "random encoders are not available on Keras's TensorFlow backend: leave var out, or "
            "set KERAS_BACKEND to torch or jax"
        )
    return _of_tensorflow(z, kernel)


def at_least_single(x: Any) -> Any:
    """Half precision as float32; float64 stays."""
    half = keras.backend.standardize_dtype(x.dtype) in ("float16", "bfloat16")
    return keras.ops.cast(x, "float32") if half else x


def check_codes(shape: Any, name: str) -> None:
    """Refuse what is not (n, d)."""
    if len(shape) != 2:
        raise ValueError(
            f"{name} takes codes of shape (n, d), got {tuple(shape)}: put keras.layers.Flatten "
            "before it"
        )


def _of_tensorflow(z: Any, kernel: Kernel) -> Any:
    """By NumPy, which needs neither a static n nor TensorFlow formulas; gradient included."""
    import tensorflow as tf

    def run(codes: np.ndarray) -> tuple[Array, Array]:
        value, slope = measure.value_and_grad(codes, kernel)
        return np.asarray(value, codes.dtype), np.asarray(slope, codes.dtype)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def value(codes: Any) -> tuple[Any, Any]:
        found, slope = tf.numpy_function(run, [codes], [codes.dtype, codes.dtype])
        found.set_shape(())
        slope.set_shape(codes.shape)
        return found, lambda upstream: upstream * slope

    return value(z)


def kernel_config(kernel: Kernel) -> dict[str, Any]:
    """A kernel as plain values."""
    name = type(kernel).__name__
    if name not in kernels.NAMED:
        raise TypeError(f"only smmd's own kernels can be saved, got {kernel!r}")
    return {"name": name, **dataclasses.asdict(kernel)}  # type: ignore[call-overload]


def kernel_from_config(config: Any) -> Kernel:
    """The inverse of ``kernel_config``; a kernel itself passes through."""
    if not isinstance(config, dict):
        return kernels.as_kernel(config)
    fields = dict(config)
    name = fields.pop("name", None)
    if name not in kernels.NAMED:
        raise ValueError(f"kernel must be one of {', '.join(kernels.NAMED)}, got {name!r}")
    made: Kernel = kernels.NAMED[name](**fields)
    return made

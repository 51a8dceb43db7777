"""The one place that knows which array frameworks exist.

A framework is recognized by the argument's type and is never imported unless the user already
imported it.  Everything above this file is written once, against the array API.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Namespace = Any


def kind(x: Array) -> str:
    """``"numpy"``, ``"torch"``, ``"jax"``, ``"cupy"``, or ``""`` for anything else."""
    root = type(x).__module__.partition(".")[0]
    if root in ("torch", "cupy", "numpy"):
        return root
    if root in ("jax", "jaxlib"):
        return "jax"
    for name, base in (("torch", "Tensor"), ("jax", "Array"), ("numpy", "ndarray")):
        module = sys.modules.get(name)
        if module is not None and isinstance(x, getattr(module, base)):
            return name
    return ""


def namespace(x: Array) -> Namespace:
    """The array-API namespace of ``x``."""
    name = kind(x)
    if name == "torch":
        import array_api_compat.torch as xp
    elif name == "jax":
        import jax.numpy as xp
    elif name == "cupy":  # pragma: no cover - needs a GPU
        import array_api_compat.cupy as xp
    else:
        import numpy as xp
    return xp


def device(x: Array) -> dict[str, Any]:
    """Keyword arguments that create another array beside ``x``."""
    return {"device": x.device} if kind(x) in ("torch", "cupy") else {}


def work_dtype(x: Array) -> Any:
    """The type that sums and exponentials are computed in: float64 wherever there is one."""
    xp = namespace(x)
    if kind(x) == "jax":
        return xp.asarray(0.0).dtype if xp.asarray(0.0).dtype == xp.float64 else xp.float32
    if kind(x) == "torch" and x.device.type == "mps":  # pragma: no cover - needs a Mac
        return xp.float32
    return xp.float64


def is_concrete(x: Array) -> bool:
    """Whether values may be read: not while tracing, and not where reading stalls a GPU."""
    name = kind(x)
    if name == "torch":
        torch = sys.modules["torch"]
        return (
            x.device.type == "cpu"
            and not torch.compiler.is_compiling()
            and not is_transformed(x)
            and type(x).__name__ != "FakeTensor"
        )
    if name == "jax":
        jax = sys.modules["jax"]
        if isinstance(x, jax.core.Tracer):
            return False
        # Inside jit, operations on constants are traced, too.
        return not isinstance(jax.numpy.zeros(()), jax.core.Tracer)
    return name == "numpy"


def without_gradient(x: Array) -> Array:
    """``x`` as a constant to differentiation."""
    if kind(x) == "torch":
        return x.detach()
    if kind(x) == "jax":
        return sys.modules["jax"].lax.stop_gradient(x)
    return x


def is_compiling(x: Array) -> bool:
    """Whether ``torch.compile`` is tracing."""
    return kind(x) == "torch" and bool(sys.modules["torch"].compiler.is_compiling())


def is_transformed(x: Array) -> bool:
    """Whether ``x`` is a tensor inside ``torch.func``'s grad, vmap or jvp."""
    if kind(x) != "torch" or is_compiling(x):
        return False
    return bool(sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(x))


def constant_under_compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``torch.compile`` call ``function`` while tracing and keep its result.

    This is the mark that ``torch.compiler.assume_constant_result`` sets, set without importing
    PyTorch.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def saturating_cast(x: Array, dtype: Any) -> Array:
    """Cast to ``dtype``; what is beyond its range becomes its largest number, not infinity."""
    xp = namespace(x)
    if x.dtype == dtype:
        return x
    largest = float(xp.finfo(dtype).max)
    return astype(xp.clip(x, -largest, largest), dtype)


def astype(x: Array, dtype: Any) -> Array:
    """``x`` as ``dtype``, without a copy where it is so already."""
    if x.dtype == dtype:
        return x
    if kind(x) == "torch":
        return x.to(dtype)
    return x.astype(dtype)


def to_numpy(x: Array, why: str) -> np.ndarray:
    """The values of ``x`` on the host; ``why`` begins the error if it is being traced."""
    if kind(x) == "jax" and isinstance(x, sys.modules["jax"].core.Tracer):
        raise TypeError(f"{why}, which reads values: call it outside jit, grad and vmap")
    if kind(x) == "torch":
        return np.asarray(x.detach().cpu().numpy())
    return np.asarray(x.get() if kind(x) == "cupy" else x)


def like(value: Any, x: Array, dtype: Any) -> Array:
    """A small constant as an array of the framework, device and type of ``x``."""
    xp = namespace(x)
    return xp.asarray(value, dtype=dtype, **device(x))

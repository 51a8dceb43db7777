"""A stand-in for CuPy, which needs a GPU: NumPy behind an array type of its own.

As with CuPy's arrays, nothing turns one into a NumPy array by itself, NumPy's functions do not take
one, and functions of the namespace, ``asarray`` aside, take no NumPy arrays.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np


def _inside(value: Any) -> Any:
    """The NumPy array behind a stand-in; a NumPy array itself is refused."""
    if isinstance(value, ndarray):
        return value._data
    if isinstance(value, np.ndarray):
        raise TypeError("a NumPy array among CuPy arrays")
    if isinstance(value, list | tuple):
        return type(value)(_inside(v) for v in value)
    return value


def _outside(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return ndarray(np.asarray(value))
    if isinstance(value, tuple):
        return tuple(_outside(v) for v in value)
    return value


class ndarray:  # noqa: N801 - CuPy's name
    """What CuPy's array can do that smmd asks of it."""

    __array_ufunc__ = None
    __module__ = "cupy"

    def __init__(self, data: np.ndarray) -> None:
        self._data = data

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def get(self) -> np.ndarray:
        return self._data

    @property
    def device(self) -> str:
        return "device 0"

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._data, name)
        return _wrapped(found) if callable(found) else found

    def __getitem__(self, key: Any) -> ndarray:
        return ndarray(np.asarray(self._data[_inside(key)]))

    def __bool__(self) -> bool:
        return bool(self._data)

    def __float__(self) -> float:
        return float(self._data)


def _wrapped(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.pop("device", "device 0") != "device 0":
            raise TypeError("another device")
        return _outside(function(*_inside(args), **{k: _inside(v) for k, v in kwargs.items()}))

    return call


def _operators() -> None:
    for name in (
        "add", "sub", "mul", "truediv", "pow", "matmul", "mod", "lt", "le", "gt", "ge", "eq", "ne",
        "neg", "abs", "invert", "and", "or",
    ):  # fmt: skip
        for side in ("", "r"):
            method = f"__{side}{name}__"
            if hasattr(np.ndarray, method):
                setattr(ndarray, method, _method(method))


def _method(name: str) -> Any:
    def call(self: ndarray, *args: Any) -> Any:
        return _outside(getattr(self._data, name)(*_inside(args)))

    return call


_operators()


class _Namespace(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name == "asarray":  # the one way in, as in CuPy
            return lambda x, dtype=None, device=None: ndarray(
                np.array(getattr(x, "_data", x), dtype)
            )
        if name == "linalg":
            return types.SimpleNamespace(eigh=_wrapped(np.linalg.eigh))
        plain = isinstance(found, type) or not callable(found) or name == "finfo"
        return found if plain else _wrapped(found)


def install(monkeypatch: Any) -> None:
    """Until the test ends, the stand-in is what ``array_api_compat.cupy`` names."""
    import array_api_compat

    module = _Namespace("array_api_compat.cupy")
    monkeypatch.setitem(sys.modules, "array_api_compat.cupy", module)
    monkeypatch.setattr(array_api_compat, "cupy", module, raising=False)

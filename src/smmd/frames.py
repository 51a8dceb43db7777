"""Tables in, numbers and column names out: data frames of pandas, polars and pyarrow (through
narwhals, and only if the argument is one), and the arrays that ``arrays.py`` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from smmd import arrays, samples
from smmd.errors import MissingExtra

_FRAME_LIBRARIES = ("pandas", "polars", "pyarrow", "narwhals", "modin", "cudf")


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers in float64 on the host, shape (n, d), and what the columns are called.

    ``eps`` is the rounding unit of the type they came in; ``named`` is False where the names were
    made up; ``source`` is the array they came from, for its device.
    """

    values: np.ndarray
    names: tuple[str, ...]
    eps: float = float(np.finfo(np.float64).eps)
    named: bool = False
    source: Any = None


def quoted(names: Sequence[str], limit: int = 8) -> str:
    """'a', 'b' and 3 more."""
    shown = ", ".join(repr(str(name)) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def columns_phrase(names: Sequence[str]) -> str:
    """column 'a' / columns 'a', 'b'."""
    return f"column{'s' if len(names) != 1 else ''} {quoted(names)}"


def default_names(d: int) -> tuple[str, ...]:
    """What the columns of an array are called: their indices."""
    return tuple(str(k) for k in range(d))


def is_frame(x: Any) -> bool:
    """Whether ``x`` is a data frame or a series of a library that narwhals knows."""
    if hasattr(type(x), "__narwhals_dataframe__") or hasattr(type(x), "__narwhals_series__"):
        return True
    root = type(x).__module__.partition(".")[0]
    return root in _FRAME_LIBRARIES and not arrays.kind(x)


def as_table(x: Any, name: str = "x") -> Table:
    """Any supported kind of data as a ``Table``; NaN is allowed here, infinity is not judged."""
    if is_frame(x):
        return _from_frame(x, name)
    x = samples.as_plain(x, name)
    if arrays.kind(x) == "numpy" and x.dtype.names:
        return _from_records(x, name)
    if arrays.kind(x) == "numpy" and x.dtype == object:
        x = _from_objects(x, name)
    x = samples.as_floats(x, name)
    if x.ndim != 2:
        hint = f"; for one variable pass {name}[:, None]" if x.ndim == 1 else ""
        hint = hint or "; test one sample at a time" * (x.ndim > 2)
        raise ValueError(f"{name} must have shape (n, d), got {tuple(x.shape)}{hint}")
    eps = float(arrays.namespace(x).finfo(x.dtype).eps)
    values = np.asarray(arrays.to_numpy(_widened(x), "a test of normality"), dtype=np.float64)
    return Table(values, default_names(values.shape[1]), eps, source=x)


def _widened(x: Any) -> Any:
    """bfloat16, which NumPy does not have, as float32."""
    if "bfloat16" not in str(x.dtype):
        return x
    return arrays.astype(x, arrays.namespace(x).float32)


def _from_objects(x: np.ndarray, name: str) -> np.ndarray:
    """An array of Python objects, if they are all numbers (None is missing)."""
    values = np.empty(x.size)
    try:
        for k, value in enumerate(x.ravel()):
            values[k] = np.nan if value is None else value
        return values.reshape(x.shape)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must hold numbers, got dtype object with values such as "
            f"{_first_odd(x)!r}; pass numeric columns only"
        ) from None


def _first_odd(x: np.ndarray) -> Any:
    return next((v for v in x.ravel() if not isinstance(v, int | float)), x.ravel()[0])


def _from_records(x: np.ndarray, name: str) -> Table:
    """A structured array: its fields are the columns."""
    names = tuple(x.dtype.names or ())
    odd = [field for field in names if x.dtype[field].kind not in "fiu"]
    if odd:
        raise TypeError(_not_numeric(name, odd, [f for f in names if f not in odd]))
    values = np.stack([np.asarray(x[field], dtype=np.float64).ravel() for field in names], axis=1)
    return Table(values, names, named=True)


def _from_frame(x: Any, name: str) -> Table:
    try:
        import narwhals as nw
    except ImportError:
        raise MissingExtra("Testing a data frame", "cli", "narwhals") from None
    try:
        frame = nw.from_native(x, eager_only=True, allow_series=True)
    except ValueError as error:  # narwhals' own kind of error for repeated names
        raise ValueError(f"{name} has several columns of one name: {error}") from error
    except TypeError as error:
        if "lazy" in type(x).__name__.lower():
            raise TypeError(f"{name} is a lazy frame; pass {name}.collect()") from error
        raise TypeError(f"{name} of type {type(x).__name__} is not a data frame") from error
    if isinstance(frame, nw.Series):
        label = str(frame.name) if frame.name not in (None, "") else "0"
        frame = frame.alias(label).to_frame()
    schema = dict(frame.schema)
    odd = [column for column, dtype in schema.items() if not dtype.is_numeric()]
    if odd:
        numeric = [str(column) for column in schema if column not in odd]
        raise TypeError(_not_numeric(name, [f"{c}" for c in odd], numeric))
    if not schema:
        raise ValueError(f"{name} has no columns")
    values = np.stack(
        [np.asarray(frame[c].cast(nw.Float64).to_numpy(), dtype=np.float64) for c in schema],
        axis=1,
    )
    small = all(dtype == nw.Float32 for dtype in schema.values())
    eps = float(np.finfo(np.float32 if small else np.float64).eps)
    return Table(values, tuple(str(c) for c in schema), eps, named=True)


def _not_numeric(name: str, odd: Sequence[str], numeric: Sequence[str]) -> str:
    remedy = f"pass {name}[[{quoted(numeric)}]]" if numeric else "pass numbers"
    verb = "is" if len(odd) == 1 else "are"
    return f"{name}: {columns_phrase(odd)} {verb} not numeric; {remedy}"

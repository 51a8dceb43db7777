"""Files of numbers, by their ending: CSV, TSV, Parquet, NPY, NPZ.  Nothing is ever unpickled."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np

from smmd.errors import MissingExtra
from smmd.frames import Table, columns_phrase, quoted

#: What is read when no file is named: a small real data set that ships with the package.
SHIPPED = "iris.csv"
_TEXT = (".csv", ".tsv", ".txt")
_ENDINGS = (*_TEXT, ".parquet", ".npy", ".npz")
#: Columns by name; each a NumPy or a pyarrow column.
Columns = dict[str, Any]


@dataclass(frozen=True, eq=False)
class File:
    """The numeric columns asked for, the groups of the rows, and what was left aside."""

    name: str
    table: Table
    groups: np.ndarray | None
    left_out: tuple[str, ...]


def read(path: Path | None, columns: str | None = None, group_by: str | None = None) -> File:
    """Read the columns (names or indices, separated by commas; all numeric ones by default)."""
    if path is None:
        with resources.as_file(resources.files("smmd") / "data" / SHIPPED) as shipped:
            return _choose(f"{SHIPPED} (ships with smmd)", _load(shipped), columns, group_by)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file ({', '.join(_ENDINGS)})")
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    return _choose(str(path), _load(path), columns, group_by)


def _load(path: Path) -> Columns:
    packing = (".gz", ".bz2")
    ending = next((e for e in reversed(path.suffixes) if e.lower() not in packing), "").lower()
    if ending not in _ENDINGS:
        raise ValueError(f"{path}: the ending {ending!r} is not one of {', '.join(_ENDINGS)}")
    reader = _read_arrow if ending in (*_TEXT, ".parquet") else _read_numpy
    try:
        return reader(path, ending)
    except MissingExtra:
        raise
    except Exception as error:
        # Readers raise errors of many kinds on damaged files; each becomes one sentence.
        raise ValueError(
            f"{path} could not be read as {ending[1:].upper()}: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    """A reader's complaint on one line, without the control characters of a damaged file."""
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
        return "its text is not UTF-8; save it as UTF-8"
    text = "".join(mark if mark.isprintable() else " " for mark in str(error))
    return " ".join(text.split())[:300] or type(error).__name__


def _read_arrow(path: Path, ending: str) -> Columns:
    try:
        if ending == ".parquet":
            table = import_module("pyarrow.parquet").read_table(path)
        else:
            table = _read_text(import_module("pyarrow.csv"), path, ending)
    except ImportError:
        raise MissingExtra(f"Reading {path}", "cli", "pyarrow") from None
    repeated = {name for name in table.column_names if table.column_names.count(name) > 1}
    if repeated:
        raise ValueError(f"several columns are called {quoted(sorted(repeated))}; rename them")
    return {name: table.column(name) for name in table.column_names}


def _read_text(csv: Any, path: Path, ending: str) -> Any:
    delimiter = "\t" if ending == ".tsv" else _delimiter(path)
    parse = csv.ParseOptions(delimiter=delimiter)
    first = csv.read_csv(path, parse_options=parse)
    if delimiter == ";" and any(map(_has_commas, first.columns)):
        convert = csv.ConvertOptions(decimal_point=",")
        first = csv.read_csv(path, parse_options=parse, convert_options=convert)
    counted = [str(k) for k in range(len(first.column_names))]
    # Names "0", "1", ... are what libraries write for nameless columns: a header after all.
    if first.column_names == counted or not all(map(_is_number, first.column_names)):
        return first
    # No header: the first line holds numbers, and columns are called by their index.
    names = [str(k) for k in range(len(first.column_names))]
    return csv.read_csv(path, parse_options=parse, read_options=csv.ReadOptions(column_names=names))


def _has_commas(column: Any) -> bool:
    """Whether the column is text such as 3,14: numbers with a decimal comma."""
    if str(column.type) != "string":
        return False
    some = [text for text in column.slice(0, 100).to_pylist() if text]
    return bool(some) and all(_is_number(text.replace(",", ".")) for text in some)


def _delimiter(path: Path) -> str:
    if path.suffix.lower() in (".gz", ".bz2"):
        return ","
    with open(path, "rb") as file:
        line = file.readline(1 << 16)
    counts = {mark: line.count(mark.encode()) for mark in (",", ";", "\t")}
    if path.suffix.lower() == ".txt" and not any(counts.values()):
        return " "  # as numpy.savetxt writes
    return max(counts, key=lambda mark: counts[mark])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_numpy(path: Path, ending: str) -> Columns:
    # Opened here, because NumPy leaves a damaged archive open.
    with open(path, "rb") as file:
        try:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return _columns_of(loaded)
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
        except ValueError as error:
            if "pickle" in str(error):
                raise ValueError(
                    "it is no plain array of numbers; arrays of Python objects are refused "
                    "because reading them can run code"
                ) from error
            raise
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if len(tables) == 1:
        return _columns_of(arrays[tables[0]])
    if tables or len({array.shape for array in arrays.values()}) != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise ValueError(f"it holds {shapes}; save the one table of shape (n, d) alone")
    return dict(arrays)  # one column an array


def _columns_of(array: np.ndarray) -> Columns:
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"the array has shape {array.shape}; a table has shape (n, d)")
    return {str(k): array[:, k] for k in range(array.shape[1])}


def _choose(name: str, columns: Columns, wanted: str | None, group_by: str | None) -> File:
    groups = None
    if group_by is not None:
        groups = _group_labels(_find(group_by, columns, "--group-by"), columns)
    if wanted is not None:
        chosen = [_find(text.strip(), columns, "--columns") for text in wanted.split(",")]
        if len(set(chosen)) < len(chosen):
            raise ValueError(f"--columns {wanted} names a column twice")
    else:
        chosen = [column for column in columns if column != group_by]
    values = {column: found for column in chosen
              if (found := _numbers(columns[column])) is not None}  # fmt: skip
    odd = [column for column in chosen if column not in values]
    for column in odd:
        _check_text(name, column, columns[column])
    if wanted is not None and odd:
        raise ValueError(f"{name}: {columns_phrase(odd)} is not numeric; leave it out")
    kept = list(values)
    if columns and not len(next(iter(columns.values()))):
        raise ValueError(f"{name} has columns but no rows")
    if not columns:
        raise ValueError(f"{name} has no columns")
    if not kept:
        raise ValueError(f"{name} has no numeric columns; it has {quoted(list(columns))}")
    single = all(values[column].dtype.kind == "f" and values[column].dtype.itemsize <= 4
                 for column in kept)  # fmt: skip
    eps = float(np.finfo(np.float32 if single else np.float64).eps)
    table = np.empty((len(values[kept[0]]), len(kept)))
    for k, column in enumerate(kept):
        table[:, k] = values.pop(column)
    return File(name, Table(table, tuple(kept), eps, named=True), groups, tuple(odd))


def _check_text(name: str, column: str, data: Any) -> None:
    """Refuse a column of numbers with something else among them: it would be left out unseen."""
    if isinstance(data, np.ndarray) or "string" not in str(data.type):
        return
    some = [text for text in data.slice(0, 10_000).to_pylist() if text]
    bad = [text for text in some if not _is_number(text)]
    if (some and len(bad) < 0.5 * len(some)) or _has_commas(data):
        late = (text for text in data.to_pylist() if text and not _is_number(text))
        odd = bad[0] if bad else next(late, some[0])
        raise ValueError(
            f"{name}: column {column!r} holds numbers, but also {odd[:40]!r}; correct that, or "
            "choose other columns with --columns"
        )


def _find(text: str, columns: Columns, option: str) -> str:
    """A column by its name, or by its index from zero."""
    if text in columns:
        return text
    if text.isdigit() and int(text) < len(columns):
        return list(columns)[int(text)]
    raise ValueError(f"{option}: there is no column {text!r}; the columns are "
                     f"{quoted(list(columns))}")  # fmt: skip


def _numbers(column: Any) -> np.ndarray | None:
    """The column as floats with NaN for what is missing; None if it does not hold numbers."""
    if not isinstance(column, np.ndarray):
        kind = str(column.type)
        if not kind.startswith(("int", "uint", "float", "double", "halffloat", "decimal")):
            return None
        if kind.startswith("decimal"):
            column = column.cast("float64")
        column = column.to_numpy()
    return np.asarray(column) if column.dtype.kind in "fiu" else None


def _group_labels(name: str, columns: Columns) -> np.ndarray:
    column = columns[name]
    labels = column if isinstance(column, np.ndarray) else column.to_numpy()
    return np.array(["(missing)" if label is None else str(label) for label in labels])

"""From a table to the sample that is tested: missing values, columns that cannot be used, and the
normalization that the null asks for.  Every complaint names the columns.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from smmd.frames import Table, as_table, columns_phrase, quoted

NULLS = ("standard", "diagonal", "normal")
#: A value that more than this share of the rows has makes a column discrete.
_HEAVY_TIES = 0.15
_EPS = float(np.finfo(np.float64).eps)
#: Sums of larger values overflow.
_LARGEST = 1e300
#: Ties are looked for in this many rows.
_TIE_ROWS = 20_000


class TiesWarning(UserWarning):
    """The data are discrete; the null law is that of continuous data."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A clean table, how it was normalized, and what there is to tell about it.

    ``z`` = (rows − centre) @ transform, in n−1 units; ``values`` are the rows that were kept.
    """

    z: np.ndarray
    values: np.ndarray
    names: tuple[str, ...]
    named: bool
    centre: np.ndarray
    transform: np.ndarray
    rows: np.ndarray
    n_omitted: int
    notes: tuple[str, ...]
    source: Any = None

    @property
    def n(self) -> int:
        return int(self.z.shape[0])

    @property
    def d(self) -> int:
        return int(self.z.shape[1])


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices, by name."""
    if value not in choices:
        shown = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name} must be one of {shown}; got {value!r}")


def prepare(
    x: Any,
    null: str,
    *,
    nan_policy: str = "raise",
    rank_deficient: str = "raise",
    name: str = "x",
) -> Prepared:
    """Check ``x`` and bring it to the form in which the null says N(0, I)."""
    check_choice("null", null, NULLS)
    check_choice("nan_policy", nan_policy, ("raise", "omit"))
    check_choice("rank_deficient", rank_deficient, ("raise", "project"))
    table = x if isinstance(x, Table) else as_table(x, name)
    given = len(table.values)
    table, rows, notes = _complete_rows(table, nan_policy, name)
    n, d = table.values.shape
    if d == 0:
        raise ValueError(f"{name} has no columns: its shape is {(n, d)}")
    _check_count(table, null, name, rank_deficient)
    notes += _discreteness(table, name)
    if null == "standard":
        centre, transform = np.zeros(d), np.eye(d)
        z = table.values
    else:
        table, dropped = _without_constants(table, rank_deficient, name)
        notes += dropped
        d = table.values.shape[1]
        centre, scaled, spread = standardized(table.values)
        if null == "diagonal":
            z, transform = scaled, np.diag(1.0 / spread)
        else:
            z, turn, more = _whitened(scaled, table, spread, rank_deficient, name)
            transform = turn / spread[:, None]
            notes += more
            if n < z.shape[1] + 2:
                raise ValueError(
                    f"{name} has n={n} rows, which span {z.shape[1]} dimensions: normality with "
                    f"unknown covariance can be tested from n={z.shape[1] + 2}; pass more rows or "
                    "fewer columns"
                )
    return Prepared(
        np.ascontiguousarray(z),
        table.values,
        table.names,
        table.named,
        centre,
        transform,
        rows,
        given - n,
        tuple(notes),
        table.source,
    )


def _complete_rows(table: Table, nan_policy: str, name: str) -> tuple[Table, np.ndarray, list[str]]:
    values = table.values
    infinite = np.flatnonzero(np.isinf(values).any(axis=0))
    if infinite.size:
        names = [table.names[k] for k in infinite]
        raise ValueError(
            f"{name} holds infinite values in {columns_phrase(names)}; remove or correct those rows"
        )
    with np.errstate(invalid="ignore"):
        huge = np.flatnonzero((np.abs(values) > _LARGEST).any(axis=0))
    if huge.size:
        names = [table.names[k] for k in huge]
        raise ValueError(
            f"{name} holds values beyond ±{_LARGEST:g} in {columns_phrase(names)}, of which "
            "float64 cannot take a mean; divide them by a constant"
        )
    missing = np.isnan(values)
    kept = np.arange(len(values))
    if not missing.any():
        return table, kept, []
    incomplete = missing.any(axis=1)
    names = [table.names[k] for k in np.flatnonzero(missing.any(axis=0))]
    count = int(incomplete.sum())
    if nan_policy == "raise":
        raise ValueError(
            f"{name} has NaN (missing values) in {columns_phrase(names)}, in {count} of "
            f"{len(values)} rows; fill them in, or leave those rows out with nan_policy='omit'"
        )
    kept = np.flatnonzero(~incomplete)
    note = (
        f"{count} of {len(values)} rows left out because of missing values in "
        f"{columns_phrase(names)}."
    )
    return replace(table, values=values[kept], source=None), kept, [note]


def _check_count(table: Table, null: str, name: str, rank_deficient: str) -> None:
    n, d = table.values.shape
    least = {"standard": 2, "diagonal": 3, "normal": 3}[null]
    if n < least:
        raise ValueError(f"{name} has n={n} rows; a test of null {null!r} needs at least {least}")
    if null == "normal" and n < d + 2 and rank_deficient == "raise":
        raise ValueError(
            f"{name} has n={n} rows and d={d} columns ({quoted(table.names)}): with unknown "
            f"covariance at least d+2={d + 2} rows are needed; pass more rows or fewer columns, or "
            "test null='diagonal'"
        )


def _callers_level() -> int:
    """The ``stacklevel`` at which a warning shows the user's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("smmd."):
        frame, level = frame.f_back, level + 1
    return level


def _discreteness(table: Table, name: str) -> list[str]:
    values, notes = table.values, []
    n = len(values)
    step = max(1, n // _TIE_ROWS)
    some = values[::step]
    if len(some) < 20:
        return []
    tied = []
    for k, column in enumerate(some.T):
        counts = np.unique(column, return_counts=True)[1]
        if counts.size > 1 and counts.max() > _HEAVY_TIES * len(some):
            tied.append(table.names[k])
    if tied:
        notes.append(
            f"The values of {columns_phrase(tied)} are heavily tied: the data are discrete or "
            "rounded, and the null law is that of continuous data.  A rejection may show the "
            "rounding only."
        )
        warnings.warn(f"{name}: {notes[-1]}", TiesWarning, stacklevel=_callers_level())
    counting = [
        table.names[k]
        for k, column in enumerate(values.T)
        if abs(column[1] - column[0]) == 1.0 and np.all(np.diff(column) == column[1] - column[0])
    ]
    if counting:
        notes.append(f"The values of {columns_phrase(counting)} count the rows: an index?")
    repeated = n - len(np.unique(some @ np.sqrt(np.arange(2.0, 2.0 + values.shape[1]))))
    if step == 1 and not tied and repeated > 0.1 * n:
        notes.append(
            f"{repeated} of {n} rows repeat another row; the test takes rows for independent draws."
        )
    return notes


def standardized(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, columns in units of their n−1 standard deviations, and these."""
    centre = values.mean(axis=0)
    centred = values - centre
    # A second centring removes the mean's own rounding, which matters far from the origin.
    correction = centred.mean(axis=0)
    centred -= correction
    largest = np.max(np.abs(centred), axis=0)
    largest[largest == 0.0] = 1.0
    spread = largest * np.sqrt(((centred / largest) ** 2).sum(axis=0) / (len(values) - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return centre + correction, centred / spread, spread


def _without_constants(table: Table, rank_deficient: str, name: str) -> tuple[Table, list[str]]:
    largest = np.max(np.abs(table.values), axis=0)
    spread = standardized(table.values)[2]
    flat = spread <= 4.0 * table.eps * largest
    if not flat.any():
        return table, []
    names = [table.names[k] for k in np.flatnonzero(flat)]
    if rank_deficient == "raise" or flat.all():
        raise ValueError(
            f"{name} has constant {columns_phrase(names)}: a standard deviation of 0 cannot be "
            "normal; leave them out" + ("" if flat.all() else ", or pass rank_deficient='project'")
        )
    kept = np.flatnonzero(~flat)
    shorter = replace(
        table,
        values=table.values[:, kept],
        names=tuple(table.names[k] for k in kept),
        source=None,
    )
    return shorter, [f"Left out: constant {columns_phrase(names)}."]


def _whitened(
    scaled: np.ndarray, table: Table, spread: np.ndarray, rank_deficient: str, name: str
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The whitened sample, the matrix that whitens it, and notes; singular directions are found
    in the triangular factor of the centred and scaled data."""
    n, d = scaled.shape
    triangle = linalg.qr(scaled / np.sqrt(n - 1), mode="r", check_finite=False)[0][:d]
    _, sizes, turned = linalg.svd(triangle, full_matrices=True, check_finite=False)
    sizes = np.concatenate([sizes, np.zeros(d - sizes.size)])
    with np.errstate(over="ignore"):
        noise = 1.0 + np.max(np.max(np.abs(table.values), axis=0) / spread)
    # What the rounding of the data themselves, and of this factorization, makes of a zero.
    zero = max(64.0 * d * _EPS, np.sqrt(d) * table.eps * min(noise, 1e9))
    spanned = sizes > zero * sizes[0]
    rank = int(spanned.sum())
    notes = []
    if rank < d:
        dependence = _dependence(table, turned[rank:], spread)
        if rank_deficient == "raise":
            raise ValueError(
                f"{name} has a singular covariance matrix: {dependence}; leave out "
                f"{d - rank} of them, or pass rank_deficient='project' to test within the "
                f"{rank}-dimensional span"
            )
        notes.append(f"Projected to the {rank} dimensions that the data span: {dependence}.")
    elif sizes[-1] < 1e-3 * sizes[0]:
        loadings = np.abs(turned[-1])
        names = [table.names[k] for k in np.flatnonzero(loadings > 0.1)]
        notes.append(
            f"{columns_phrase(names).capitalize()} are nearly dependent (condition number "
            f"{sizes[0] / sizes[-1]:.1g}): whitening enlarges what little is left between them."
        )
    transform = turned[:rank].T / sizes[:rank]
    z = scaled @ transform
    # One more pass takes out what rounding left, however ill-conditioned the first one was.
    z -= z.mean(axis=0)
    factor = np.linalg.cholesky(z.T @ z / (n - 1))
    again = linalg.inv(factor).T
    return z @ again, transform @ again, notes


def _dependence(table: Table, null_space: np.ndarray, spread: np.ndarray) -> str:
    involved = np.sqrt((null_space**2).sum(axis=0)) > 1e-6
    names = [table.names[k] for k in np.flatnonzero(involved)]
    equal = [
        (table.names[i], table.names[j])
        for i in np.flatnonzero(involved)[:50]
        for j in np.flatnonzero(involved)[:50]
        if i < j and np.array_equal(table.values[:, i], table.values[:, j])
    ]
    if equal:
        pairs = ", ".join(f"{b!r} repeats {a!r}" for a, b in equal[:4])
        text = f"{columns_phrase(names)} are linearly dependent ({pairs})"
    else:
        text = f"{columns_phrase(names)} are linearly dependent"
    if not equal and len(null_space) == 1 and len(names) <= 5:
        weights = (null_space[0] / spread)[involved]
        weights = weights / np.abs(weights).max()
        terms = " ".join(f"{w:+.3g}·{name}" for w, name in zip(weights, names, strict=True))
        text += f" ({terms.removeprefix('+')} is constant)"
    return text

"""``diagnose``: in which columns, directions and rows data depart from normality."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smmd import measure
from smmd.kernels import Gaussian, Kernel, as_kernel
from smmd.normality import directions, reference, rows, statistics, words
from smmd.normality.multiplicity import holm
from smmd.normality.prepare import NULLS, Prepared, check_choice, prepare, standardized
from smmd.normality.result import NormalityResult
from smmd.normality.rows import Parts, Row
from smmd.normality.testing import check_alpha, judged
from smmd.nulls import montecarlo
from smmd.samples import whole_number

#: Beyond this many rows columns and rows are judged by a random part of them.
MOST_ROWS = 5_000


@dataclass(frozen=True)
class Column:
    """One column tested for itself; ``adjusted`` is Holm's p-value for all columns together."""

    name: str
    statistic: float
    pvalue: float
    adjusted: float
    rejected: bool
    skewness: float
    kurtosis: float
    shape: str


@dataclass(frozen=True)
class Outliers:
    """The rows that lie farther out than rows of a normal sample do, and what the test sees.

    ``rows`` are sorted by distance.  ``without`` is the test of the other rows, None where there
    are no outliers or too few others.  ``blind`` says that the test does not reject although they
    are there.
    """

    rows: tuple[Row, ...]
    count: int
    largest: float
    largest_pvalue: float
    without: NormalityResult | None
    blind: bool
    text: str


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The answer of ``diagnose``.

    Attributes
    ----------
    test : NormalityResult
        All columns together.
    columns : tuple of Column
        In the order of the data.
    directions : tuple of Direction
        Found on half of the rows, judged on the other half; most striking first.
    rows : tuple of Row
        Those that contribute most to SMMD².
    outliers : Outliers
    notes : tuple of str
    """

    test: NormalityResult
    columns: tuple[Column, ...]
    directions: tuple[directions.Direction, ...]
    rows: tuple[Row, ...]
    outliers: Outliers
    names: tuple[str, ...]
    notes: tuple[str, ...]
    values: np.ndarray = field(repr=False)
    parts: Parts = field(repr=False)
    labels: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        from smmd.normality import diagnosis_text

        return diagnosis_text.of(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, as for JSON."""
        from smmd.normality import diagnosis_text

        return diagnosis_text.plain(self)

    def plot(self) -> Any:
        """Columns, the worst direction and the rows, as one matplotlib figure."""
        from smmd.normality import diagnosis_plots

        return diagnosis_plots.of(self)


def diagnose(
    x: Any,
    null: str = "normal",
    *,
    kernel: Kernel = Gaussian(),
    method: str = "analytic",
    alpha: float = 0.05,
    nan_policy: str = "raise",
    rank_deficient: str = "raise",
    n_directions: int = 3,
    n_rows: int = 5,
    max_rows: int = MOST_ROWS,
    rng: int | np.random.Generator | None = None,
) -> Diagnosis:
    """Where do the rows of ``x`` depart from normality, if they do?

    Four views, each with p-values that hold for itself:

    - every column by a one-dimensional test, adjusted for their number (Holm);
    - the directions along which projections look least normal, found on one half of the rows by
      the closed-form gradient and tested on the other half;
    - the rows that contribute most to SMMD², with the witness function there;
    - rows far out beside their Mahalanobis distance, and whether the test notices them at all:
      MMD barely sees a far outlier (paper, section 3.2).

    Parameters
    ----------
    x, null, kernel, method, alpha, nan_policy, rank_deficient
        As for ``normality_test``.
    n_directions, n_rows : int
        How many to report.
    max_rows : int
        Larger samples are tested as a whole, but columns, directions and rows are judged by so
        many of the rows, drawn at random.
    rng : int or numpy.random.Generator, optional
        Of the split, of that draw and of the search's starts; a fixed seed by default.

    Examples
    --------
    >>> import numpy as np, smmd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((300, 3))
    >>> x[:, 1] = np.exp(x[:, 1])
    >>> [column.rejected for column in smmd.diagnose(x).columns]
    [False, True, False]
    """
    alpha, kernel = check_alpha(alpha), as_kernel(kernel)
    check_choice("null", null, NULLS)
    check_choice("method", method, reference.METHODS)
    n_directions = whole_number("n_directions", n_directions, 0)
    n_rows, max_rows = whole_number("n_rows", n_rows, 0), whole_number("max_rows", max_rows, 100)
    prepared = prepare(x, null, nan_policy=nan_policy, rank_deficient=rank_deficient)
    overall = judged(
        prepared, null, statistics.STATISTICS["smmd"], kernel, method=method, alpha=alpha
    )
    return explained(
        prepared, overall, kernel, method=method, n_directions=n_directions, n_rows=n_rows,
        max_rows=max_rows, rng=montecarlo.generator(rng),
    )  # fmt: skip


def explained(
    prepared: Prepared,
    overall: NormalityResult,
    kernel: Kernel,
    *,
    method: str,
    n_directions: int,
    n_rows: int,
    max_rows: int,
    rng: np.random.Generator,
) -> Diagnosis:
    """``diagnose`` of a sample whose test is there already."""
    null, alpha, n = overall.null, overall.alpha, prepared.n
    notes = list(prepared.notes)
    part = np.arange(n)
    if n > max_rows:
        part = np.sort(rng.choice(n, max_rows, replace=False))
        notes.append(
            f"Columns, directions and shares of rows are those of {words.count(max_rows)} rows "
            f"drawn at random from {words.count(n)}; outliers were looked for in all."
        )
    values, z = prepared.values[part], prepared.z[part]
    columns = _columns(values, prepared.names, null, kernel, method, alpha)
    found, why = directions.worst(
        values, null, kernel, rng, count=n_directions, method=method
    ) if n_directions else ((), "")  # fmt: skip
    if why:
        notes.append(why)
    parts = rows.parts_of(z, kernel, null)
    order = np.argsort(-parts.share)[:n_rows]
    return Diagnosis(
        test=overall,
        columns=columns,
        directions=found,
        rows=tuple(parts.row(k, int(prepared.rows[part[k]])) for k in order),
        outliers=_outliers(prepared, overall, kernel, method),
        names=prepared.names,
        notes=tuple(dict.fromkeys(notes)),
        values=values,
        parts=parts,
        labels=prepared.rows[part],
    )


def _columns(
    values: np.ndarray,
    names: tuple[str, ...],
    null: str,
    kernel: Kernel,
    method: str,
    alpha: float,
) -> tuple[Column, ...]:
    n, d = values.shape
    own = "standard" if null == "standard" else "normal"
    law = reference.find(statistics.STATISTICS["smmd"], kernel, own, n, 1, method=method)
    _, scaled, spread = standardized(values)
    scaled[:, spread == 0.0] = 0.0
    found, p = [], []
    for k in range(d):
        line = values[:, k] if own == "standard" else scaled[:, k]
        found.append(float(measure.smmd(np.ascontiguousarray(line[:, None]), kernel=kernel)))
        p.append(law.pvalue(found[-1]))
    skewness = (scaled**3).mean(axis=0)
    kurtosis = (scaled**4).mean(axis=0) - 3.0
    return tuple(
        Column(
            names[k], found[k], p[k], adjusted, bool(adjusted <= alpha), float(skewness[k]),
            float(kurtosis[k]), _shape(values[:, k], float(skewness[k]), float(kurtosis[k]), null),
        )
        for k, adjusted in enumerate(holm(p))
    )  # fmt: skip


def _shape(values: np.ndarray, skewness: float, kurtosis: float, null: str) -> str:
    """What stands out of a column, in words: three standard errors under normality or more."""
    n, found = len(values), []
    if null == "standard":
        if abs(values.mean()) > 3.0 / np.sqrt(n):
            found.append(f"mean {values.mean():.2g}")
        if abs(values.var(ddof=1) - 1.0) > 3.0 * np.sqrt(2.0 / n):
            found.append(f"variance {values.var(ddof=1):.2g}")
    if abs(skewness) > 3.0 * np.sqrt(6.0 / n):
        found.append(f"skewed to the {'right' if skewness > 0 else 'left'}")
    if kurtosis > 3.0 * np.sqrt(24.0 / n):
        found.append("heavy tails")
    elif kurtosis < -3.0 * np.sqrt(24.0 / n):
        found.append("two modes or light tails" if kurtosis < -1.0 else "light tails")
    return ", ".join(found)


def _outliers(
    prepared: Prepared, overall: NormalityResult, kernel: Kernel, method: str
) -> Outliers:
    null, n, d = overall.null, prepared.n, prepared.d
    squared = overall.distances
    pvalue = rows.far_out(squared, n, d, null)
    far = np.flatnonzero(pvalue <= rows.FAR)
    far = far[np.argsort(-squared[far])]
    largest = int(np.argmax(squared))
    shown = far[:20]
    # A row's own share of the statistic takes the distances to all others: for a few rows only.
    listed = tuple(
        Row(int(prepared.rows[k]), share, witness, float("nan"), float(np.sqrt(squared[k])),
                 float(pvalue[k]))
        for k, (share, witness) in zip(shown, rows.shares(prepared.z, shown, kernel), strict=True)
    )  # fmt: skip
    without = None
    rest = np.delete(prepared.values, far, axis=0)
    if far.size and len(rest) >= d + 2 and n <= MOST_ROWS:
        without = _test_of(rest, null, kernel, method, overall.alpha)
    blind = bool(far.size) and not overall.rejected
    extreme = float(np.sqrt(squared[largest])), float(pvalue[largest])
    text = _about_outliers(listed, int(far.size), n, extreme, overall, without)
    return Outliers(listed, int(far.size), *extreme, without, blind, text)


def _test_of(
    values: np.ndarray, null: str, kernel: Kernel, method: str, alpha: float
) -> NormalityResult | None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rest = prepare(values, null)
        except ValueError:
            return None
    smmd = statistics.STATISTICS["smmd"]
    return judged(rest, null, smmd, kernel, method=method, alpha=alpha)


def _about_outliers(
    listed: tuple[Row, ...],
    count: int,
    n: int,
    extreme: tuple[float, float],
    overall: NormalityResult,
    without: NormalityResult | None,
) -> str:
    if not count:
        return (
            f"No row lies farther out than rows of a normal sample do: the largest distance, "
            f"{extreme[0]:.3g}, or a larger one occurs with probability "
            f"{words.p_short(extreme[1])}{' at most' if extreme[1] < 1.0 else ''}."
        )
    several = count > 1
    named = ", ".join(str(row.index) for row in listed[:5]) + (", ..." if count > 5 else "")
    text = (
        f"Row{'s' if several else ''} {named} lie{'' if several else 's'} farther out than rows of "
        f"a normal sample do (distance up to {extreme[0]:.3g}; {count} of {words.count(n)} rows)."
    )
    if count > 0.01 * n and count > 3:
        text += "  So many are no outliers but heavy tails."
    if not overall.rejected:
        text += (
            "  The test above is blind to that: it compares where the mass is, and "
            f"{'these rows hold' if several else 'this row holds'} {count}/{words.count(n)} of it, "
            "however far out.  It does not reject; the distance does."
        )
    if without is not None:
        change = (
            f"  Without {'them' if several else 'it'} SMMD² is "
            f"{words.number(without.statistic)} instead of {words.number(overall.statistic)}, "
            f"p = {words.p_short(without.pvalue)} instead of {words.p_short(overall.pvalue)}"
        )
        if overall.rejected and not without.rejected:
            change += ": the rejection rests on them" if several else ": the rejection rests on it"
        elif overall.rejected:
            change += ": the rejection does not rest on " + ("them" if several else "it")
        text += change + "."
    return text

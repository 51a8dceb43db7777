"""The report of a test of normality: the test, its figures and the diagnosis on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import smmd
from smmd import figures
from smmd.normality import words
from smmd.normality.diagnosis import Diagnosis
from smmd.normality.diagnosis_text import column_table, direction_table, row_table
from smmd.normality.result import NormalityResult
from smmd.report.page import Page, Tone


@dataclass(frozen=True)
class Part:
    """One sample of the report: all rows, or those of one group."""

    name: str
    result: NormalityResult
    diagnosis: Diagnosis | None
    adjusted: float | None = None

    @property
    def rejected(self) -> bool:
        """The verdict, among groups that of the adjusted p-value."""
        if self.adjusted is None:
            return self.result.rejected
        return self.adjusted <= self.result.alpha


def page(
    source: str, parts: Sequence[Part], *, group_by: str = "", skipped: Sequence[str] = ()
) -> Page:
    """The report; several parts are groups, whose p-values were adjusted for their number."""
    rows = sum(part.result.n for part in parts)
    made = Page(
        f"Is {Path(source).name} normally distributed?",
        lead=f"{words.count(rows)} rows, {_columns(parts[0].result.names)}"
        + (f", in {len(parts)} groups by {group_by}" if group_by else ""),
    )
    if group_by:
        _groups(made, parts, group_by, skipped)
    for part in parts:
        _part(made, part)
    _method(made, parts[0].result, bool(group_by))
    return made


def _columns(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"{len(names)} column{'s' if len(names) != 1 else ''} ({shown})"


def _groups(made: Page, parts: Sequence[Part], group_by: str, skipped: Sequence[str]) -> None:
    bad = [part.name for part in parts if part.rejected]
    alpha = words.percent(parts[0].result.alpha)
    if bad:
        many = f"{len(bad)} of {len(parts)} groups depart from normality at the {alpha} level"
        made.verdict(f"{many}: {', '.join(bad[:8])}{', ...' if len(bad) > 8 else ''}.", "bad")
    else:
        made.verdict(f"Normality is not rejected in any group at the {alpha} level.", "good")
    table = [
        [part.name, words.count(part.result.n), words.number(part.result.statistic),
         words.p_short(part.result.pvalue), words.p_short(part.adjusted or part.result.pvalue),
         "rejected" if part.rejected else "not rejected"]
        for part in parts
    ]  # fmt: skip
    label = parts[0].result.label
    made.table([group_by, "rows", label, "p", "p adjusted", "normality"], table)
    made.text(f"p was adjusted by Holm's method for {len(parts)} tests.")
    for text in skipped:
        made.text(text)


def _part(made: Page, part: Part) -> None:
    result, diagnosis = part.result, part.diagnosis
    assert diagnosis is not None
    if part.name:
        made.heading(part.name)
    far = diagnosis.outliers
    tone: Tone = "bad" if part.rejected else "warn" if far.blind else "good"
    verdict = result.verdict()
    if part.adjusted is not None:
        verdict = f"Taken alone: {verdict}  Among all groups p is {words.p_short(part.adjusted)}."
    made.verdict(verdict + (f"  {far.text}" if far.blind else ""), tone)
    if result.caution():
        made.text(result.caution())
    made.figure(
        figures.encode(result.plot())["svg"],
        "Left: the values that normal samples of this size give, the threshold, and this sample. "
        "Right: the rows' Mahalanobis distances against those expected; rows outside the band in "
        "red.",
        alt=f"{result.label} {words.number(result.statistic)}, p {result.p_text()}",
    )
    made.table(
        ["", ""],
        [
            ["statistic", f"{result.label} = {words.number(result.statistic)}"],
            ["p", result.p_text()],
            ["threshold", f"{words.number(result.threshold)} at level {result.alpha:g}"],
            ["rows, columns", f"{words.count(result.n)}, {result.d}"],
            *([["rows left out", words.count(result.n_omitted)]] if result.n_omitted else []),
        ],
    )
    made.heading("Where it departs" if part.rejected else "A closer look", 3)
    made.figure(
        figures.encode(diagnosis.plot())["svg"],
        "Columns: vertical distance from the line shows by how much the column's quantiles differ "
        "from normal ones.  Rows: what each adds to the statistic, by its distance.",
        alt="Columns, worst direction and rows",
    )
    made.heading("Columns", 3)
    _table(made, column_table(diagnosis), "Each column tested for itself; p adjusted by Holm.")
    if diagnosis.directions:
        made.heading("Directions", 3)
        _table(
            made, direction_table(diagnosis),
            "Directions found on one half of the rows and tested on the other half.  Weights are "
            "for columns divided by their standard deviations.",
        )  # fmt: skip
    if diagnosis.rows:
        made.heading("Rows", 3)
        _table(
            made, row_table(diagnosis.rows),
            "The rows that add most to SMMD²: there is more mass around them than there should "
            "be.  Rows are counted from 0.",
        )  # fmt: skip
    made.heading("Far rows", 3)
    made.text(far.text)
    if far.rows:
        listed = [
            [str(row.index), f"{row.distance:.3g}", words.p_short(row.pvalue), f"{row.share:+.2g}"]
            for row in far.rows
        ]
        _table(
            made, [["row", "distance", "p", "adds to SMMD²"], *listed],
            "p is the probability that any of so many normal rows lies as far out.",
        )  # fmt: skip
    notes = dict.fromkeys((*result.notes, *diagnosis.notes))
    if notes:
        made.heading("Notes", 3)
        for note in notes:
            made.text(note)


def _table(made: Page, table: list[list[str]], caption: str) -> None:
    made.text(caption)
    made.table(table[0], table[1:])


def _method(made: Page, result: NormalityResult, groups: bool) -> None:
    made.heading("How to read this")
    kernel = "" if result.kernel is None else f" with kernel {result.kernel!r}"
    made.text(
        f"Tested was whether the rows are a sample from {words.NULL_WORDS[result.null]}, by "
        f"{result.label}{kernel}; p-values come from "
        + ("the analytic law." if result.method == "analytic" else "simulated samples.")
    )
    made.text(
        "SMMD² compares where the rows are with where a normal law has its mass, in units of what "
        "chance alone does: under N(0, I) it is 0 ± 1, and less after the sample was centred and "
        "whitened by its own moments.  A p-value is the probability that a normal sample of this "
        "size gives a value at least as large.  It is not the probability that the data are "
        "normal, and with many rows it becomes small for departures that do not matter."
    )
    made.html(f'<p class="lead">smmd {smmd.__version__}</p>')

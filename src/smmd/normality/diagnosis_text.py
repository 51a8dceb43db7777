"""A diagnosis in words, and as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smmd.normality import words
from smmd.normality.directions import Direction
from smmd.normality.rows import Row

if TYPE_CHECKING:
    from smmd.normality.diagnosis import Diagnosis

#: At most so many columns are printed; those with the smallest p-values.
_COLUMNS_SHOWN = 12


def of(diagnosis: Diagnosis) -> str:
    """The whole as text for a terminal."""
    test = diagnosis.test
    half = len(diagnosis.values) // 2
    blocks = [
        f"Where do these {words.count(test.n)} rows of {test.d} "
        f"column{'s' if test.d != 1 else ''} depart from normality?",
        words.paragraphs(
            [f"All columns together: SMMD² = {words.number(test.statistic)}.  {test.verdict()}"]
        ),
        _block("Columns, one by one", column_table(diagnosis)),
    ]
    if diagnosis.directions:
        title = f"Directions, found on {half} rows and tested on the others"
        blocks.append(_block(title, direction_table(diagnosis)))
    if diagnosis.rows:
        title = "Rows that add most to SMMD²: more mass around them than there should be"
        blocks.append(_block(title, row_table(diagnosis.rows)))
    blocks.append("Far rows\n" + words.paragraphs([diagnosis.outliers.text]))
    blocks.append(words.paragraphs(f"Note: {note}" for note in diagnosis.notes))
    return "\n\n".join(block for block in blocks if block)


def column_table(diagnosis: Diagnosis) -> list[list[str]]:
    """Header and rows; the most striking columns first where there are many."""
    listed = list(diagnosis.columns)
    if len(listed) > _COLUMNS_SHOWN:
        listed = sorted(listed, key=lambda column: column.pvalue)[:_COLUMNS_SHOWN]
    table = [["column", "SMMD²", "p", "p adjusted", "", "what stands out"]]
    for column in listed:
        verdict = "not normal" if column.rejected else ""
        table.append(
            [column.name, words.number(column.statistic), words.p_short(column.pvalue),
             words.p_short(column.adjusted), verdict, column.shape]
        )  # fmt: skip
    hidden = len(diagnosis.columns) - len(listed)
    if hidden:
        table.append([f"and {hidden} more", "", "", "", "", ""])
    return table


def direction_table(diagnosis: Diagnosis) -> list[list[str]]:
    """Header and rows; weights are those of columns in units of their standard deviations."""
    table = [["direction", "SMMD²", "p", "p adjusted"]]
    for item in diagnosis.directions:
        table.append(
            [combination(item, diagnosis.names), words.number(item.statistic),
             words.p_short(item.pvalue), words.p_short(item.adjusted)]
        )  # fmt: skip
    return table


def combination(item: Direction, names: Sequence[str], limit: int = 4) -> str:
    """0.9·height − 0.4·width + ..."""
    order = np.argsort(-np.abs(item.loadings))
    kept = [k for k in order[:limit] if abs(item.loadings[k]) >= 0.1]
    terms = [
        f"{'−' if item.loadings[k] < 0 else '+'} {abs(item.loadings[k]):.2f}·{names[k]}"
        for k in kept
    ]
    text = " ".join(terms).removeprefix("+ ")
    rest = np.sum(np.abs(np.delete(item.loadings, kept)) >= 0.1)
    return text + (" + ..." if rest else "")


def row_table(rows: Sequence[Row]) -> list[list[str]]:
    """Header and rows."""
    table = [["row", "adds to SMMD²", "gradient", "distance"]]
    for row in rows:
        table.append(
            [str(row.index), f"{row.share:+.3g}", f"{row.pull:.2g}", f"{row.distance:.3g}"]
        )
    return table


def _block(title: str, table: list[list[str]]) -> str:
    return f"{title}\n{words.grid(table)}"


def plain(diagnosis: Diagnosis) -> dict[str, Any]:
    """Numbers and text only, as for JSON."""
    outliers = diagnosis.outliers
    return {
        "test": diagnosis.test.to_dict(),
        "columns": [dict(vars(column)) for column in diagnosis.columns],
        "directions": [
            {
                "weights": dict(zip(diagnosis.names, item.weights.tolist(), strict=True)),
                "loadings": dict(zip(diagnosis.names, item.loadings.tolist(), strict=True)),
                "statistic_where_found": item.found,
                "statistic": item.statistic,
                "pvalue": item.pvalue,
                "pvalue_adjusted": item.adjusted,
            }
            for item in diagnosis.directions
        ],
        "rows": [dict(vars(row)) for row in diagnosis.rows],
        "outliers": {
            "count": outliers.count,
            "rows": [row.index for row in outliers.rows],
            "largest_distance": outliers.largest,
            "largest_pvalue": outliers.largest_pvalue,
            "test_is_blind": outliers.blind,
            "text": outliers.text,
        },
        "notes": list(diagnosis.notes),
    }

"""How results are put into words: p-values, levels, counts, nulls."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

from smmd.nulls import montecarlo

#: What each null says, as "Are these rows a sample from ...?"
NULL_WORDS = {
    "standard": "N(0, I), nothing estimated",
    "diagonal": "a normal law with independent columns, means and variances unknown",
    "normal": "a normal law, means and covariances unknown",
}
_WIDTH = 88


def number(value: float) -> str:
    """Four significant digits, as plain as possible."""
    if value != 0.0 and (abs(value) >= 1e6 or abs(value) < 1e-4):
        return f"{value:.3e}"
    return f"{value:.4g}"


def count(value: int) -> str:
    """1,000,000."""
    return f"{value:,}"


def percent(value: float) -> str:
    """0.05 → 5 %; small shares keep two digits."""
    share = 100.0 * value
    if share >= 99.95 and value < 1.0:
        return "more than 99.9 %"
    return f"{share:.3g} %" if share >= 0.01 else f"{share:.1e} %"


def p_value(p: float, error: float | None, n_resamples: int) -> str:
    """A p-value with what is known of its error."""
    if n_resamples and p <= 1.001 / (n_resamples + 1):
        return f"{p:.2g}, the smallest that {count(n_resamples)} simulated samples can give"
    if error is not None:
        decimals = max(1, -math.floor(math.log10(error)))
        return f"{p:.{decimals}f} ± {error:.{decimals}f}"
    if p < 1e-300:
        return "below 1e-300"
    return f"{p:.3g}" if p >= 0.001 else f"{p:.2e}"


def p_short(p: float) -> str:
    """For a cell of a table."""
    if p < 1e-300:
        return "<1e-300"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def rounded_up(rows: float) -> str:
    """A count of rows to two digits, as an estimate deserves."""
    digits = max(0, math.ceil(math.log10(max(rows, 1.0))) - 2)
    step = 10**digits
    return count(int(math.ceil(rows / step) * step))


def paragraphs(parts: Iterable[str]) -> str:
    """Sentences as wrapped paragraphs, one line each where they are short."""
    return "\n".join(textwrap.fill(part, _WIDTH, break_long_words=False) for part in parts if part)


def sheet(rows: Iterable[tuple[str, str]], indent: str = "  ") -> str:
    """Labels and values in two columns."""
    listed = list(rows)
    width = max(len(label) for label, _ in listed)
    return "\n".join(f"{indent}{label:<{width}}  {value}" for label, value in listed)


def law_words(law: object, description: str) -> str:
    """Where the null law comes from."""
    if isinstance(law, montecarlo.SimulatedNull):
        return f"{count(law.values.size)} simulated samples"
    return description


def grid(table: list[list[str]], indent: str = "  ") -> str:
    """Cells in columns, for a terminal."""
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in table
    ]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)

"""docs/calibration.md: the committed levels as tables."""

from __future__ import annotations

from pathlib import Path

from benchmarks._calibration_levels import ALPHAS, COMPARED, PROMISE, Level, cell_text
from smmd import files
from smmd.nulls import NULLS, validity

PAGE = Path(__file__).parent.parent / "docs" / "calibration.md"
#: The grid and the widths that the page shows; the CSV has more.
N, D, WIDTHS = (20, 50, 100, 1000), (1, 2, 4, 8, 16, 32, 64), COMPARED
MIXTURES = {"multi": "several scales, 1/16 to 1/4", "imq": "IMQ, s = 1/8"}
LAWS = {
    ("smmd", "analytic"): "The analytic law of SMMD²",
    ("bhep", "analytic"): "The analytic law of BHEP",
    ("smmd", "pearson3"): "Pearson III with the same three moments",
    ("bhep", "published"): "The log-normal law of Henze and Zirkler, at the same widths",
    ("bhep", "lognormal"): "The log-normal law with the exact mean and variance",
}
TITLES = {
    "standard": "Null “standard”: N(0, I), nothing estimated",
    "diagonal": "Null “diagonal”: mean and variances estimated",
    "normal": "Null “normal”: mean and covariance estimated",
}
HEAD = """# Calibration

How often does a true normal sample exceed the threshold of a nominal level?  The tables below are
counts over simulated samples, printed by

    python -m benchmarks.calibration

which draws the samples anew (give it `--seed`), on a CPU or with `--device cuda` on a GPU.  What is
committed is in `benchmarks/results/calibration.csv`, with more sizes and widths than are shown
here; `benchmarks/results/null_quantiles.csv` holds the simulated quantiles and moments themselves.

Each entry is the true level in percent where 5 / 1 / 0.1 is asked for.  Brackets: outside the
region in which the analytic law is declared valid, where `smmd.normality_test` and
`smmd.threshold` simulate instead and say why.

## The declared region

{region}

Inside it the levels are to lie within ±{p5:.0f} % of nominal at 0.05, ±{p1:.0f} % at 0.01 and
±{p01:.0f} % at 0.001, beyond three standard errors of the simulation; `tests/nulls` holds the laws
to that against the committed quantiles.  Level / nominal level over all committed cells in it:

{ranges}

The log-normal law matches two moments of a statistic whose skewness is another one's; with the
limit's moments, as published, its mean is off as well at small n.  The analytic laws match mean,
variance and skewness at the n at hand, and take their shape from the spectrum of the kernel.
"""


def write(levels: list[Level]) -> None:
    files.atomic_write(PAGE, text(levels))
    print(f"wrote {PAGE}")


def text(levels: list[Level]) -> str:
    head = HEAD.format(
        region=validity.in_words(),
        ranges=_ranges(levels),
        p5=100 * PROMISE[0.05],
        p1=100 * PROMISE[0.01],
        p01=100 * PROMISE[0.001],
    )
    parts = [head]
    for null in NULLS:
        parts.append(f"## {TITLES[null]}\n")
        for (statistic, method), title in LAWS.items():
            found = [
                row
                for row in levels
                if (row.null, row.statistic, row.method) == (null, statistic, method)
            ]
            parts.append(f"### {title}\n\n{_table(found, WIDTHS)}\n")
            if (statistic, method) == ("smmd", "analytic"):
                parts.append(f"### The same of mixtures\n\n{_table(found, tuple(MIXTURES))}\n")
    return "\n".join(parts)


def _ranges(levels: list[Level]) -> str:
    inside = {(r.n, r.d, r.null, r.kernel, r.statistic) for r in levels if r.valid}
    lines = ["| law | cells | at 0.05 | at 0.01 | at 0.001 |", "|---|---|---|---|---|"]
    for (statistic, method), title in LAWS.items():
        here = [
            r
            for r in levels
            if (r.statistic, r.method) == (statistic, method)
            and (r.n, r.d, r.null, r.kernel, statistic) in inside
        ]
        if not here:
            continue
        ranges = []
        for alpha in ALPHAS:
            ratios = [r.levels()[alpha] / alpha for r in here]
            ranges.append(f"{min(ratios):.2f} to {max(ratios):.2f}")
        lines.append(f"| {title} | {len(here)} | " + " | ".join(ranges) + " |")
    return "\n".join(lines)


def _table(rows: list[Level], widths: tuple[str, ...]) -> str:
    lines = ["| n | d | samples | " + " | ".join(_label(w) for w in widths) + " |"]
    lines.append("|---|---|---|" + "---|" * len(widths))
    for n in N:
        for d in D:
            here = {r.kernel: r for r in rows if (r.n, r.d) == (n, d)}
            if not here:
                continue
            samples = f"{next(iter(here.values())).samples:,}"
            cells = [_entry(here.get(w)) for w in widths]
            lines.append(f"| {n} | {d} | {samples} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _label(width: str) -> str:
    return MIXTURES.get(width, width if width == "HZ" else f"s = {width}")


def _entry(row: Level | None) -> str:
    return "–" if row is None else cell_text(row)

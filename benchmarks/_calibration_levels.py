"""Levels of the laws in simulated cells: rows of the CSV, and their summary as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks import _calibration_store as store
from benchmarks import _null_values as null_values
from smmd import IMQ, Gaussian, Kernel, MultiScale, files
from smmd.nulls import Null, NullLaw, analytic_law, law_for, lognormal_law, pearson3_law
from smmd.nulls.bhep import bhep_law
from smmd.nulls.law import published_law

ALPHAS = (0.05, 0.01, 0.001)
RESULTS = Path(__file__).parent / "results"
LEVELS, QUANTILES = RESULTS / "calibration.csv", RESULTS / "null_quantiles.csv"
#: The widths at which other laws are there for comparison.
COMPARED = ("1", "1/4", "1/8", "1/16", "HZ")
#: Laws more skewed than this are far outside the region and take seconds for every level.
HOPELESS = 5.0
#: What the declared region promises: the largest relative error of a level, beyond simulation's.
PROMISE = {0.05: 0.05, 0.01: 0.12, 0.001: 0.30}
#: How many standard errors of the simulation are allowed beyond the promise.
SIGMAS = 3.0


@dataclass(frozen=True)
class Quantiles:
    """What a statistic does in one cell, by simulation: the facts, whatever the laws say."""

    n: int
    d: int
    null: str
    kernel: str
    statistic: str
    samples: int
    mean: float
    sd: float
    skewness: float
    kurtosis: float
    q05: float
    q01: float
    q001: float


@dataclass(frozen=True)
class Level:
    """The true level of a law's thresholds in one cell, at nominal 0.05, 0.01 and 0.001."""

    n: int
    d: int
    null: str
    kernel: str
    statistic: str
    method: str
    samples: int
    level05: float
    level01: float
    level001: float
    valid: int

    def levels(self) -> dict[float, float]:
        return dict(zip(ALPHAS, (self.level05, self.level01, self.level001), strict=True))

    def excess(self, alpha: float) -> float:
        """By how many standard errors the level misses the promise; negative: it keeps it."""
        error = (alpha * (1.0 - alpha) / self.samples) ** 0.5
        return (abs(self.levels()[alpha] - alpha) - PROMISE[alpha] * alpha) / error


Find = Callable[[], NullLaw | None]


def laws(null: Null, n: int, d: int, width: str) -> Iterator[tuple[str, str, Find]]:
    """(statistic, method, law) of every law there is for a width or a mixture."""
    if width in (null_values.MULTI, null_values.IMQ):
        kernel: Kernel = MultiScale() if width == null_values.MULTI else IMQ()
        yield "smmd", "analytic", lambda: law_for(kernel, null, n, d).law
        return
    g = null_values.gamma2(width, n, d)
    yield "smmd", "analytic", lambda: analytic_law(null, n, d, g)
    yield "bhep", "analytic", lambda: bhep_law(Gaussian(gamma=g**0.5), null, n, d).law
    if width not in COMPARED:
        return
    yield "smmd", "pearson3", lambda: pearson3_law(null, n, d, g)
    # the log-normal laws are of the published statistic: 1/n (co)variances narrow the width
    narrower = g if null == "standard" else g * (n - 1.0) / n
    yield "bhep", "lognormal", lambda: lognormal_law(null, n, d, narrower)
    yield "bhep", "published", lambda: published_law(null, n, d, g)


def rows(cell: store.Cell) -> tuple[list[Quantiles], list[Level]]:
    """Everything there is to say about one cell."""
    facts, levels = [], []
    for name in cell.names:
        statistic, null, width = name.split()
        series = cell.series(name)
        where = (cell.n, cell.d, null, width, statistic)
        moments = (series.mean, series.variance**0.5, series.skewness, series.kurtosis)
        quantiles = [series.quantile(alpha) for alpha in ALPHAS]
        facts.append(Quantiles(*where, series.count, *moments, *quantiles))
        for of, method, find in laws(null, cell.n, cell.d, width):  # type: ignore[arg-type]
            if of != statistic:
                continue
            try:
                law = find()
                if law and method == "analytic" and law.skewness > HOPELESS:
                    continue
                found = law and [series.level(x) for x in thresholds(law, quantiles)]
            except ValueError:
                continue
            if law and found:
                levels.append(Level(*where, method, series.count, *found, int(law.valid)))
    return facts, levels


def thresholds(law: NullLaw, near: list[float]) -> list[float]:
    """What ``law.isf`` gives for ALPHAS, to 1e-4 of the level: by secants from nearby quantiles."""
    goal = np.log(ALPHAS)
    x, former = np.array(near), np.array(near) - 0.05 * law.sd
    off, formerly = law.logsf(x) - goal, law.logsf(former) - goal
    for _ in range(8):
        if np.all(np.abs(off) < 1e-4):
            return [float(v) for v in x]
        with np.errstate(invalid="ignore", divide="ignore"):
            step = np.where(off == formerly, 0.0, off * (x - former) / (off - formerly))
        x, former, formerly = x - step, x, off
        off = law.logsf(x) - goal
    return [law.isf(alpha) for alpha in ALPHAS]


def rows_of(folder: Path, n: int, d: int, seed: int | None) -> tuple[list[Quantiles], list[Level]]:
    """The same of the parts in a folder; nothing where there are none."""
    return rows(store.load(folder, n, d, seed))


def write(path: Path, found: list[Quantiles] | list[Level]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([f.name for f in fields(found[0])])
    for row in found:
        values = asdict(row).values()
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])
    files.atomic_write(path, text.getvalue())


def read_levels(path: Path = LEVELS) -> list[Level]:
    return [Level(**row) for row in _read(path, Level)]


def read_quantiles(path: Path = QUANTILES) -> list[Quantiles]:
    return [Quantiles(**row) for row in _read(path, Quantiles)]


def _read(path: Path, kind: type) -> Iterator[dict[str, object]]:
    types = {f.name: {"int": int, "float": float, "str": str}[str(f.type)] for f in fields(kind)}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            yield {name: types[name](value) for name, value in row.items()}


def report(
    folder: Path, ns: list[int], ds: list[int], seed: int | None, *, write: bool = False
) -> None:
    """Print the levels of the cells in ``folder``; ``write``: as the committed results, too."""
    facts: list[Quantiles] = []
    levels: list[Level] = []
    with ProcessPoolExecutor() as pool:
        grid = [(folder, n, d, seed) for n in ns for d in ds]
        for more, found in pool.map(rows_of, *zip(*grid, strict=True)):
            facts += more
            levels += found
            if found:
                print(table(found), flush=True)
    if not levels:
        print(f"nothing is simulated yet in {folder}")
        return
    print(summary(levels))
    if write:
        from benchmarks import _calibration_page as page

        _write_all(facts, levels)
        page.write(read_levels())  # with the digits that are committed


def _write_all(facts: list[Quantiles], levels: list[Level]) -> None:
    write(QUANTILES, facts)
    write(LEVELS, levels)
    print(f"wrote {LEVELS} and {QUANTILES}")


def table(levels: list[Level]) -> str:
    """A line for each null and law of a cell: levels in percent, by width."""
    head = levels[0]
    lines = [f"\nn = {head.n}, d = {head.d}: {head.samples:,} samples; true level in % at 5/1/0.1"]
    kernels = list(dict.fromkeys(row.kernel for row in levels))
    lines.append(f"{'':28}" + "".join(f"{k:>16}" for k in kernels))
    groups = dict.fromkeys((r.null, r.statistic, r.method) for r in levels)
    for null, statistic, method in groups:
        line = f"{null:9}{statistic:6}{method:13}"
        for kernel in kernels:
            here = [
                r
                for r in levels
                if (r.null, r.statistic, r.method, r.kernel) == (null, statistic, method, kernel)
            ]
            line += f"{cell_text(here[0]) if here else '':>16}"
        lines.append(line)
    return "\n".join(lines)


def cell_text(row: Level) -> str:
    """Levels in percent; brackets outside the declared region."""
    text = "/".join(f"{100 * level:.{k}f}" for level, k in zip(row.levels().values(), (2, 2, 3)))  # noqa: B905
    return text if row.valid or row.method != "analytic" else f"({text})"


def summary(levels: list[Level]) -> str:
    """Ranges over the declared region, and what is missed there."""
    lines = ["\nWithin the declared region: level / nominal level, from and to"]
    for statistic, method in dict.fromkeys((r.statistic, r.method) for r in levels):
        inside = {(r.n, r.d, r.null, r.kernel, r.statistic) for r in levels if r.valid}
        here = [
            r
            for r in levels
            if (r.statistic, r.method) == (statistic, method)
            and (r.n, r.d, r.null, r.kernel, statistic) in inside
        ]
        if not here:
            continue
        text = f"{statistic:6}{method:12}{len(here):5} cells"
        for alpha in ALPHAS:
            ratios = [r.levels()[alpha] / alpha for r in here]
            text += f"   {alpha}: {min(ratios):.2f} to {max(ratios):.2f}"
        lines.append(text)
    missed = [
        (r, alpha) for r in levels for alpha in ALPHAS if r.valid and r.excess(alpha) > SIGMAS
    ]
    lines.append(f"\nPromise missed by more than {SIGMAS:g} standard errors: {len(missed)} times")
    for r, alpha in missed:
        where = f"n={r.n} d={r.d} {r.null} {r.kernel} {r.statistic}"
        level = r.levels()[alpha]
        lines.append(f"  {where}: {level:.5f} at {alpha}, {r.excess(alpha):.1f} standard errors")
    return "\n".join(lines)

"""The side-by-side page: index.html, README.md, figures and tables of what has been computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smmd import figures
from smmd.errors import MissingExtra
from smmd.files import atomic_write
from smmd.paper import conclusions
from smmd.paper.blocks import (
    Block,
    Entry,
    Grid,
    Heading,
    Links,
    Picture,
    Text,
    as_html,
    as_markdown,
)
from smmd.paper.items import Item
from smmd.paper.model import SIGMAS, Cell, Result, Table

TITLE = "The paper, again"
LEAD = (
    "Every table, figure and claim of R. M. Rustamov, “Closed-form expressions for maximum mean "
    "discrepancy with applications to Wasserstein auto-encoders”, computed again and set beside "
    "what is printed."
)
Found = Mapping[Item, Result]


def write(folder: Path, found: Found) -> None:
    """The page, twice, with figures and tables in files of their own."""
    pictures = _pictures(folder, found)
    blocks = list(_document(found, pictures))
    for result in found.values():
        for table in result.tables:
            atomic_write(folder / "tables" / f"{table.name}.csv", table.csv())
    atomic_write(folder / "README.md", as_markdown(TITLE, LEAD, blocks))
    atomic_write(folder / "index.html", as_html(TITLE, LEAD, blocks))


def _pictures(folder: Path, found: Found) -> dict[str, bytes]:
    """Each item's figure as SVG, also written to files; none without matplotlib."""
    drawn: dict[str, bytes] = {}
    try:
        with figures.look() as plt:
            for item, result in found.items():
                if item.draw is None:
                    continue
                figure = item.draw(plt, result)
                for kind, data in figures.encode(figure).items():
                    atomic_write(folder / "figures" / f"{item.name}.{kind}", data)
                    if kind == "svg":
                        drawn[item.name] = data
                plt.close(figure)
    except MissingExtra:
        return {}
    return drawn


def _document(found: Found, pictures: Mapping[str, bytes]) -> Iterator[Block]:
    compared = [cell for result in found.values() for cell in result if cell.z is not None]
    differ = [cell for cell in compared if not cell.agrees]
    yield Text(
        f"{len(compared) - len(differ)} of {len(compared)} numbers that can be compared agree "
        f"within {SIGMAS:g} standard errors of the difference; by chance alone about "
        f"{len(compared) * math.erfc(SIGMAS / math.sqrt(2.0)):.1f} would not."
    )
    yield Text(
        "In each cell ours stands first, with its standard error; below it, after ≈ if the two "
        "agree and after ≠ if they do not, what it is compared with and that number's own error: "
        "for a printed number the error of the paper's sample size and of rounding.  Bold is what "
        "lies within 5 % of the best of its method and dimension, as in the paper."
    )
    yield Links(
        (
            ("Conclusions", "conclusions"),
            ("What differs", "differs"),
            *((item.title, item.name) for item in found),
            ("How it was made", "made"),
        )
    )
    yield Heading("The paper's conclusions, tested on our numbers", "conclusions")
    yield _answers(found)
    yield Heading("What does not agree", "differs")
    yield from _differences(found)
    for item, result in found.items():
        yield from _section(item, result, pictures)
    yield Heading("How it was made", "made")
    yield from _made(found)


def _answers(found: Found) -> Block:
    rows = []
    for answer in conclusions.answers({item.name: result for item, result in found.items()}):
        rows.append(
            (
                Entry(answer.claim, kind="wide"),
                Entry(answer.verdict, kind=f"answer-{answer.verdict}", bold=True),
                Entry(answer.evidence, kind="wide"),
                Entry(answer.place),
            )
        )
    if not rows:
        return Text("None of the items computed so far bears on a conclusion.")
    return Grid(("The paper says", "Holds", "Evidence", "Where"), tuple(rows))


def _differences(found: Found) -> Iterator[Block]:
    # What has the same reason stands together.
    groups: dict[tuple[str, str], list[str]] = {}
    for item, result in found.items():
        for table in result.tables:
            for cell in table.compared():
                if cell.agrees:
                    continue
                assert cell.paper is not None
                assert cell.z is not None
                why = item.reason(cell) or _unknown(cell.z)
                ours, beside = (number(v, table.digits) for v in (cell.ours, cell.paper))
                where = ", ".join((*cell.row, cell.column))
                words = f"{where}: {ours} ≠ {beside} ({_sigmas(cell.z)})"
                groups.setdefault((item.title, why), []).append(words)
    if not groups:
        yield Text("Nothing.")
        return
    rows = [
        (Entry(title), Entry(why, kind="wide"), Entry("; ".join(cells), kind="wide"))
        for (title, why), cells in groups.items()
    ]
    headers = ("Item", "Why", "Cells: ours ≠ what it is compared with (in standard errors)")
    yield Grid(headers, tuple(rows))


def _unknown(z: float) -> str:
    """Beyond four standard errors (one number in 16,000) chance is no reason."""
    return "not known" if abs(z) > 4.0 else "perhaps chance: one number in 370 lies so far off"


def _sigmas(z: float) -> str:
    return f"{z:+.1f}".replace("-", "−") if math.isfinite(z) else "both exact"


def _section(item: Item, result: Result, pictures: Mapping[str, bytes]) -> Iterator[Block]:
    yield Heading(item.title, item.name)
    yield Text(f"{item.place}.  {item.about}")
    if item.name in pictures:
        file = f"figures/{item.name}.svg"
        yield Picture(pictures[item.name], file, f"{item.title} ({item.place})")
    for table in result.tables:
        yield _grid(table)
    for note in result.notes:
        yield Text(note, quiet=True)


def _grid(table: Table) -> Grid:
    best, rows, before = table.best(), [], ("",) * len(table.headers)
    cells = {(cell.row, cell.column): cell for cell in table.cells}
    for row in table.rows:
        names = [
            Entry("" if row[: k + 1] == before[: k + 1] else text) for k, text in enumerate(row)
        ]
        before = row
        entries = []
        for column in table.columns:
            cell = cells.get((row, column))
            entries.append(
                Entry("") if cell is None else _entry(cell, table, (row, column) in best)
            )
        rows.append((*names, *entries))
    beside = "" if table.against == "paper" else f" (beside ours: {table.against})"
    return Grid(
        (*table.headers, *table.columns), tuple(rows), table.title + beside, len(table.headers)
    )


def _entry(cell: Cell, table: Table, bold: bool) -> Entry:
    main = number(cell.ours, table.digits)
    if cell.error:
        main += f" ± {number(cell.error, table.digits)}"
    if cell.paper is None:
        return Entry(main, bold=bold, hint=cell.note)
    rest = number(cell.paper, table.digits)
    if cell.paper_error:
        rest += f" ± {number(cell.paper_error, table.digits)}"
    if cell.z is None:
        return Entry(main, rest, bold=bold, hint=cell.note)
    hint = f"{_sigmas(cell.z)} standard errors" + (f"; {cell.note}" if cell.note else "")
    return Entry(main, rest, "yes" if cell.agrees else "no", bold, hint)


def number(value: float, digits: str) -> str:
    """With the table's digits; a small number that they would show as zero keeps one of its own."""
    if not math.isfinite(value):
        return "–"
    shown = format(value, digits)
    if value and not any(c in "123456789" for c in shown.partition("e")[0]):
        shown = f"{value:.1e}"
    return shown.replace("-", "−", 1) if shown.startswith("-") else shown


def _made(found: Found) -> Iterator[Block]:
    rows = []
    for item, result in found.items():
        made: dict[str, Any] = dict(result.made)
        software = ("smmd", "python", "numpy", "scipy", "torch")
        known = {"key", "seconds", "device", "seed", *software}
        sizes = ", ".join(
            f"{name} {value}"
            for name, value in made.items()
            if name not in known and value is not None
        )
        versions = ", ".join(f"{name} {made[name]}" for name in software if name in made)
        rows.append(
            (
                Entry(item.name),
                Entry(f"{made.get('seconds', 0.0):.1f}"),
                Entry(str(made.get("seed", ""))),
                Entry(sizes, kind="wide"),
                Entry(str(made.get("device", "")), kind="wide"),
                Entry(versions, kind="wide"),
            )
        )
    total = sum(float(result.made.get("seconds", 0.0)) for result in found.values())
    yield Text(f"All items together took {total:.0f} seconds.")
    yield Grid(("Item", "Seconds", "Seed", "Sizes", "Machine", "Versions"), tuple(rows))
    names = " ".join(f"--item {item.name}" for item in list(found)[:1])
    yield Text(
        "Again: smmd reproduce --full computes everything, training included; smmd reproduce "
        f"{names} one item; --seed another seed.  tables/ holds every number as CSV, results/ as "
        "JSON."
    )

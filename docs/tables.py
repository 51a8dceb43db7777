"""Write the tables of monitoring.md and sigreg.md into the pages.  `python docs/tables.py`"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import smmd
from smmd import sigreg
from smmd.monitor import Batch

FOLDER = Path(__file__).parent
SIZES = [(64, 2), (128, 8), (1024, 8), (256, 64)]


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def one_batch() -> str:
    """Mean, deviation and 5 % threshold of one normal batch, by how it was normalized."""
    rows = []
    for n, d in SIZES:
        fresh, own = Batch(n, d), Batch(n, d, null="diagonal")
        rows.append(
            [n, d, f"0 ± 1, {fresh.threshold():.2f}", f"{100 * fresh.level(2.0):.1f} %",
             f"{own.mean:.2f} ± {own.sd:.2f}, {own.threshold():.2f}"]
        )  # fmt: skip
    head = ["n", "d", "as it is: mean ± sd, 5 % threshold", "above 2.0",
            "normalized by itself: mean ± sd, 5 % threshold"]  # fmt: skip
    return _table(head, rows)


def false_alarms() -> str:
    """How often normal codes leave three sigmas, below and above."""
    rows = []
    for n, d in SIZES:
        batch = Batch(n, d)
        kinds = [
            smmd.BStatistic(1, 0.0, batch=batch),
            smmd.BStatistic(10, 0.0, batch=batch),
            smmd.BStatistic(100, 0.0, batch=batch),
            smmd.EStatistic(0.9, 10_000, batch=batch),
            smmd.EStatistic(0.99, 10_000, batch=batch),
        ]
        rates = [[100 * rate for rate in kind.false_alarms()] for kind in kinds]
        rows.append([n, d, *(f"{low:.2f} + {high:.2f}" for low, high in rates)])
    head = ["n", "d", "one batch", "B, 10 batches", "B, 100 batches", "E, 0.9", "E, 0.99"]
    return _table(head, rows)


def sigreg_sd() -> str:
    """The standard deviation of SIGReg of normal codes."""
    rows = [
        [d, *(f"{sigreg.null_sd(256, d, k):.3f}" for k in (None, 1024, 256, 16))]
        for d in (2, 8, 16, 64, 128, 512, 2048)
    ]
    return _table(["d", "all directions", "1024", "256", "16"], rows)


TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("monitoring.md", "one batch"): one_batch,
    ("monitoring.md", "false alarms"): false_alarms,
    ("sigreg.md", "sd"): sigreg_sd,
}


def filled(page: str, text: str) -> str:
    """The page's text with its tables as they are now."""
    for (name, mark), make in TABLES.items():
        if name != page:
            continue
        start, end = f"<!-- table: {mark} -->\n", "<!-- /table -->"
        before, _, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not closed:
            raise ValueError(f"{page} has no place for the table {mark!r}")
        text = f"{before}{start}\n{make()}\n\n{end}{after}"
    return text


def main() -> None:
    for page in dict.fromkeys(page for page, _ in TABLES):
        path = FOLDER / page
        path.write_text(filled(page, path.read_text()))


if __name__ == "__main__":
    main()

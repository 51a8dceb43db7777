"""The live display on a terminal: a bar for the run and a table of the last epochs."""

from __future__ import annotations

import math
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from smmd.wae.watch import Clock, clock

#: Epochs in the table, and seconds between two looks at a running epoch.
ROWS, PATIENCE = 8, 0.2


class Live:
    """Redraws in place; what it showed last stays on the screen."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self.rows: list[list[dict[str, Any]]] = []
        self.clock, self.done, self.looked = Clock(1, 0), 0.0, 0.0
        self.live: RichLive | None = None

    def begin(self, title: str, total: int, done: int) -> None:
        self.console.print(title, highlight=False)
        self.clock, self.done = Clock(total, done), float(done)
        self.live = RichLive(self._picture(), console=self.console, refresh_per_second=5)
        self.live.start()

    def note(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False)

    def tick(self, epoch: int, share: float) -> None:
        now = time.monotonic()
        if self.live is not None and now - self.looked > PATIENCE:
            self.looked, self.done = now, epoch - 1 + share
            self.live.update(self._picture())

    def epoch(self, rows: list[dict[str, Any]]) -> None:
        self.rows = [*self.rows, rows][-ROWS:]
        self.done = float(rows[0]["epoch"])
        if self.live is not None:
            self.live.update(self._picture(), refresh=True)

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def _picture(self) -> Group:
        left = self.clock.left(self.done)
        share = self.done / self.clock.total
        full = int(40 * share)
        epoch = min(self.clock.total, math.floor(self.done) + 1)
        bar = Text("━" * full, style="green") + Text("━" * (40 - full), style="dim")
        head = Text(f"epoch {epoch}/{self.clock.total}  ") + bar
        head += Text(f"  {share:4.0%}  {clock(left)} left")
        return Group(head, *([self._table()] if self.rows else []))

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        names = ("epoch", "loss", "mse", "held out", "SMMD² (threshold)", "E", "B")
        for name in names:
            table.add_column(name, justify="right")
        for rows in self.rows:
            for row in rows if rows is self.rows[-1] else rows[:1]:
                over = row["smmd_last"] > row["threshold"]
                table.add_row(
                    str(row["epoch"]),
                    f"{row['loss']:.4f}",
                    f"{row['mse']:.4f}",
                    f"{row['val_mse']:.4f}",
                    Text(
                        f"{row['smmd_last']:+.2f} ({row['threshold']:.2f})",
                        style="yellow" if over else "",
                    ),
                    _banded(row, "e"),
                    _banded(row, "b"),
                )
        return table


def _banded(row: dict[str, Any], name: str) -> Text:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    inside = low <= value <= high
    half = (high - low) / 2
    return Text(f"{value:+.2f} ±{half:.2f}", style="green" if inside else "yellow")

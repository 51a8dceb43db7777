"""What a person sees while training runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol

from smmd.wae.config import VERSIONS, Config


class Watcher(Protocol):
    """Told what happens; must not be slow."""

    def begin(self, title: str, total: int, done: int) -> None:
        """``total`` epochs, of which ``done`` were done before."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def tick(self, epoch: int, share: float) -> None:
        """``share`` of the epoch is done."""

    def epoch(self, rows: list[dict[str, Any]]) -> None:
        """An epoch is finished and kept; one row of the log for each seed."""

    def close(self) -> None:
        """Training ended, well or not."""


class Quiet:
    """Says nothing."""

    def begin(self, title: str, total: int, done: int) -> None: ...

    def note(self, text: str) -> None: ...

    def tick(self, epoch: int, share: float) -> None: ...

    def epoch(self, rows: list[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


class Lines(Quiet):
    """A line for each epoch, for log files and pipes."""

    def __init__(self, out: Any = None) -> None:
        self.out = out
        self.clock = Clock(1, 0)

    def begin(self, title: str, total: int, done: int) -> None:
        self.clock = Clock(total, done)
        self._print(title)

    def note(self, text: str) -> None:
        self._print(text)

    def epoch(self, rows: list[dict[str, Any]]) -> None:
        epoch = rows[0]["epoch"]
        ahead = f"epoch {epoch:>{len(str(self.clock.total))}}/{self.clock.total}"
        left = f"{clock(self.clock.left(float(epoch)))} left"
        for number, row in enumerate(rows):
            cells = [ahead if len(rows) == 1 else f"{ahead} #{number}", *sentence(row)]
            self._print("  ".join([*cells, left]))

    def _print(self, text: str) -> None:
        print(text, file=self.out or sys.stdout, flush=True)


class Clock:
    """How long the rest will take, judged by this process' own pace."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.first, self.start = total, float(done), time.monotonic()

    def left(self, done: float) -> float:
        """Seconds, after ``done`` epochs in all."""
        gone = done - self.first
        spent = time.monotonic() - self.start
        return spent / gone * (self.total - done) if gone > 0 else float("nan")


def sentence(row: dict[str, Any]) -> list[str]:
    """A row of the log in a few words."""
    return [
        f"loss {row['loss']:.4f}",
        f"mse {row['mse']:.4f}, held out {row['val_mse']:.4f}",
        f"SMMD² {row['smmd_last']:+.2f} (< {row['threshold']:.2f})",
        f"E {row['e']:+.2f} ({within(row, 'e')})",
        f"B {row['b']:+.2f} ({within(row, 'b')})",
    ]


def within(row: dict[str, Any], name: str) -> str:
    """Whether a statistic lies in its three-sigma band."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    half = (high - low) / 2
    return f"{'in' if low <= row[name] <= high else 'outside'} ±{half:.2f}"


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    if seconds != seconds:
        return "?"
    whole = int(seconds + 0.5)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def title(config: Config, device: Any, parameters: int, count: int) -> str:
    """What is trained, in a line."""
    seeds = "" if count == 1 else f", {count} seeds at once"
    return (
        f"{config.data}, {config.version} ({VERSIONS[config.version]}): network {config.network} "
        f"with {parameters:,} weights, {config.latent} latent dimensions, {config.epochs} epochs "
        f"on {device}{seeds}"
    )


def choose(quiet: bool) -> Watcher:
    """What suits where the output goes."""
    if quiet:
        return Quiet()
    if sys.stdout.isatty():
        try:
            from smmd.wae.live import Live
        except ImportError:  # rich belongs to the extra "cli"
            return Lines()
        return Live()
    return Lines()

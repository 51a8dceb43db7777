"""Rows of a CSV, written as they are measured: a run that is cut short keeps what it has."""

from __future__ import annotations

import csv
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import triton

from benchmarks import _gpu_timing


def machine() -> dict[str, str]:
    """What stands beside every row."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU (a trial)"
    return {
        "device": name,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
    }


@dataclass
class Record:
    """A table with these columns in ``path`` (or nowhere), until ``seconds`` have passed."""

    columns: Sequence[str]
    path: Path | None
    seconds: float = math.inf
    begun: float = field(default_factory=time.perf_counter)
    rows: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = machine()
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._write([dict(zip(names, names, strict=True)) for names in [self._names()]], "w")

    def _names(self) -> list[str]:
        return [*self.columns, *self.machine]

    def _write(self, rows: list[dict[str, object]], mode: str) -> None:
        assert self.path is not None
        with self.path.open(mode, newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._names(), restval="", lineterminator="\n")
            writer.writerows(rows)

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.begun

    @property
    def over(self) -> bool:
        return self.spent > self.seconds

    def add(self, **row: object) -> None:
        """One more row, on the disk before the next is measured."""
        self.rows.append(row)
        if self.path is not None:
            short = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
            self._write([{**short, **self.machine}], "a")

    def time(
        self,
        work: str,
        shape: tuple[int, ...],
        method: str,
        make: Callable[[], Callable[[], object]],
        *,
        repeats: int = 100,
        budget: float = 0.25,
        graph: bool = False,
    ) -> None:
        """Time what ``make`` gives; what goes wrong is printed and leaves no row."""
        name = f"[{self.spent:4.0f} s] {work} {'x'.join(map(str, shape))} {method}"
        if self.over:
            print(f"{name}: no time left", flush=True)
            return
        try:
            call = make()
            call()  # what is allocated or compiled once is not the call's
            memory = _gpu_timing.peak_memory(call)
            found = _gpu_timing.times(call, repeats, budget)
            replay = _gpu_timing.graph_time(call, repeats, budget) if graph else math.nan
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            return
        low, median, high = (float(v) for v in np.percentile(found, [10, 50, 90]))
        print(
            f"{name}: {median:.4f} ms ({low:.4f} to {high:.4f}), in a graph {replay:.4f}, "
            f"{memory:.2f} MiB",
            flush=True,
        )
        batch, n, d = (1, *shape)[-3:]
        self.add(
            work=work, batch=batch, n=n, d=d, method=method, ms_p10=low, ms_median=median,
            ms_p90=high, graph_ms=replay, MiB=memory, calls=len(found),
        )  # fmt: skip

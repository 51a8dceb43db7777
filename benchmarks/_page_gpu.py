"""The page's part about GPUs."""

from __future__ import annotations

import math
from typing import Any

from benchmarks._page_cpu import draw, finish
from benchmarks._page_rows import Rows, crossover, duration, number, ratio, table

WORK = "value+grad"
GAUSSIAN, SLICED = "smmd Gaussian", "smmd sliced"
#: Shapes beside the paper's listing, and beside SIGReg.
LISTING = [(100, 8), (1024, 64), (16384, 8), (16384, 64), (65536, 8)]
SIGREG = [(256, 8), (256, 64), (256, 512), (1024, 64), (1024, 512), (4096, 8), (4096, 64),
          (4096, 512), (8192, 64), (8192, 512), (16384, 512)]  # fmt: skip

ABSENT = """## On a GPU

There are no results here: a machine with an NVIDIA GPU writes them in two minutes, by

    PYTHONPATH=src python -m benchmarks.gpu --table --check
"""


def text(rows: Rows | None, check: Rows | None) -> str:
    """Tables and what follows from them."""
    if rows is None:
        return ABSENT
    first = rows.rows[0]
    parts = [
        f"## On a GPU\n\n{first['device']}, PyTorch {first['torch']}, Triton {first['triton']}, "
        f"Python {first['python']}; one run. Medians of single calls between CUDA events, "
        "launching included; losses through `smmd.torch.SMMDLoss` and autograd. Memory is what a "
        "call takes beyond its input.\n",
        "![Time against the number of points on a GPU](images/benchmarks-gpu.svg)\n",
        _listing(rows),
        _values(rows),
        _sigreg(rows),
        _crossovers(rows),
        _others(rows),
        "" if check is None else _errors(check),
    ]
    return "\n".join(part for part in parts if part)


def _listing(rows: Rows) -> str:
    lines = []
    for n, d in LISTING:
        ours = rows.seconds(WORK, GAUSSIAN, n, d)
        graph = 1e-3 * rows.field("graph_ms", WORK, GAUSSIAN, n, d)
        eager = rows.seconds(WORK, "listing eager", n, d)
        compiled = rows.seconds(WORK, "listing compiled", n, d)
        lines.append(
            [f"{n:,} × {d}", *map(duration, (eager, compiled, ours, graph)), ratio(eager / ours),
             ratio(eager / graph), _mib(rows, GAUSSIAN, n, d), _mib(rows, "listing eager", n, d)]
        )  # fmt: skip
    head = ["value and gradient", "listing", "compiled", "smmd", "in a CUDA graph",
            "listing / smmd", "listing / graph", "MiB", "of the listing"]  # fmt: skip
    return (
        "The paper's listing, and the same loss here. What takes the time of small samples is the "
        "host, that is Python, autograd and launching: a CUDA graph has none of it.\n\n"
        + table(head, lines)
    )


def _mib(rows: Rows, method: str, n: int, d: int) -> str:
    return number(rows.field("MiB", WORK, method, n, d))


def _limit(rows: Rows, name: str) -> float:
    return next((float(r["rate"]) for r in rows.rows if r["method"] == name), math.nan)


def _values(rows: Rows) -> str:
    limit = _limit(rows, "exponentials/s")
    lines = []
    for work, n, d in (
        ("value", 16384, 8), ("value", 65536, 8), ("value", 65536, 64), ("value", 1_000_000, 8),
        ("value", 1_000_000, 64), (WORK, 65536, 8), (WORK, 65536, 64), (WORK, 131072, 64),
        (WORK, 262144, 64),
    ):  # fmt: skip
        spent = rows.seconds(work, GAUSSIAN, n, d)
        pairs = n * n if work == WORK else 0.5 * n * n
        if not math.isnan(spent):
            lines.append(
                [f"{work.replace('+grad', ' and gradient')}, {n:,} × {d}", duration(spent),
                 duration(pairs / limit), f"{number(100 * pairs / limit / spent)} %"]
            )  # fmt: skip
    if not lines:
        return ""
    copied = _limit(rows, "copied bytes/s")
    return (
        f"Beside the machine's own limit, {number(limit / 1e12)} · 10¹² bare exponentials a second "
        f"(its memory copies {number(copied / 1e12)} TB/s, which nothing here comes near to need): "
        "one exponential for each pair i < j of a value, and for each of all n² with a gradient, "
        "whose rows are independent.\n\n"
        + table(["work", "time", "its exponentials alone", "share"], lines)
    )


def _sigreg(rows: Rows) -> str:
    lines = []
    for n, d in SIGREG:
        eager, compiled = (
            rows.seconds(WORK, f"SIGReg {how}", n, d) for how in ("eager", "compiled")
        )
        cells = [duration(eager), duration(compiled)]
        for method in (GAUSSIAN, SLICED):
            ours = rows.seconds(WORK, method, n, d)
            cells += [duration(ours), f"{ratio(eager / ours)}, {ratio(compiled / ours)}"]
        memory = rows.field("MiB", WORK, "SIGReg eager", n, d)
        share = memory / rows.field("MiB", WORK, GAUSSIAN, n, d)
        cells += [number(memory), "–" if math.isnan(share) else f"1/{share:.0f}"]
        lines.append([f"{n:,} × {d}", *cells])
    head = ["value and gradient", "SIGReg", "compiled", "Gaussian", "times", "exact sliced",
            "times", "MiB of SIGReg", "Gaussian's share"]  # fmt: skip
    return (
        "SIGReg's algorithm, 1024 random slices and 17 knots, samples what the exact sliced kernel "
        "has in closed form (eager and compiled, and how many times faster the exact losses are):"
        "\n\n" + table(head, lines)
    )


def _crossovers(rows: Rows) -> str:
    lines = []
    for d in (64, 512):
        for method in (GAUSSIAN, SLICED):
            ours = rows.line(WORK, method, d)
            cells = [
                crossover(ours, rows.line(WORK, f"SIGReg {how}", d)) or "–"
                for how in ("eager", "compiled")
            ]
            lines.append([f"{method}, d = {d}", *cells])
    return (
        "**Where SIGReg wins.** Its cost is linear in n, that of the exact losses quadratic. From "
        "these n on it is the faster:\n\n"
        + table(["", "than SIGReg eager", "than SIGReg compiled"], lines)
    )


#: What the rows do not show yet.
PENDING = """
Changed since these runs, correct in Triton's interpreter and not yet measured on a GPU: beyond 64
dimensions norms are stored more exactly; `SlicedLoss` has kernels of its own.
"""


def _others(rows: Rows) -> str:
    lines = []
    for how in ("eager", "inside torch.compile"):
        spent = rows.seconds("CodeNorm+loss", how, 256, 64)
        lines.append([f"`CodeNorm` and `SMMDLoss`, 256 × 64, {how}", duration(spent)])
    graph = 1e-3 * rows.field("graph_ms", "CodeNorm+loss", "eager", 256, 64)
    lines.append(["`CodeNorm` and `SMMDLoss`, 256 × 64, in a CUDA graph", duration(graph)])
    for n, d in ((100, 8), (256, 64)):
        spent = rows.seconds(WORK, "autograd alone", n, d)
        if not math.isnan(spent):
            lines.append([f"autograd alone, without any loss, {n} × {d}", duration(spent)])
    for work in ("value", WORK):
        spent = rows.seconds(work, GAUSSIAN, 100, 8, batch=10_000)
        what = work.replace("+grad", " and gradient")
        lines.append([f"10,000 samples of 100 × 8, {what}", duration(spent)])
    for n, d in ((1024, 64), (16384, 8), (16384, 64)):
        for method in ("three scales", "IMQ"):
            spent = rows.seconds(WORK, f"smmd {method}", n, d)
            lines.append([f"{method}, {n:,} × {d}, value and gradient", duration(spent)])
    return table(["also", "time"], [line for line in lines if line[1] != "–"])


def _errors(check: Rows) -> str:
    lines = []
    for n in sorted({int(row["n"]) for row in check.rows}):
        here = [row for row in check.rows if int(row["n"]) == n]
        value = max(abs(float(row[k])) for row in here for k in ("value", "value+grad"))
        slopes = [float(row["gradient"]) for row in here]
        at_once = [float(r["gradient"]) for r in here if int(r["d"]) <= 64 and r["path"] != "strip"]
        share = max(at_once) if at_once else math.nan
        lines.append(
            [f"{n:,}", str(len(here)), f"{value:.1e}", f"{share:.1e}", f"{max(slopes):.1e}"]
        )
    where = ", ".join(f"{d:,}" for d in sorted({int(row["d"]) for row in check.rows}))
    same = all(float(row["same bits"]) == 1.0 for row in check.rows)
    return (
        f"Errors of every kernel against float64, the largest over kernels, paths and d = {where}: "
        "of SMMD² in null standard deviations, of the gradient relative to its norm (beyond "
        "64 dimensions its weights have eight bits)."
        + (" The same input gave the same bits each time.\n\n" if same else "\n\n")
        + table(["n", "cases", "value", "gradient, d ≤ 64", "gradient, all d"], lines)
        + PENDING
    )


def figure(rows: Rows, plt: Any, figures: Any) -> Any:
    """Time against n, beside the listing and SIGReg."""
    drawing, axes = plt.subplots(1, 3, figsize=(9.6, 3.2), sharey=True)
    for axis, d in zip(axes, (8, 64, 512), strict=True):
        for k, method in enumerate(
            (GAUSSIAN, SLICED, "listing eager", "SIGReg eager", "SIGReg compiled")
        ):
            line = rows.line(WORK, method, d)
            draw(axis, [(n, 1e3 * t) for n, t in line], method, k, figures)
        axis.set(title=f"value and gradient, d = {d}", xlabel="points n")
        finish(axis)
    axes[0].set_ylabel("milliseconds")
    return drawing

"""The page's part about CPUs."""

from __future__ import annotations

import math
from typing import Any

from benchmarks._page_rows import Rows, crossover, duration, number, table

#: What methods are called on the page, and what they compute.
NAMES = {
    "smmd float64": "`smmd.smmd`, float64",
    "smmd float32": "`smmd.smmd`, float32",
    "smmd test": "`smmd.normality_test`",
    "smmd HZ test": "`smmd.normality_test`, Henze–Zirkler",
    "pingouin": "pingouin, `multivariate_normality`",
    "KeOps": "KeOps, sum of kernel values",
    "geomloss": "geomloss, Gaussian MMD",
    "alibi-detect": "alibi-detect, `mmd2`",
    "ignite": "ignite, MMD",
    "frouros": "frouros, MMD",
    "hyppo": "hyppo, MMD",
    "smmd loss": "`SMMDLoss`",
    "smmd sliced loss": "`SMMDLoss`, sliced kernel",
    "listing loss": "the paper's listing",
    "listing loss compiled": "the listing, `torch.compile`",
    "SIGReg loss": "SIGReg, 1024 slices",
    "KeOps loss": "KeOps, kernel sum",
    "geomloss loss": "geomloss, Gaussian MMD",
}


def text(rows: Rows) -> str:
    """Tables and what follows from them."""
    any_row = rows.rows[0]
    shared = any_row["clock"] == "processor"
    cores = "one core" if any_row["cores"] == "1" else f"{any_row['cores']} cores"
    clock = "seconds of the processor, since the machine had other work" if shared else "wall time"
    versions = sorted(
        {f"{r['method'].split()[0]} {r['version']}" for r in rows.rows if r["method"] in NAMES}
    )
    parts = [
        f"## On a CPU\n\n{any_row['cpu']}, {cores}, {clock}; Python {any_row['python']}, NumPy "
        f"{any_row['numpy']} for smmd. Medians of single calls; memory is what a process's largest "
        "resident size grows by. Two-sample estimators get as many draws from N(0, I) as there are "
        "points. Versions: " + ", ".join(v for v in versions if not v.startswith(("exp", "batch")))
        + ".\n",
        "![Time against the number of points](images/benchmarks-cpu.svg)\n",
        _values(rows),
        _gradients(rows),
        _limits(rows),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)


def _values(rows: Rows) -> str:
    n = 20_000
    ours, theirs = rows.find("value", "smmd test", n, 8), rows.find("value", "pingouin", n, 8)
    lead = ""
    while theirs is None and n > 1000:
        n //= 4
        ours, theirs = rows.find("value", "smmd test", n, 8), rows.find("value", "pingouin", n, 8)
    if ours and theirs:
        faster = rows.seconds("value", "pingouin", n, 8) / rows.seconds("value", "smmd test", n, 8)
        share = float(theirs["MiB"]) / max(float(ours["MiB"]), 0.1)
        lead = (
            f"Of {n:,} × 8 points `smmd.normality_test` is {number(faster)} times as fast as "
            f"`pingouin.multivariate_normality`, with 1/{share:.0f} of its memory.\n\n"
        )
    lines = []
    for method in rows.methods("value", 5000, 8):
        cells = [rows.seconds("value", method, n, 8) for n in (1000, 5000, 20_000)]
        memory = rows.field("MiB", "value", method, 20_000, 8)
        lines.append([NAMES[method], *map(duration, cells), number(memory)])
    head = ["value, d = 8", "n = 1,000", "5,000", "20,000", "MiB at 20,000"]
    return (
        lead + table(head, lines) + "\nA dash: more than a minute, or more memory than there was.\n"
    )


def _gradients(rows: Rows) -> str:
    lines = []
    for method in rows.methods("value+grad", 1000, 8):
        cells = [rows.seconds("value+grad", method, n, 8) for n in (100, 1000, 5000, 20_000)]
        wide = [rows.seconds("value+grad", method, 2000, d) for d in (64, 512)]
        lines.append([NAMES[method], *map(duration, [*cells, *wide])])
    head = ["value and gradient", "100 × 8", "1,000 × 8", "5,000 × 8", "20,000 × 8", "2,000 × 64",
            "2,000 × 512"]  # fmt: skip
    found = table(head, lines)
    lost = [
        f"{n:,} × {d}"
        for n, d in ((100, 8), (1000, 8), (5000, 8), (20_000, 8), (2000, 64), (2000, 512))
        if rows.seconds("value+grad", "listing loss", n, d)
        < rows.seconds("value+grad", "smmd loss", n, d)
    ]
    if lost:
        found += f"\nThe paper's listing, all in float32, is faster at {' and '.join(lost)}.\n"
    cross = crossover(
        rows.line("value+grad", "smmd loss", 8), rows.line("value+grad", "SIGReg loss", 8)
    )
    if cross:
        found += (
            "\nSIGReg's cost is linear in n: at d = 8 the number of points from which on it is "
            f"faster than the exact loss is {cross}.\n"
        )
    return found


def _limits(rows: Rows) -> str:
    lines = []
    for dtype in ("float64", "float32"):
        limit = 65_536 * 2000 / rows.seconds("limit", f"exp {dtype}", 1_000_000, 1)
        cells = []
        for n in (5000, 20_000, 100_000, 200_000):
            rate = 0.5 * n * (n - 1) / rows.seconds("value", f"smmd {dtype}", n, 8)
            share = f"{number(rate / 1e9)} ({number(100 * rate / limit)} %)"
            cells.append("–" if math.isnan(rate) else share)
        many = 10_000 * 4950 / rows.seconds("10,000 samples", f"batch {dtype}", 100, 8)
        lines.append([dtype, number(limit / 1e9), *cells, number(many / 1e9)])
    head = ["10⁹ a second", "bare `np.exp`", "pairs, n = 5,000", "20,000", "100,000", "200,000",
            "10,000 samples of 100"]  # fmt: skip
    found = (
        "Distance to the machine's limit: pairs i < j per second at d = 8, beside exponentials per "
        "second in the cache. Past some 40,000 points float32 data are summed in float64, since "
        "what float32 exponentials have in common adds up.\n\n" + table(head, lines)
    )
    largest = [n for n in (100_000, 200_000) if rows.find("value", "smmd float64", n, 8)]
    if largest:
        n = largest[-1]
        million = rows.seconds("value", "smmd float64", n, 8) * (1e6 / n) ** 2
        memory = rows.field("MiB", "value", "smmd float64", n, 8)
        found += (
            f"\nAt the rate of {n:,} points, a million of them take {duration(million)} on this; a "
            f"bar shows how far it is. {n:,} points took {number(memory)} MiB beyond the input.\n"
        )
    return found


def figure(rows: Rows, plt: Any, figures: Any) -> Any:
    """Time against n for values and for losses, and against d."""
    drawing, axes = plt.subplots(1, 3, figsize=(9.6, 3.2))
    shown = [
        ("value", ["smmd float64", "smmd float32", "pingouin", "KeOps", "geomloss", "alibi-detect",
                   "ignite", "frouros", "hyppo"], "value, d = 8"),
        ("value+grad", ["smmd loss", "smmd sliced loss", "listing loss", "SIGReg loss",
                        "KeOps loss", "geomloss loss"], "value and gradient, d = 8"),
    ]  # fmt: skip
    for axis, (work, methods, title) in zip(axes, shown, strict=False):
        for k, method in enumerate(methods):
            draw(axis, rows.line(work, method, 8), label(method), k, figures)
        axis.set(title=title, xlabel="points n", ylabel="seconds")
    for k, method in enumerate(("smmd float64", "smmd float32", "KeOps")):
        line = [(d, rows.seconds("value", method, 5000, d)) for d in (2, 8, 32, 128, 512)]
        draw(axes[2], [p for p in line if not math.isnan(p[1])], label(method), k, figures)
    axes[2].set(title="value, n = 5,000", xlabel="dimension d", ylabel="seconds")
    for axis in axes:
        finish(axis)
    return drawing


def finish(axis: Any) -> None:
    """Logarithms, and what is what."""
    axis.set(xscale="log", yscale="log")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7)


def label(method: str) -> str:
    return method.replace(" loss", "")


def draw(axis: Any, line: list[tuple[int, float]], name: str, k: int, figures: Any) -> None:
    """One method's line: ours thick and blue, others in the colours that are left."""
    if not line:
        return
    ours = name.startswith("smmd")
    colours = (figures.RED, figures.GOLD, figures.GREEN, figures.INK, figures.GREY)
    style = {"color": figures.BLUE if ours else colours[k % 5], "linewidth": 2.0 if ours else 1.1}
    dashes = "-" if (ours and k == 0) or (not ours and k < 5) else "--"
    axis.plot(*zip(*line, strict=True), dashes, marker="o", markersize=2.5, label=name, **style)

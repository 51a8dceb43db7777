"""Table "WAEQuantitative" and Figure "WAE-results": three versions of a WAE, several seeds each.

Each version's measures are a file of their own, written as soon as it is trained, and the page
shows what there is: an interruption costs one version, and versions may come from several machines.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smmd.files import atomic_write
from smmd.paper import trained
from smmd.paper.items import Item
from smmd.paper.model import Cell, Result, Table, rounding, together
from smmd.paper.work import Work

if TYPE_CHECKING:
    from smmd.wae import Run

#: As printed: test MSE, normalized kurtosis, skewness, B-statistic.
PRINTED = {
    "code-norm": ("0.0156", "-0.90", "0.56", "0.355"),
    "adaptive-bn": ("0.0244", "6.85", "2.80", "0.449"),
    "adaptive-plain": ("0.0242", "3.81", "2.35", "0.519"),
}
#: Our columns, and where the printed number stands.
COLUMNS = {
    "test MSE": ("mse", 0),
    "kurtosis": ("kurtosis", 1),
    "skewness": ("skewness", 2),
    "B": ("b", 3),
    "B, fixed width": ("b_fixed", None),
}
#: Three sigmas of a B-statistic over 50 batches.
BAND = 3.0 / math.sqrt(trained.BATCHES)
#: Pictures of each kind: rows and columns.
GRID, SLICE, SLICE_REACH = (6, 10), (8, 8), 2.0


def compute(work: Work) -> Result:
    for k, version in enumerate(PRINTED):
        if _suits(_read(work.folder, version), work.asked):
            continue
        start = time.perf_counter()
        runs = trained.runs(work, version, k / len(PRINTED), (k + 1) / len(PRINTED))
        work.show(f"{version}, measuring", (k + 1) / len(PRINTED))
        found = measure(runs)
        _keep(work.folder, version, found, work.made(time.perf_counter() - start, True))
    result = gather(work.folder)
    assert result is not None
    return result


def _suits(kept: dict[str, Any] | None, asked: Mapping[str, Any]) -> bool:
    """Whether what is kept was made as it is asked for, with as many seeds or more."""
    if kept is None or kept["recipe"] != ITEM.recipe or len(kept["seeds"]) < asked["waes"]:
        return False
    made = kept["made"]
    return all(made.get(name) == asked[name] for name in asked if name not in ("key", "waes"))


def adopt(folder: Path, runs: Sequence[Run]) -> None:
    """Measure runs that were trained elsewhere, as their version's part of the item."""
    first = runs[0]
    config, version, name = first.config, first.config.version, first.record["data"]["name"]
    if version not in PRINTED:
        raise ValueError(f"the runs are of version {version!r}; the paper has {', '.join(PRINTED)}")
    for run in runs:
        alike = replace(run.config, seed=config.seed) == config
        if not alike or run.record["data"]["sha256"] != first.record["data"]["sha256"]:
            raise ValueError("the runs differ in more than their seeds")
        if not run.finished:
            raise ValueError(f"the run of seed {run.config.seed} is not finished")
    # Runs that this item would have trained itself are as good as its own.
    seed, start = divmod(config.seed, trained.SEEDS_APART)
    in_order = [run.config.seed - config.seed for run in runs] == list(range(len(runs)))
    ours = start == 0 and in_order and config == trained.own(config)
    machine = first.record["machine"]
    made = {
        "key": "",
        "seed": seed if ours else f"{config.seed} and on",
        "waes": len(runs),
        "wae_preset": config.preset,
        "wae_epochs": None,
        "data": name,
        "seconds": round(sum(row["seconds"] for run in runs for row in run.log), 1),
        "device": machine["gpu"] or "CPU",
        **first.record["versions"],
    }
    _keep(folder, version, measure(runs), made)


def measure(runs: Sequence[Run]) -> dict[str, Any]:
    """All that the page says of a version's runs."""
    config, data = runs[0].config, runs[0].record["data"]
    return {
        "data": data["name"],
        "train": data["train"],
        "test": data["test"],
        "preset": config.preset,
        "epochs": config.epochs,
        "precision": config.precision,
        "numbers": [run.config.seed for run in runs],
        "seeds": [trained.measured(run) for run in runs],
        "pictures": _pictures(runs[0]),
    }


def _keep(folder: Path, version: str, found: dict[str, Any], made: dict[str, Any]) -> None:
    text = json.dumps({"recipe": ITEM.recipe, "made": made, **found})
    atomic_write(folder / f"{version}.json", text + "\n")


def _read(folder: Path, version: str) -> dict[str, Any] | None:
    """What is kept of a version; what cannot be read is as good as nothing."""
    try:
        found = json.loads((folder / f"{version}.json").read_text(encoding="utf-8"))
        wanted = {"recipe", "made", "seeds", "numbers", "pictures", "precision"}
        return found if wanted <= set(found) else None
    except (FileNotFoundError, ValueError, TypeError):
        return None


def gather(folder: Path) -> Result | None:
    """The table and figure of the versions that the folder holds; each may have its own recipe."""
    found = {v: kept for v in PRINTED if (kept := _read(folder, v)) is not None}
    if not found:
        return None
    means, single, middles = [], [], []
    for version, one in found.items():
        pooled = trained.over_seeds(one["seeds"])
        row = (version, f"{_many(len(one['seeds']), 'seed')}, {_many(one['epochs'], 'epoch')}")
        note = trained.remark(one["preset"], version, one["epochs"], one["data"])
        for column, (name, place) in COLUMNS.items():
            mean, error, spread = pooled[name]
            printed = None if place is None else PRINTED[version][place]
            paper = None if printed is None else float(printed)
            # The paper trained once: its number varies as one of our seeds does.
            theirs = None if printed is None else math.hypot(spread, rounding(printed))
            means.append(Cell(row, column, mean, error, paper, theirs, note))
            middle = float(np.median([values[name] for values in one["seeds"]]))
            middles.append(Cell((version,), column, middle, note=note))
            for seed, values in zip(one["numbers"], one["seeds"], strict=True):
                single.append(Cell((version, str(seed)), column, values[name]))
    recipes = dict.fromkeys(
        f"Trained on {one['data']} ({one['train']:,} digits, preset {one['preset']!r}); measured "
        f"on its {one['test']:,} test digits; arithmetic {one['precision']}."
        for one in found.values()
    )
    return Result(
        (
            Table(
                "wae",
                "Means over seeds, with the standard error of the mean",
                ("Version", "Trained"),
                tuple(means),
                digits=".4f",
            ),
            Table(
                "wae-medians",
                "Medians over seeds, of which one may have collapsed",
                ("Version",),
                tuple(middles),
                digits=".4f",
            ),
            Table("wae-seeds", "Every seed", ("Version", "Seed"), tuple(single), digits=".4f"),
        ),
        data={version: one["pictures"] for version, one in found.items()},
        notes=(
            *recipes,
            "A printed number's error is the spread between our seeds: the paper trained each "
            "version once, and one training says little.",
            "B is the mean SMMD² of 50 batches of 100 test codes, drawn without regard to their "
            "order, with the kernel of the version's own penalty; the last column has the fixed "
            f"width for all versions.  Its three-sigma band is ±{BAND:.3f}.",
            "Pictures are of the first seed.  In (a) odd rows are the real images.",
        ),
        made=together([one["made"] for one in found.values()]),
    )


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _pictures(run: Run) -> dict[str, Any]:
    test = run.dataset().test
    rows, columns = GRID
    real = test[: rows // 2 * columns]
    again = run.reconstruct(real)[:, 0]
    real = real[:, 0] / (255.0 if real.dtype == np.uint8 else 1.0)
    size = real.shape[-2:]
    pairs = np.stack([real.reshape(-1, columns, *size), again.reshape(-1, columns, *size)], axis=1)
    rng = np.random.default_rng([run.config.seed, 1])
    random = run.decode(rng.standard_normal((rows * columns, run.config.latent)))[:, 0]
    # A plane through the origin: two orthonormal directions.
    plane = np.linalg.qr(rng.standard_normal((run.config.latent, 2)))[0]
    axis = [np.linspace(-SLICE_REACH, SLICE_REACH, count) for count in SLICE]
    grid = np.stack(np.meshgrid(*axis, indexing="ij"), axis=-1).reshape(-1, 2)
    plane_images = run.decode(grid @ plane.T)[:, 0]
    return {
        "reconstruction": trained.pack(pairs.reshape(rows, columns, *size)),
        "samples": trained.pack(random.reshape(rows, columns, *size)),
        "slice": trained.pack(plane_images.reshape(*SLICE, *size)),
    }


def draw(plt: Any, result: Result) -> Any:
    kinds = {
        "reconstruction": "(a) test reconstruction",
        "samples": "(b) random samples",
        "slice": "(c) slice through code space",
    }
    figure, axes = plt.subplots(
        len(result.data), len(kinds), figsize=(8.4, 2.0 * len(result.data)), squeeze=False,
        gridspec_kw={"width_ratios": [GRID[1] / GRID[0], GRID[1] / GRID[0], 1.0]},
    )  # fmt: skip
    for ax, title in zip(axes[0], kinds.values(), strict=True):
        ax.set_title(title)
    for row, (version, pictures) in zip(axes, result.data.items(), strict=True):
        for ax, kind in zip(row, kinds, strict=True):
            ax.imshow(trained.unpack(pictures[kind]), cmap="gray", vmin=0, vmax=255)
            ax.set_xticks([])
            ax.set_yticks([])
            for spine in ax.spines.values():
                spine.set_visible(False)
        row[0].set_ylabel(version)
    return figure


def reason(cell: Cell) -> str:
    if cell.note:
        return cell.note
    return "the paper gives one training, whose luck the spread between seeds describes only so far"


ITEM = Item(
    name="wae",
    title="Wasserstein auto-encoders on MNIST",
    place="Table 3, “WAEQuantitative”, and Figure 7, “WAE-results”",
    about="Code normalization against adaptive kernel widths: error, shape of the codes, pictures.",
    compute=compute,
    uses=("waes", "wae_preset", "wae_epochs"),
    draw=draw,
    reason=reason,
    needs_training=True,
    turn=2,
    gather=gather,
)

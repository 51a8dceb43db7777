"""Table "WAEQuantitative" and Figure "WAE-results": three versions of a WAE, several seeds each."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from smmd.paper import trained
from smmd.paper.items import Item
from smmd.paper.model import Cell, Result, Table, rounding
from smmd.paper.work import Work

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
#: Pictures of each kind: rows and columns.
GRID, SLICE, SLICE_REACH = (6, 10), (8, 8), 2.0


def compute(work: Work) -> Result:
    found = {
        version: work.part(version, k / len(PRINTED), partial(_version, work, version))
        for k, version in enumerate(PRINTED)
    }
    note = remark(work)
    means, single = [], []
    for version, one in found.items():
        pooled = trained.over_seeds(one["seeds"])
        for column, (name, place) in COLUMNS.items():
            mean, error, spread = pooled[name]
            paper = None if place is None else PRINTED[version][place]
            # The paper trained once: its number varies as one of our seeds does.
            theirs = None if paper is None else math.hypot(spread, rounding(paper))
            cell = Cell(
                (version,), column, mean, error, None if paper is None else float(paper), theirs
            )
            means.append(cell if not note else Cell(**{**vars(cell), "note": note}))
            for seed, row in zip(one["numbers"], one["seeds"], strict=True):
                single.append(Cell((version, str(seed)), column, row[name]))
    data = trained.dataset(work.settings)
    seeds = work.sizes.waes
    return Result(
        (
            Table(
                "wae",
                f"Means over {seeds} seeds a version, with the standard error of the mean",
                ("Version",),
                tuple(means),
                digits=".4f",
            ),
            Table("wae-seeds", "Every seed", ("Version", "Seed"), tuple(single), digits=".4f"),
        ),
        data={version: one["pictures"] for version, one in found.items()},
        facts={"seeds": float(seeds)},
        notes=(
            f"Trained on {data.name} ({len(data.train):,} digits, preset "
            f"{work.sizes.wae_preset!r}); measured on its {len(data.test):,} test digits.",
            "A printed number's error is the spread between our seeds: the paper trained each "
            "version once, and one training says little.",
            "B is the mean SMMD² of 50 batches of 100 test codes, drawn without regard to their "
            "order, with the kernel of the version's own penalty; the last column has the fixed "
            "width for all versions.  Its three-sigma band is ±0.424.",
            "Pictures are of the first seed.  In (a) odd rows are the real images.",
        ),
    )


def remark(work: Work) -> str:
    """Why numbers of a small run are not the paper's."""
    sizes = work.sizes
    if sizes.wae_preset != "paper":
        return "a smaller network and fewer epochs than the paper's"
    if sizes.wae_epochs not in (None, 60):
        return f"schedule of {sizes.wae_epochs} epochs ({4 * sizes.wae_epochs // 3} if adaptive)"
    return "" if work.settings.data == "mnist" else "other images than the paper's"


def _version(work: Work, version: str) -> dict[str, Any]:
    runs = trained.runs(work.settings, version, work.device)
    return {
        "numbers": [run.config.seed for run in runs],
        "seeds": [trained.measured(work, run) for run in runs],
        "pictures": _pictures(work, runs[0]),
    }


def _pictures(work: Work, run: Any) -> dict[str, Any]:
    test = trained.dataset(work.settings).test
    rows, columns = GRID
    real = test[: rows // 2 * columns]
    again = run.reconstruct(real)[:, 0]
    real = real[:, 0] / (255.0 if real.dtype == np.uint8 else 1.0)
    size = real.shape[-2:]
    pairs = np.stack([real.reshape(-1, columns, *size), again.reshape(-1, columns, *size)], axis=1)
    rng = np.random.default_rng([work.settings.seed, 1])
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
    for row, (version, pictures) in zip(axes, result.data.items(), strict=True):
        for ax, (kind, title) in zip(row, kinds.items(), strict=True):
            ax.imshow(trained.unpack(pictures[kind]), cmap="gray", vmin=0, vmax=255)
            ax.set_xticks([])
            ax.set_yticks([])
            for spine in ax.spines.values():
                spine.set_visible(False)
            if row is axes[0]:
                ax.set_title(title)
        row[0].set_ylabel(version)
    return figure


def reason(cell: Cell) -> str:
    if cell.note:
        return cell.note
    return "the paper gives one training, whose luck the spread between seeds describes only so far"


ITEM = Item(
    name="wae",
    title="Wasserstein auto-encoders on MNIST",
    place="Table “WAEQuantitative” and Figure “WAE-results”",
    about="Code normalization against adaptive kernel widths: error, shape of the codes, pictures.",
    compute=compute,
    uses=("waes", "wae_preset", "wae_epochs"),
    draw=draw,
    reason=reason,
    needs_training=True,
    turn=3,
)

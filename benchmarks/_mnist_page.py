"""What ``benchmarks.mnist`` found, as a part of docs/training.md with a picture."""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from smmd.files import atomic_write
from smmd.kernels import Gaussian
from smmd.paper.trained import over_seeds
from smmd.paper.wae import PRINTED
from smmd.wae import images, latent, load, sample

DOCS = Path(__file__).parent.parent / "docs"
MARKS = ("<!-- mnist -->\n", "<!-- /mnist -->")
#: Our measure, a heading, its digits, and where the paper prints it.
MEASURES = (
    ("mse", "test MSE", 4, 0),
    ("kurtosis", "normalized kurtosis", 2, 1),
    ("skewness", "skewness", 2, 2),
    ("b", "B", 3, 3),
)


def write(folder: Path, docs: Path = DOCS) -> None:
    """Put the tables between the marks of training.md, and the picture into images/."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    parts = [part for part in results["parts"] if "measures" in part]
    if not parts:
        raise SystemExit(f"{folder} holds no finished training")
    most = max(parts, key=lambda part: part["seeds"])
    text = "\n## Full MNIST\n\n"
    text += "\n".join([seconds(results, parts), spread(most), latent_space(folder, most)])
    if (folder / "seed-0.tar").is_file():
        atomic_write(docs / "images" / "mnist.png", picture(folder / "seed-0.tar"))
        text += "\n![Random samples, and a slice of the code space](images/mnist.png)\n\n"
        text += "Left: images of random codes; right: of a plane through the origin. Seed 0.\n"
    page = docs / "training.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if not after:
        raise SystemExit(f"{page} lacks the marks {MARKS[0].strip()} and {MARKS[1]}")
    atomic_write(page, before + MARKS[0] + text + MARKS[1] + after)


def seconds(results: dict[str, Any], parts: list[dict[str, Any]]) -> str:
    """How long it took, by the number of seeds at once."""
    config = parts[0]["config"]
    epochs = len(parts[0]["log"])
    lines = [
        f"Measured by `{results['command']}` on one {results['device']}, PyTorch "
        f"{results['torch']}, arithmetic {config['precision']}: {epochs} epochs of the "
        f"`{config['preset']}` preset, {config['version']}.\n",
        "| seeds at once | seconds of training | seconds a seed | an epoch | in all |",
        "|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {part['seeds']} | {part['train_s']:.1f} | {part['train_s'] / part['seeds']:.1f} | "
        f"{epoch_seconds(part):.2f} | {part['fit_s']:.1f} |"
        for part in parts
    ]
    lines.append(
        "\nAn epoch is the median one, of all seeds together. The last column counts validation, "
        "and making the steps ready before the first epoch, too.\n"
    )
    return "\n".join(lines)


def epoch_seconds(part: dict[str, Any]) -> float:
    """The median epoch's, of all seeds together."""
    return float(np.median([sum(row["seconds"] for row in rows) for rows in part["log"]]))


def spread(part: dict[str, Any]) -> str:
    """What the paper's table reports, over seeds."""
    rows, printed = part["measures"], PRINTED.get(part["version"])
    pooled = over_seeds([{k: v for k, v in row.items() if k != "seed"} for row in rows])
    lines = [
        f"| {len(rows)} seeds | mean ± sd over seeds | least … greatest | paper, one training |",
        "|---|---:|---:|---:|",
    ]
    for name, heading, digits, place in MEASURES:
        values = np.array([row[name] for row in rows])
        mean, _, sd = pooled[name]
        cells = (
            f"{mean:.{digits}f} ± {sd:.{digits}f}",
            f"{values.min():.{digits}f} … {values.max():.{digits}f}",
            "" if printed is None else f"{float(printed[place]):.{digits}f}",
        )
        lines.append(f"| {heading} | {' | '.join(cells)} |".replace("-", "−"))
    return "\n".join(lines) + "\n"


def latent_space(folder: Path, part: dict[str, Any]) -> str:
    """The codes of the test images, by their B-statistic and all at once."""
    kernel = Gaussian(part["config"]["scale"])
    with np.load(folder / "codes.npz") as kept:
        codes = [kept[name].astype(np.float64) for name in kept.files]
    inside = sum(latent.b_statistic(z, kernel).inside for z in codes)
    found = [latent.whole(z, kernel) for z in codes]
    needed = [one.codes_needed for one in found if one.codes_needed is not None]
    text = (
        f"B lies in its exact band for {inside} of {len(codes)} seeds. All {len(codes[0]):,} test "
        f"codes at once give SMMD² = {np.median([one.smmd for one in found]):.1f} in the median"
    )
    if needed:
        text += f", a departure that shows from about {np.median(needed):,.0f} codes on"
    return text + ".\n"


def picture(archive: Path, side: int = 10) -> bytes:
    """Random samples and a slice side by side."""
    with tempfile.TemporaryDirectory() as top, tarfile.open(archive) as tar:
        tar.extractall(top, filter="data")
        run = load(Path(top) / "seed-0")
    d = run.config.latent
    codes = sample.draws(side * side, d, seed=1), sample.plane_slice(d, side)
    left, right = (images.tile(run.decode(z), side) for z in codes)
    gap = np.full((len(left), 20, left.shape[2]), 255, np.uint8)
    return images.encode(np.concatenate([left, gap, right], axis=1))

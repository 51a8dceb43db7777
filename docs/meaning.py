"""Draw the README's picture: what values of SMMD² mean.  `python docs/meaning.py`"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import smmd

N, D, REPEATS = 100, 8, 20_000


def draw(path: Path) -> None:
    rng = np.random.default_rng(0)
    shape = (REPEATS, N, D)
    normal = rng.standard_normal(shape)
    samples = {
        "N(0, I)": normal,
        "N(0, I), code-normalized by its own batch": smmd.standardize(normal),
        "uniform, mean 0, variance 1": rng.uniform(-(3**0.5), 3**0.5, (REPEATS // 4, N, D)),
        "N(0, 0.75 I): variance too small": normal[: REPEATS // 4] * 0.75**0.5,
    }
    colours = ("#1f5a94", "#8fb4d9", "#c96f2b", "#7a7a7a")
    plt.rcParams.update({"font.size": 10, "svg.hashsalt": "smmd", "svg.fonttype": "none"})
    figure, axis = plt.subplots(figsize=(8.2, 3.1))
    bins = np.linspace(-4, 14, 181)
    for (label, z), colour in zip(samples.items(), colours, strict=True):
        values = smmd.smmd(z)
        axis.hist(
            values,
            bins,
            density=True,
            histtype="stepfilled",
            alpha=0.55,
            color=colour,
            label=f"{label}: {values.mean():.1f} ± {values.std():.1f}",
        )
        if label == "N(0, I)":
            level = float((values > 2.0).mean())
            error = (level * (1.0 - level) / len(values)) ** 0.5
    axis.axvline(2.0, color="black", lw=1)
    note = f"2.0: the rule of thumb,\nlevel {100 * level:.1f} ± {100 * error:.1f} % here"
    axis.annotate(note, (2.0, 0.93), (2.25, 0.93), xycoords=("data", "axes fraction"), va="top")
    axis.set(xlabel=f"SMMD² of one batch (n = {N}, d = {D}, scale 1/8)", yticks=[], xlim=(-4, 14))
    axis.spines[["left", "top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="center right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).parent / "images" / "meaning.svg")

"""Section 4: take code normalization out of a trained network, train on, and kurtosis rises."""

from __future__ import annotations

import copy
import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smmd import figures
from smmd.paper import trained
from smmd.paper.items import Item
from smmd.paper.model import Cell, Result, Table
from smmd.paper.work import Work

if TYPE_CHECKING:
    from smmd.wae import Run

#: The paper says neither at which rate nor how long training went on: here at the initial rate, and
#: the last third at the final one, for while weights move fast running statistics lag behind, and
#: the codes' variance, which Mardia's kurtosis sees, is not one.
RATE, LAST_RATE = 1e-3, 1e-3 / 16
STAGES = ("before", "with", "without")
WORDS = {
    "before": "trained with code normalization",
    "with": "trained on with it",
    "without": "trained on without it",
}
COLUMNS = {"kurtosis": "kurtosis", "skewness": "skewness", "test MSE": "mse", "B": "b"}


def folded(run: Run) -> tuple[Any, Any]:
    """The run's encoder with its normalization in the last layer's weights, and its decoder.

    z = (Wx + b − m)/√v with the running mean and variance: codes are the same as before, of zero
    mean and unit variance, and nothing keeps them so from now on.
    """
    import torch

    encoder, decoder = copy.deepcopy(run.model.encoder), copy.deepcopy(run.model.decoder)
    last = [m for m in encoder.modules() if isinstance(m, torch.nn.Linear)][-1]
    norm: Any = run.model.norm
    with torch.no_grad():
        scale = norm.running_var.clamp_min(norm.eps).rsqrt()
        last.weight.mul_(scale[:, None])
        last.bias.sub_(norm.running_mean).mul_(scale)
    return encoder, decoder


def compute(work: Work) -> Result:
    start = work.part("before", 0.0, partial(_before, work))
    found = {
        "before": start["seeds"],
        "with": work.part("with", 0.4, partial(_train_on, work, "code-norm", 0.4)),
        "without": work.part("without", 0.7, partial(_train_on, work, "adaptive-plain", 0.7)),
    }
    note, cells = start["note"], []
    for stage in STAGES:
        for column, (mean, error, _) in trained.over_seeds(found[stage]).items():
            names = [title for title, name in COLUMNS.items() if name == column]
            cells += [Cell((WORDS[stage],), title, mean, error, note=note) for title in names]
    values = {stage: np.array([row["kurtosis"] for row in found[stage]]) for stage in STAGES}
    gaps = values["without"] - values["with"]
    error = float(gaps.std(ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.nan
    rises = int(np.sum(gaps > 0.0))
    return Result(
        (
            Table(
                "codenorm-removal",
                f"Test codes of {len(gaps)} networks, mean and its standard error",
                ("Network",),
                tuple(cells),
                digits=".4f",
            ),
        ),
        data={stage: one.tolist() for stage, one in values.items()},
        facts={
            "gap": float(gaps.mean()),
            "error": error,
            "seeds": float(len(gaps)),
            **{stage: float(one.mean()) for stage, one in values.items()},
        },
        notes=(
            "The paper reports this without numbers.  Each trained network goes on twice for "
            f"{work.sizes.removal_epochs} epochs, the last third at the schedule's last rate: with "
            "code normalization, and without, its running statistics folded into the weights and "
            "the kernel width adaptive as in AdaptivePlain.  Adam starts anew in both.",
            f"Kurtosis is higher without it in {rises} of {len(gaps)} networks.",
        ),
    )


def _before(work: Work) -> dict[str, Any]:
    runs = trained.runs(work, "code-norm", 0.0, 0.4)
    config, data = runs[0].config, runs[0].record["data"]["name"]
    note = trained.remark(config.preset, config.version, config.epochs, data)
    return {"note": note, "seeds": [trained.measured(run) for run in runs]}


def _train_on(work: Work, version: str, share: float) -> list[dict[str, float]]:
    # Every seed takes up the next network.
    networks = [folded(run) for run in trained.runs(work, "code-norm", 0.0, share)]
    after = trained.fit(
        work,
        version,
        share,
        share + 0.3,
        stages=_stages(work.sizes.removal_epochs),
        networks=itertools.cycle(networks).__next__,
    )
    return [trained.measured(run) for run in after]


def _stages(epochs: int) -> tuple[tuple[int, float], ...]:
    slow = epochs // 3
    stages = ((epochs - slow, RATE), (slow, LAST_RATE))
    return stages if slow else stages[:1]


def draw(plt: Any, result: Result) -> Any:
    figure, ax = plt.subplots(figsize=(4.6, 3.0))
    for k in range(len(result.data["before"])):
        for stage, colour in (("with", figures.BLUE), ("without", figures.RED)):
            pair = [result.data["before"][k], result.data[stage][k]]
            label = WORDS[stage] if k == 0 else None
            ax.plot([0, 1], pair, "o-", color=colour, markersize=3, linewidth=0.9, label=label)
    ax.axhline(0.0, color=figures.GREY, linewidth=0.5)
    ax.set_xticks([0, 1], ["before", "after"])
    ax.set_xlim(-0.2, 1.2)
    ax.set_ylabel("normalized kurtosis of test codes")
    ax.legend()
    return figure


ITEM = Item(
    name="codenorm-removal",
    title="Code normalization taken away",
    place="Section 4, “WAE results”",
    about="A network trained with code normalization goes on without it: outliers should come.",
    compute=compute,
    uses=("waes", "wae_preset", "wae_epochs", "removal_epochs"),
    draw=draw,
    needs_training=True,
    recipe=2,
    turn=3,  # after "wae", whose networks are used again
)

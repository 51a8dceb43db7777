"""Appendix A: is the estimator for random encoders unbiased for the aggregate posterior?

Means μ_i ~ N(0, (1 − σ²)I) and variances σ² make the aggregate posterior N(0, I) exactly, so that
an unbiased estimate of MMD² has mean zero.  The printed one counts each code's own Gaussian against
itself, which adds ((1 + 2σ²/γ²)^(−d/2) − (1 + 2/γ²)^(−d/2))/n.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from smmd import mmd2, null_variance
from smmd.kernels import Gaussian
from smmd.paper.items import Item
from smmd.paper.many import to_numpy
from smmd.paper.model import Cell, Result, Table
from smmd.paper.work import N, Work

D, SCALE = 8, 1 / 8
#: σ² of all codes.
VARIANCES = (0.01, 0.25)
FORMS = {"as printed": False, "without i = j": True}


def compute(work: Work) -> Result:
    cells = []
    unit = math.sqrt(null_variance(N, D, Gaussian(SCALE)))
    for k, variance in enumerate(VARIANCES):
        found = work.part(f"{variance:g}", k / len(VARIANCES), partial(_means, work, variance))
        for form, (mean, error) in found.items():
            bias = 0.0 if FORMS[form] else _bias(variance)
            cells.append(
                Cell((f"σ² = {variance:g}",), form, mean / unit, error / unit, bias / unit)
            )
    printed = [cell.ours for cell in cells if cell.column == "as printed"]
    return Result(
        (
            Table(
                "random-encoders",
                "Mean estimate of MMD² in null standard deviations (n = 100, d = 8, s = 1/8) where "
                "the aggregate posterior is N(0, I)",
                ("Codes",),
                tuple(cells),
                digits=".3f",
                against="expected",
            ),
        ),
        facts={"smallest bias": min(printed), "largest bias": max(printed)},
        notes=(
            "The printed estimator is exact for the batch's own mixture, but the mixture is a "
            "sample: at σ = 0 it is the biased MMD²_b.  Leaving i = j out is unbiased, and at "
            "σ = 0 it is MMD²_u.",
        ),
    )


def _means(work: Work, variance: float) -> dict[str, tuple[float, float]]:
    parts: dict[str, list[np.ndarray]] = {form: [] for form in FORMS}
    for z in work.batches(work.draws(variance), work.sizes.encoder_codes, D):
        mu = math.sqrt(1.0 - variance) * z
        for form, unbiased in FORMS.items():
            # The same variance for all coordinates: (…, n).
            var = 0.0 * mu[..., 0] + variance
            values = mmd2(mu, Gaussian(SCALE), var=var, unbiased=unbiased)
            parts[form].append(to_numpy(values))
    found = {form: np.concatenate(values) for form, values in parts.items()}
    return {
        form: (float(v.mean()), float(v.std(ddof=1)) / math.sqrt(len(v)))
        for form, v in found.items()
    }


def _bias(variance: float) -> float:
    a = 1.0 / (SCALE * D)
    return ((1.0 + 2.0 * a * variance) ** (-D / 2) - (1.0 + 2.0 * a) ** (-D / 2)) / N


ITEM = Item(
    name="random-encoders",
    title="Random encoders: the printed estimator is biased",
    place="Appendix “Random Encoders”",
    about="The mean of the closed form for Gaussian codes, where it should be zero.",
    compute=compute,
    uses=("encoder_codes",),
)

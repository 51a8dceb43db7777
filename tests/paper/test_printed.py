"""The printed numbers were copied without error: what else the paper says about them must hold."""

import pytest

from smmd.nulls import analytic_law
from smmd.paper import discrimination_mnist, discrimination_uniform, thresholds, violin
from smmd.paper.discrimination import IMQ_SCALES, RBF_SCALES, number
from smmd.paper.work import DIMENSIONS

# The paper's boldface, copied apart from the numbers: for each method, over d = 1, 2, 4, 8, 16, 32,
# the scales whose τ is within 5 % of the largest.
BOLD = {
    "uniform": {
        "an RBF": ("1/8 1/16 1/32", "1/8 1/16 1/32", "1/8 1/16", "HZ", "1/8 HZ", "1/16"),
        "emp RBF": ("1/16 1/32", "1/8 1/16", "1/16", "1/8 1/16 HZ", "1/16", "1/16"),
        "emp IMQ": (
            "1/16 1/32 1/64 1/128 1/256",
            "1/16 1/32 1/128",
            "1/16 1/128",
            "1/128",
            "1/32 1/128 1/1024",
            "1/64",
        ),
    },
    "mnist": {
        "an RBF": ("1/32", "1/32", "1/16", "1/8 HZ", "1/8", "1/8"),
        "emp RBF": ("1/32", "1/32", "1/16", "1/16 HZ", "1/8", "1/8"),
        "emp IMQ": (
            "1/512 1/1024",
            "1/64 1/128 1/256 1/512",
            "1/128 1/256",
            "1/256 1/512 1/1024",
            "1/128 1/256 1/512 1/1024",
            "1/256 1/512 1/1024",
        ),
    },
}
PRINTED = {"uniform": discrimination_uniform.PRINTED, "mnist": discrimination_mnist.PRINTED}
CASES = [
    (name, method, k) for name, methods in BOLD.items() for method in methods for k in range(6)
]


@pytest.mark.parametrize(("name", "method", "k"), CASES)
def test_boldface_is_what_is_within_five_percent_of_the_largest(name, method, k):
    rows = {scale: row[k] for scale, row in PRINTED[name][method].items()}
    bold = set(BOLD[name][method][k].split())
    # Rounding to the printed digits can move a number by half of the last one.
    half = {scale: 0.5 * 10.0 ** -len(text.partition(".")[2]) for scale, text in rows.items()}
    top = max(float(text) for text in rows.values())
    for scale, text in rows.items():
        if "e" in text:
            continue
        if scale in bold:
            assert float(text) + half[scale] >= 0.95 * (top - 0.005)
        else:
            assert float(text) - half[scale] <= 0.95 * (top + 0.005)


@pytest.mark.parametrize("name", list(PRINTED))
def test_every_cell_of_the_tables_is_there(name):
    for method, rows in PRINTED[name].items():
        scales = IMQ_SCALES if method == "emp IMQ" else (*RBF_SCALES, "HZ")
        assert tuple(rows) == scales
        assert all(len(row) == len(DIMENSIONS) for row in rows.values())


@pytest.mark.parametrize("d", DIMENSIONS)
def test_printed_thresholds_are_those_of_the_null_laws(d):
    # 0.2: four standard errors of a 5 % quantile from 10,000 samples (0.03 to 0.05), and rounding.
    for kind, row in thresholds.PRINTED[d].items():
        for scale, text in zip(thresholds.SCALES, row, strict=False):
            if scale == "HZ":
                continue
            law = analytic_law(thresholds.TYPES[kind], 100, d, number(scale) * d)
            assert law.isf(0.05) == pytest.approx(float(text), abs=0.2), (kind, scale)


def test_scales_are_read_as_fractions():
    assert [number(scale) for scale in ("2", "1", "1/32")] == [2.0, 1.0, 0.03125]
    assert violin.RBF_SCALES == RBF_SCALES

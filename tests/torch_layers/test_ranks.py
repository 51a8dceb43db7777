"""Two and three gloo processes with unequal shares train what one process with all rows trains."""

from __future__ import annotations

import math

import pytest
import torch

import smmd.torch
from tests.once import once
from tests.torch_layers import rank_worker
from tests.torch_layers.rank_worker import CASES, SPLITS, STEPS, Model, has_loss, rows, trained

RUNS = [
    (world, split, case)
    for world, splits in SPLITS.items()
    for split in splits
    for case in CASES
    if has_loss(case, split)
]
#: Sums in another order, over two steps; the slices' null deviation is one number for all.
EXACT = {"rtol": 1e-9, "atol": 1e-11}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    def make(folder):
        torch.multiprocessing.spawn(rank_worker.work, (str(folder),), nprocs=3)

    folder = once(tmp_path_factory, "layers of ranks", make)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(3)]


@pytest.fixture(scope="module")
def alone():
    """One process; "world" is that process where torch.distributed was not started."""
    parts = [rows(step) for step in range(STEPS)]
    return {case: trained(Model(case, "world"), parts, 1.0) for case in CASES}


@pytest.mark.parametrize(("world", "split", "case"), RUNS, ids=str)
def test_losses_gradients_and_state(answers, alone, world, split, case):
    expected = alone[case]
    found = [answers[rank][world, split][case] for rank in range(world)]
    assert expected["gradients"]
    for one in found:
        torch.testing.assert_close(one["gradients"], expected["gradients"], **EXACT)
        torch.testing.assert_close(one["state"], expected["state"], **EXACT)
    # A loss of all rows is the same on every rank; a rank's own is its share of the mean.
    losses = torch.stack([torch.stack(one["losses"]) for one in found])
    torch.testing.assert_close(losses.mean(0), torch.stack(expected["losses"]), **EXACT)
    if case not in ("norm", "all"):
        torch.testing.assert_close(losses, losses[:1].expand_as(losses), **EXACT)


def test_a_compiled_model_gathers_outside_its_graph(answers):
    for rank in range(2):
        plain, compiled = answers[rank]["compiled"]
        torch.testing.assert_close(compiled, plain, **EXACT)


def test_b_statistic_is_the_mean_over_all_ranks_batches(answers):
    values = [10.0 * rank + step for rank in range(3) for step in range(3 + rank)]
    for rank in range(3):
        found = answers[rank]["metrics"]
        value, (low, high), count, computed = found["b"]
        assert (count, value) == (12, pytest.approx(sum(values) / 12))
        assert computed == pytest.approx(value)
        assert (low, high) == pytest.approx((-3 / 12**0.5, 3 / 12**0.5))
        # Reading the statistic leaves each rank's own sums alone.
        assert found["after"][1] == 3 + rank


def test_e_statistic_averages_over_ranks_and_its_band_knows(answers):
    plain = smmd.EStatistic(0.9)
    for step in range(5):
        plain.update(step + 1.0)  # the mean of rank + step
    value, band, computed = answers[1]["metrics"]["e"]
    assert (value, computed) == (pytest.approx(plain.value), pytest.approx(plain.value))
    assert band == pytest.approx(tuple(v / math.sqrt(3) for v in plain.band()))


def test_values_that_ranks_share_count_once(answers):
    value, band, count = answers[2]["metrics"]["shared"]
    assert (value, count) == (pytest.approx(2.0), 5)
    assert band == pytest.approx((-3 / 5**0.5, 3 / 5**0.5))

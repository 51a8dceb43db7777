"""B, E and their bands, against the definitions and against simulated normal batches."""

from __future__ import annotations

import math

import numpy as np
import pytest

import smmd
from smmd.monitor import THREE_SIGMA, Batch

N, D, BATCHES, REPEATS = 20, 2, 10, 12_000
MOMENTUM = 0.8
LEVELS = (0.02, 0.1)


@pytest.fixture(scope="module")
def simulated():
    """SMMD² of normal batches, as they are and normalized by themselves: (repeats, batches)."""
    rng = np.random.default_rng(0)
    found = {"standard": [], "diagonal": []}
    for _ in range(REPEATS // 1000):
        z = rng.standard_normal((1000, BATCHES, N, D))
        found["standard"].append(of_batches(z))
        found["diagonal"].append(of_batches(smmd.standardize(z)))
    return {null: np.concatenate(parts) for null, parts in found.items()}


def of_batches(z):
    """SMMD² from the paper's formula: many small batches at once."""
    a = 8.0 / D
    norms = (z**2).sum(-1)
    r2 = norms[..., None] + norms[..., None, :] - 2.0 * z @ np.swapaxes(z, -1, -2)
    pairs = (np.exp(-0.5 * a * r2).sum((-2, -1)) - N) / (N * (N - 1))
    cross = (1 + a) ** (-D / 2) * np.exp(-0.5 * a / (1 + a) * norms).mean(-1)
    return (pairs - 2 * cross + (1 + 2 * a) ** (-D / 2)) / smmd.null_variance(N, D) ** 0.5


def statistics(null, values):
    """Each row of values as a B- and as an E-statistic, and a plain object that has its bands."""
    batch = Batch(N, D, null=null)
    b = smmd.BStatistic(BATCHES, 0.0, batch=batch)
    e = smmd.EStatistic(MOMENTUM, BATCHES, batch=batch)
    average = 0.0
    for column in values.T:
        average = MOMENTUM * average + (1 - MOMENTUM) * column
    return {"B": (b, values.mean(1)), "E": (e, average)}


def close_to_rate(found, rate):
    """Within four standard errors, and the 6 % by which the law of small batches may be off."""
    return abs(found - rate) < 4 * math.sqrt(rate / REPEATS) + 0.06 * rate


@pytest.mark.parametrize("kind", ["B", "E"])
@pytest.mark.parametrize("null", ["standard", "diagonal"])
def test_moments_and_false_alarms(simulated, null, kind):
    plain, values = statistics(null, simulated[null])[kind]
    assert values.mean() == pytest.approx(plain.mean, abs=4 * plain.sd / REPEATS**0.5)
    assert values.std() == pytest.approx(plain.sd, rel=4 * (4 / REPEATS) ** 0.5 / 2)
    for sigmas in (2, 3):
        low, high = plain.band(sigmas)
        below, above = plain.false_alarms(sigmas)
        assert close_to_rate((values > high).mean(), above)
        assert close_to_rate((values < low).mean(), below)
        assert plain.false_alarm_rate(sigmas) == below + above


@pytest.mark.parametrize("kind", ["B", "E"])
@pytest.mark.parametrize("null", ["standard", "diagonal"])
def test_exact_bands_are_left_as_often_as_they_say(simulated, null, kind):
    plain, values = statistics(null, simulated[null])[kind]
    for level in LEVELS:
        low, high = plain.exact_band(level)
        assert close_to_rate((values > high).mean(), level / 2)
        assert close_to_rate((values < low).mean(), level / 2)


@pytest.mark.parametrize("null", ["standard", "diagonal"])
def test_thresholds_of_one_batch(simulated, null):
    batch, values = Batch(N, D, null=null), simulated[null].ravel()
    for alpha in (0.01, 0.05):
        threshold = batch.threshold(alpha)
        assert (values > threshold).mean() == pytest.approx(alpha, rel=0.06)
        assert batch.level(threshold) == pytest.approx(alpha, rel=1e-6)


def test_three_sigmas_is_not_what_it_would_be_for_normal_averages(simulated):
    """The docs' point: the upper side alarms several times as often as the lower."""
    plain, values = statistics("standard", simulated["standard"])["B"]
    below, above = plain.false_alarms()
    assert above > 5 * below
    assert above > 2 * THREE_SIGMA / 2
    assert (values > plain.band()[1]).mean() > 2 * (values < plain.band()[0]).mean()


def test_definitions():
    b, e, values = smmd.BStatistic(), smmd.EStatistic(momentum=0.9), [0.3, -1.2, 2.5]
    expected = 0.0
    for value in values:
        b.update(value)
        e.update(np.float32(value))
        expected = 0.9 * expected + 0.1 * value
    assert b.value == pytest.approx(np.mean(values))
    assert e.value == pytest.approx(expected)
    assert b.band() == pytest.approx((-3 / 3**0.5, 3 / 3**0.5))
    assert b.band(1) == pytest.approx((-(3**-0.5), 3**-0.5))
    # Var E_m = (1 − α^(2m))(1 − α)/(1 + α): the squares of the weights, summed.
    weights = np.array([0.1 * 0.9**k for k in range(3)])
    assert e.sd == pytest.approx(math.sqrt((weights**2).sum()))
    assert e.sd == pytest.approx(math.sqrt((1 - 0.9**6) * 0.1 / 1.9))
    assert smmd.EStatistic(count=10**6).sd == pytest.approx((0.01 / 1.99) ** 0.5)


def test_a_loss_with_its_graph_is_taken():
    torch = pytest.importorskip("torch")
    b = smmd.BStatistic()
    b.update(2.0 * torch.ones((), requires_grad=True))
    assert b.value == 2.0


def test_before_the_first_batch():
    b, e = smmd.BStatistic(), smmd.EStatistic()
    assert math.isnan(b.value)
    assert e.value == 0.0
    for plain in (b, e):
        assert not plain.converged
        assert plain.band() == (-math.inf, math.inf)
        assert plain.verdict().endswith("no batch yet")
        with pytest.raises(ValueError, match="Batch"):
            plain.exact_band()


def test_reset():
    b, e = smmd.BStatistic(4, 2.0), smmd.EStatistic(0.5, 3, 7.0)
    b.reset()
    e.reset()
    assert (b, e) == (smmd.BStatistic(), smmd.EStatistic(0.5))


def test_flat_dicts_for_loggers():
    found = smmd.BStatistic(4, 8.0).as_dict("val/")
    assert found == {"val/b": 2.0, "val/b_low": -1.5, "val/b_high": 1.5, "val/b_converged": 0.0}
    assert all(type(v) is float for v in found.values())
    assert set(smmd.EStatistic().as_dict()) == {
        "smmd/e", "smmd/e_low", "smmd/e_high", "smmd/e_converged",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        (smmd.BStatistic(100, 0.0), "in the three-sigma band [-0.3, 0.3]: as for codes from"),
        (smmd.BStatistic(100, 40.0), "above the three-sigma band [-0.3, 0.3]: not converged"),
        # What code normalization does to a training loss, said where it is met.
        (smmd.BStatistic(100, -90.0), "normalized by its own statistics (code normalization"),
        (smmd.BStatistic(100, -90.0), "That is no overfitting"),
        (
            smmd.BStatistic(100, -98.0, batch=Batch(128, 8, null="diagonal")),
            "100 batches, each normalized by itself, is in the three-sigma band",
        ),
        (smmd.BStatistic(100, -200.0, batch=Batch(128, 8, null="diagonal")), "look at the codes"),
        (smmd.BStatistic(10, 0.0, batch=Batch(128, 8)), "leave it in 0.31 % of cases (0.062 below"),
        (smmd.BStatistic(10, 0.0), "leave it in about 0.3 % of cases"),
        (smmd.EStatistic(0.9, 50, 0.9), "E = 0.9 over 50 batches is above"),
    ],
)
def test_verdicts(plain, words):
    assert words in plain.verdict()


def test_one_batch_in_words():
    batch = Batch(128, 8)
    assert "SMMD² = 5 is above" in batch.verdict(5.0)
    assert "no sign of anything but normality" in batch.verdict(0.5)
    with pytest.raises(ValueError, match="simulate=20_000"):
        Batch(10, 2).threshold()


def test_a_law_by_simulation_where_there_is_no_other():
    batch = Batch(10, 2, smmd.IMQ(), simulate=2000)
    z = np.random.default_rng(5).standard_normal((2000, 10, 2))
    values = smmd.smmd(z, kernel=smmd.IMQ())
    # Two simulations of 2000: four standard errors of their difference.
    alpha, error = 0.05, 4 * math.sqrt(2 * 0.05 / 2000)
    assert (values > batch.threshold(alpha)).mean() == pytest.approx(alpha, abs=error)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: smmd.BStatistic().update(math.nan), ValueError, "look at the codes"),
        (lambda: smmd.BStatistic().update([1.0, 2.0]), TypeError, "one batch's SMMD²"),
        (lambda: smmd.EStatistic().update(np.zeros(3)), TypeError, r"of shape \(3,\)"),
        (lambda: smmd.EStatistic(1.0), ValueError, "momentum must be in"),
        (lambda: smmd.EStatistic(parallel=0), ValueError, "parallel"),
        (lambda: smmd.EStatistic().band(sigmas=-1), ValueError, "sigmas must be .* positive"),
        (lambda: smmd.BStatistic().band(math.nan), ValueError, "sigmas"),
        (lambda: smmd.BStatistic().false_alarms("3"), ValueError, "sigmas"),
        (lambda: smmd.BStatistic().exact_band(1.5), ValueError, r"level must be .* \(0, 1\)"),
        (lambda: Batch(1, 2), ValueError, "n must be at least 2"),
        (lambda: Batch(10, 2, null="full"), ValueError, "null"),
        (lambda: Batch(10, 2, "gaussian"), TypeError, "smmd.Gaussian"),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call()

"""Items that train: many small networks at once, WAEs over seeds, a normalization folded away."""

import json
from dataclasses import replace

import numpy as np
import pytest

from smmd import figures
from smmd.paper import (
    autoencoders,
    codenorm_removal,
    discrimination_mnist,
    trained,
    wae,
)
from smmd.paper.draws import draws
from smmd.paper.work import Settings, Sizes, Work
from smmd.wae import data

SIZES = Sizes(
    repeats=40, encoders=2, encoder_epochs=1, encoder_repeats=40, waes=2, wae_epochs=1,
    removal_epochs=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """A few hundred digits."""
    found = data.shipped()
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    np.savez(path, x_train=found.train[:400, 0], x_test=found.test[:300, 0])
    return Settings(data=str(path), sizes=SIZES, device="cpu")


def work(module, settings, tmp_path):
    return Work(module.ITEM.name, settings, tmp_path)


def asking(module, settings, tmp_path):
    """As the runner makes it."""
    return Work(module.ITEM.name, settings, tmp_path, asked=module.ITEM.asked(settings))


def test_networks_side_by_side_learn_each_for_itself():
    rng = np.random.default_rng(0)
    images = rng.uniform(size=(600, 3)).astype(np.float32) @ rng.uniform(size=(3, 64)).astype("f")
    images /= images.max()
    train, test = images[:400], images[400:]
    options = {"epochs": 250, "seed": 0, "device": "cpu"}
    codes, errors = autoencoders.codes(train, test, (1, 3, 3), **options)
    assert [c.shape for c in codes] == [(200, 1), (200, 3), (200, 3)]
    # Three factors: three codes explain what one cannot; the mean image explains least.
    # (Of 250 epochs of two steps.)
    baseline = float(np.mean((test - train.mean(axis=0)) ** 2))
    assert max(errors[1:]) < 0.5 * errors[0] < 0.5 * baseline
    assert not np.allclose(codes[1], codes[2])
    # The same seed gives the same networks.
    again, _ = autoencoders.codes(train, test, (1, 3, 3), **options)
    np.testing.assert_array_equal(codes[2], again[2])


def test_one_network_among_others_has_the_gradient_it_has_alone():
    import torch

    nets = autoencoders._Nets(20, (2, 5), 0, "cpu")
    x = torch.rand(2, 30, 20, generator=torch.Generator().manual_seed(0))
    each = ((nets.decode(nets.encode(x)) - x) ** 2).mean(dim=(1, 2))
    grads = torch.autograd.grad(each.sum(), nets.parameters, retain_graph=True)
    alone = torch.autograd.grad(each[0], nets.parameters)
    for together, single in zip(grads, alone, strict=True):
        torch.testing.assert_close(together[0], single[0])
        assert not single[1].any()
    # What is masked never moves: codes 3 to 5 of the first net.
    assert not alone[2][0][:, 2:].any()
    assert not alone[3][0][2:, :].any()


def test_codes_are_drawn_centred_and_white():
    rng = np.random.default_rng(0)
    codes = 3.0 + rng.standard_normal((500, 2)) @ np.array([[2.0, 1.0], [0.0, 0.3]])
    rows = discrimination_mnist.drawn_from(codes)(draws("cpu", 0), 400)
    assert rows.shape == (400, 100, 2)
    points = rows.reshape(-1, 2)
    # 40,000 points of 500: moments within four of their standard errors.
    assert np.all(np.abs(points.mean(axis=0)) < 0.02)
    assert np.all(np.abs(np.cov(points.T) - np.eye(2)) < 0.03)


def test_discrimination_of_codes(settings, tmp_path):
    item = work(discrimination_mnist, settings, tmp_path)
    result = discrimination_mnist.compute(item, dimensions=(2, 4))
    assert len(result.tables[0].columns) == 2
    shapes = result.table("mnist-codes")
    assert shapes.columns == ["test MSE", "skewness"]
    assert 0.0 < shapes.at(("d=4",), "test MSE").ours < 0.25  # two steps away from grey
    assert all(cell.error > 0.0 for cell in result.tables[0].cells)


def test_waes_over_seeds_and_their_pictures(settings, tmp_path):
    result = wae.compute(asking(wae, settings, tmp_path))
    table, seeds = result.table("wae"), result.table("wae-seeds")
    assert len(seeds.rows) == 6
    for version, column in (("code-norm", "kurtosis"), ("adaptive-plain", "test MSE")):
        cell = table.at((version, "2 seeds, 1 epoch"), column)
        single = [c.ours for c in seeds.cells if c.row[0] == version and c.column == column]
        assert cell.ours == pytest.approx(np.mean(single))
        assert cell.error == pytest.approx(np.std(single, ddof=1) / 2**0.5)
        assert cell.note  # a small run says so
    picture = trained.unpack(result.data["code-norm"]["reconstruction"])
    assert picture.shape == (6 * 28, 10 * 28)
    with figures.look() as plt:
        figure = wae.draw(plt, result)
        plt.close(figure)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles[:3] == [
        "(a) test reconstruction", "(b) random samples", "(c) slice through code space",
    ]  # fmt: skip
    assert titles[3:] == [""] * 6
    digits = data.load(settings.data).test
    np.testing.assert_array_equal(picture[:28, :28], digits[0, 0])
    assert "whose luck" in wae.reason(table.cells[0].__class__(("a",), "x", 1.0))


def test_each_version_is_kept_by_itself(settings, tmp_path, monkeypatch):
    trained.runs(work(wae, settings, tmp_path), "code-norm", 0.0, 1.0)
    asked = {"key": "k", "seed": 0, "waes": 2}
    first = Work("wae", settings, tmp_path, asked=asked)
    train = trained.fit

    def killed(work, version, *args, **options):
        if version == "adaptive-bn":
            raise KeyboardInterrupt
        return train(work, version, *args, **options)

    monkeypatch.setattr(trained, "_RUNS", dict(trained._RUNS))
    for key in [key for key in trained._RUNS if key[1] == "adaptive-bn"]:
        del trained._RUNS[key]
    monkeypatch.setattr(trained, "fit", killed)
    with pytest.raises(KeyboardInterrupt):
        wae.compute(first)
    # What was there before is on a page, and is not trained again.
    part = wae.gather(tmp_path)
    assert {cell.row[0] for cell in part} == {"code-norm"}
    before = (tmp_path / "code-norm.json").read_text()
    monkeypatch.setattr(trained, "fit", train)
    whole = wae.compute(Work("wae", settings, tmp_path, asked=asked))
    assert (tmp_path / "code-norm.json").read_text() == before
    assert {cell.row[0] for cell in whole} == set(wae.PRINTED)
    assert whole.made["key"] == "k"
    # More seeds than asked for serve as well, fewer or another recipe do not.
    assert wae._suits(json.loads(before), {**asked, "waes": 1})
    assert not wae._suits(json.loads(before), {**asked, "waes": 3})
    assert not wae._suits(json.loads(before), {**asked, "seed": 1})
    # One that was asked for otherwise is shown, but does not pass for this request.
    other = json.loads(before)
    other["made"]["key"] = "other"
    (tmp_path / "code-norm.json").write_text(json.dumps(other))
    assert wae.gather(tmp_path).made["key"] == ""
    (tmp_path / "adaptive-plain.json").write_text("{")
    assert {cell.row[0] for cell in wae.gather(tmp_path)} == {"code-norm", "adaptive-bn"}


def test_runs_that_were_trained_elsewhere(settings, tmp_path):
    from smmd.wae import fit
    from smmd.wae.config import choose

    runs = trained.runs(work(wae, settings, tmp_path), "code-norm", 0.0, 1.0)
    wae.adopt(tmp_path, runs)
    cell = wae.gather(tmp_path).table("wae").cells[0]
    assert cell.ours == pytest.approx(np.mean([trained.measured(run)["mse"] for run in runs]))
    # One epoch is not the preset's schedule: such runs are shown, but not taken for the item's own.
    assert wae.gather(tmp_path).made["seed"] == "0 and on"
    whole = [replace(r, config=replace(r.config, stages=choose("quick").stages)) for r in runs]
    for run in whole:
        run.log = [{**run.log[0], "epoch": run.config.epochs}]
    wae.adopt(tmp_path, whole)
    assert wae.gather(tmp_path).made["seed"] == 0
    with pytest.raises(ValueError, match="differ in more than their seeds"):
        wae.adopt(tmp_path, [runs[0], trained.runs(
            work(wae, settings, tmp_path), "adaptive-bn", 0.0, 1.0)[0]])  # fmt: skip
    images = np.random.default_rng(0).random((60, 4, 4))
    random = fit(images, epochs=1, batch=20, latent=2, version="random")
    with pytest.raises(ValueError, match="version 'random'"):
        wae.adopt(tmp_path, [random])


def test_measures_of_a_run_by_hand(settings, tmp_path):
    run = trained.runs(work(wae, settings, tmp_path), "code-norm", 0.0, 1.0)[0]
    found = trained.measured(run)
    test = data.load(settings.data).test
    codes = run.encode(test).astype(float)
    assert found["mse"] == pytest.approx(
        float(np.mean((run.reconstruct(test) - test / 255.0) ** 2)), rel=1e-5
    )
    squares = (codes**2).sum(axis=1)
    assert found["kurtosis"] == pytest.approx(float(np.mean(squares**2)) - 80.0)
    assert found["skewness"] == pytest.approx(float(np.mean((codes @ codes.T) ** 3)))
    assert found["b"] == found["b_fixed"]


def test_normalization_folded_into_the_weights_changes_nothing(settings, tmp_path):
    import torch

    run = trained.runs(work(wae, settings, tmp_path), "code-norm", 0.0, 1.0)[1]
    encoder, decoder = codenorm_removal.folded(run)
    images = torch.from_numpy(data.load(settings.data).test[:50]) / 255
    with torch.no_grad():
        before, after = run.model.eval().encode(images)[0], encoder(images)
        # float32, and weights divided by small standard deviations.
        torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(decoder(before), run.model.decode(before))


def test_code_normalization_taken_away(settings, tmp_path):
    result = codenorm_removal.compute(work(codenorm_removal, settings, tmp_path))
    facts = result.facts
    assert facts["gap"] == pytest.approx(facts["without"] - facts["with"])
    assert facts["seeds"] == 2.0
    runs = trained.runs(work(wae, settings, tmp_path), "code-norm", 0.0, 1.0)
    before = [trained.measured(run)["kurtosis"] for run in runs]
    # Going on did not touch the networks that it started from.
    assert result.data["before"] == pytest.approx(before)


def test_training_on_ends_slowly():
    assert codenorm_removal._stages(6) == ((4, 1e-3), (2, 1e-3 / 16))
    assert codenorm_removal._stages(2) == ((2, 1e-3),)


def test_b_needs_a_batch():
    from smmd import Gaussian

    with pytest.raises(ValueError, match="only 40 codes"):
        trained.b_statistic(np.zeros((40, 2)), Gaussian())

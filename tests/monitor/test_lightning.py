"""A Lightning run whose log is read back and compared with what the codes were."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import smmd
import smmd.torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Lightning's own imports
    import lightning
    from lightning.pytorch.loggers import CSVLogger

N, D, BATCHES = 32, 3, 6


class Codes(lightning.LightningModule):
    """An encoder with code normalization; keeps its codes for the test to measure."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(D, D), smmd.torch.CodeNorm(D)
        self.loss = smmd.torch.SMMDLoss()
        self.seen = {"train": [], "val": []}

    def _step(self, batch, name):
        z = self.norm(self.linear(batch[0]))
        self.seen[name].append(z.detach().clone())
        return {"loss": self.loss(z), "codes": z}

    def training_step(self, batch, index):
        return self._step(batch, "train")

    def validation_step(self, batch, index):
        return self._step(batch, "val")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def loaders():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(BATCHES * N, D, generator=generator)
    data = torch.utils.data.TensorDataset(x)
    return [torch.utils.data.DataLoader(data, batch_size=N) for _ in range(2)]


def fit(folder, callback, epochs=1, model=None, **options):
    torch.manual_seed(0)
    model = model or Codes()
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=CSVLogger(folder, name="", version="log"),
        callbacks=[callback], enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False, num_sanity_val_steps=0, log_every_n_steps=1, **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on workers, which two cores do not want
        trainer.fit(model, *loaders())
    with (folder / "log" / "metrics.csv").open() as file:
        rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    return model, trainer, rows


@pytest.mark.parametrize("place", [{"module": "norm"}, {"output": "codes"}], ids=str)
def test_log_is_what_the_codes_were(tmp_path, place):
    callback = smmd.torch.LatentMonitor(**place, every=2, momentum=0.9)
    model, _, rows = fit(tmp_path, callback)
    e, b = smmd.EStatistic(0.9), smmd.BStatistic()
    # Lightning writes a row for every step, with the last value there is.
    logged = {row["step"]: row for row in rows if "smmd/e" in row}
    for index, z in enumerate(model.seen["train"]):
        e.update(smmd.smmd(z).item())
        if index % 2:
            assert logged[index]["smmd/e"] == pytest.approx(e.value, abs=1e-4)
    for z in model.seen["val"]:
        b.update(smmd.smmd(z).item())
    (validation,) = [row for row in rows if "smmd/val_b" in row]
    assert validation["smmd/val_b"] == pytest.approx(b.value, abs=1e-4)
    low, high = b.band()
    assert validation["smmd/val_b_low"] == pytest.approx(low)
    assert validation["smmd/val_b_high"] == pytest.approx(high)
    assert validation["smmd/val_b_converged"] in (0.0, 1.0)


def test_training_band_is_that_of_codes_normalized_by_their_batch(tmp_path):
    callback = smmd.torch.LatentMonitor("norm", every=1)
    _, _, rows = fit(tmp_path, callback)
    batch = smmd.monitor.Batch(N, D, null="diagonal")
    last = [row for row in rows if "smmd/e" in row][-1]
    expected = smmd.EStatistic(0.99, BATCHES, batch=batch)
    assert last["smmd/e_low"] == pytest.approx(expected.band()[0], rel=1e-5)
    assert last["smmd/e_high"] == pytest.approx(expected.band()[1], rel=1e-5)
    said = callback.verdicts()
    assert "normalized by itself" in said["train"]
    assert "normalized by itself" not in said["validation"]


def test_a_resumed_run_goes_on(tmp_path):
    callback = smmd.torch.LatentMonitor("norm")
    model, trainer, _ = fit(tmp_path / "a", callback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.save_checkpoint(tmp_path / "run.ckpt")
    resumed = smmd.torch.LatentMonitor("norm")
    model = Codes()
    _, trainer, _ = fit(tmp_path / "b", resumed, model=model)
    saved = torch.load(tmp_path / "run.ckpt", weights_only=False)["callbacks"]
    (state,) = [v for k, v in saved.items() if "LatentMonitor" in k]
    resumed.load_state_dict(state)
    assert resumed.train.value == callback.train.value
    assert resumed.train.statistic().count == BATCHES


def test_random_encoders_means_are_followed_and_hooks_removed(tmp_path):
    class Random(Codes):
        def __init__(self):
            super().__init__()
            self.norm = smmd.torch.GaussianCodeNorm(D)

        def _step(self, batch, name):
            mu, var = self.norm(self.linear(batch[0]), 0.1 + 0.0 * batch[0])
            return {"loss": self.loss(mu, var)}

    callback = smmd.torch.LatentMonitor("norm", code_normalized=False)
    model, _, _ = fit(tmp_path, callback, model=Random())
    assert callback.train.statistic().count == BATCHES
    assert np.isfinite(callback.validation.value)
    assert not model.norm._forward_hooks


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"module": "absent"}, ValueError, "'norm'"),
        ({"output": "z"}, KeyError, "'codes'"),
    ],
)
def test_a_wrong_place_is_named(tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        fit(tmp_path, smmd.torch.LatentMonitor(**options))


def test_options_are_checked():
    with pytest.raises(ValueError, match="give module="):
        smmd.torch.LatentMonitor()
    with pytest.raises(ValueError, match="every must be"):
        smmd.torch.LatentMonitor("norm", every=0)

"""Lightning: the penalty in ``training_step``, ``LatentMonitor`` beside it, a CSV log read back."""

import csv
import sys
import warnings
from pathlib import Path

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn

import smmd.torch


class AutoEncoder(lightning.LightningModule):
    def __init__(self, d: int = 4) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, d))
        self.norm = smmd.torch.CodeNorm(d)
        self.decoder = nn.Sequential(nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 16))
        self.penalty = smmd.torch.SMMDLoss(group="world")  # all devices' codes are one batch

    def training_step(self, batch, index):
        (x,) = batch
        z = self.norm(self.encoder(x))
        return (self.decoder(z) - x).square().mean() + 0.01 * self.penalty(z)

    def validation_step(self, batch, index):
        self.norm(self.encoder(batch[0]))  # the monitor listens to "norm"

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def main(folder: Path = Path("lightning_run"), epochs: int = 3) -> dict[str, str]:
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    lightning.seed_everything(0, verbose=False)
    x = torch.tanh(torch.randn(2048, 4) @ torch.randn(4, 16))
    data = torch.utils.data.TensorDataset(x)
    train, validation = (torch.utils.data.DataLoader(data, batch_size=128) for _ in range(2))
    monitor = smmd.torch.LatentMonitor("norm", every=4)
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", callbacks=[monitor], log_every_n_steps=4,
        logger=CSVLogger(folder, name=""), enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(AutoEncoder(), train, validation)
    with (Path(trainer.logger.log_dir) / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["smmd/val_b"]]
    print("B by epoch:", *(f"{float(row['smmd/val_b']):.2f}" for row in rows))
    print(*monitor.verdicts().values(), sep="\n")
    return monitor.verdicts()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))

"""What goes to TensorBoard: a run's curves, and from time to time some of its images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from smmd.errors import MissingExtra
from smmd.wae import images
from smmd.wae.data import Dataset
from smmd.wae.events import EventFile
from smmd.wae.loop import Learner

#: Curves by their names in TensorBoard, and the log's fields they show.
CURVES = {
    "train/loss": "loss",
    "train/mse": "mse",
    "train/smmd": "smmd",
    "train/e_statistic": "e",
    "train/rate": "rate",
    "held_out/mse": "val_mse",
    "held_out/b_statistic": "b",
}
#: Images of each kind, and the epochs between two sheets of them.
SHOWN, EVERY = 8, 5


class Board:
    """The folder ``tensorboard`` of a run."""

    def __init__(self, folder: Path, data: Dataset) -> None:
        self.events = EventFile(folder / "tensorboard")
        self.real = data.test[:SHOWN].copy()

    @torch.no_grad()
    def pictures(self, learner: Learner, epoch: int, last: int) -> np.ndarray | None:
        """Reconstructions in the rows below the real images, then random samples."""
        if epoch not in (1, last) and epoch % EVERY:
            return None
        model, device = learner.model.eval(), learner.images.device
        x = learner.pixels(torch.from_numpy(self.real).to(device))
        noise = torch.randn(
            SHOWN, learner.config.latent, generator=torch.Generator().manual_seed(0)
        )
        codes = torch.cat([model.encode(x)[0], noise.to(device)])
        made = model.decode(codes).cpu().numpy()
        model.train()
        return np.concatenate([x.cpu().numpy(), made])

    def write(self, row: dict[str, Any], pictures: np.ndarray | None) -> None:
        """An epoch."""
        epoch = int(row["epoch"])
        self.events.scalars(epoch, {name: float(row[field]) for name, field in CURVES.items()})
        if pictures is None:
            return
        sheet = images.tile(pictures, len(self.real), gap=1)
        try:
            png = images.encode(sheet)
        except MissingExtra:
            return
        height, width, channels = sheet.shape
        self.events.image(epoch, "real, reconstructed, sampled", png, (height, width, channels))

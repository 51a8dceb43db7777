"""A trained model and all that is known about it; what ``fit`` returns and ``load`` reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smmd.wae import checkpoint, images, records
from smmd.wae import data as datasets
from smmd.wae import model as models
from smmd.wae.config import Config
from smmd.wae.data import Dataset
from smmd.wae.networks import Custom
from smmd.wae.records import LOG_FIELDS

__all__ = ["LOG_FIELDS", "Run", "load", "load_all"]

#: Images or codes that go through a network at once.
CHUNK = 1000


@dataclass
class Run:
    """A model with its history.  Arrays in and out are NumPy's.

    folder  where it is kept, None if it is not
    config  its options
    record  config.json: data's name, shape and checksum, versions, machine
    log     one dict per finished epoch, with the fields of ``LOG_FIELDS``
    model   the ``Autoencoder``, in evaluation mode
    """

    config: Config
    model: models.Autoencoder
    record: dict[str, Any]
    log: list[dict[str, Any]]
    folder: Path | None = None
    _data: Dataset | None = None

    @property
    def epoch(self) -> int:
        """How many epochs it has been trained."""
        return int(self.log[-1]["epoch"]) if self.log else 0

    @property
    def finished(self) -> bool:
        """Whether that is all of its schedule."""
        return self.epoch >= self.config.epochs

    @property
    def device(self) -> torch.device:
        """Where the model lies."""
        return next(self.model.parameters()).device

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width) of its images."""
        channels, height, width = self.record["data"]["shape"]
        return int(channels), int(height), int(width)

    def encode(self, pictures: Any, *, rng: Any = None) -> np.ndarray:
        """Codes (n, d) of images, by the running statistics.

        A random encoder's means; with ``rng`` (a seed or a NumPy generator) a draw from its
        Gaussians, which is what has to be normal.
        """
        mean, variance = self.encode_moments(pictures)
        if variance is None or rng is None:
            return mean
        noise = np.random.default_rng(rng).standard_normal(mean.shape)
        return np.asarray(mean + np.sqrt(variance) * noise, dtype=np.float32)

    def encode_moments(self, pictures: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Means of the codes, and variances if the encoder is random (else None)."""
        array = images.as_images(pictures, "images")
        if array.shape[1:] != self.shape:
            raise ValueError(
                f"images have shape {array.shape[1:]} (channels, height, width), but the run was "
                f"trained on {self.shape}"
            )

        def encode(x: Tensor) -> tuple[Tensor, ...]:
            x = x / 255 if x.dtype == torch.uint8 else x
            mean, variance = self.model.encode(x)
            return (mean,) if variance is None else (mean, variance)

        mean, *variance = self._through(encode, array)
        return mean, (variance[0] if variance else None)

    def decode(self, codes: Any) -> np.ndarray:
        """Images (n, channels, height, width), float32 in 0…1, of codes (n, d)."""
        array = np.asarray(codes, dtype=np.float32)
        if array.ndim != 2 or array.shape[1] != self.config.latent:
            raise ValueError(f"codes must have shape (n, {self.config.latent}), got {array.shape}")
        return self._through(lambda z: (self.model.decode(z),), array)[0]

    def reconstruct(self, pictures: Any) -> np.ndarray:
        """``decode(encode(pictures))``."""
        return self.decode(self.encode(pictures))

    def sample(self, n: int, rng: Any = None) -> np.ndarray:
        """Images of n codes drawn from N(0, I)."""
        codes = np.random.default_rng(rng).standard_normal((n, self.config.latent))
        return self.decode(codes)

    def dataset(self) -> Dataset:
        """The images that it was trained on, read again; their checksum must be the same."""
        if self._data is None:
            config = self.config
            if config.data == "array":
                raise ValueError(
                    "the run was trained on an array in memory, which is not kept with it; pass "
                    "it again as load(..., data=array)"
                )
            found = datasets.load(config.data, data_dir=config.data_dir, size=config.size)
            check_data(found, self.record)
            self._data = found
        return self._data

    @torch.no_grad()
    def _through(
        self, function: Callable[[Tensor], tuple[Tensor, ...]], array: np.ndarray
    ) -> list[np.ndarray]:
        self.model.eval()
        # Arrays read from files may be read-only, which PyTorch takes with a warning.
        chunks = (
            torch.from_numpy(np.require(array[k : k + CHUNK], requirements=["C", "W"]))
            for k in range(0, max(1, len(array)), CHUNK)
        )
        parts = [
            [part.float().cpu().numpy() for part in function(chunk.to(self.device))]
            for chunk in chunks
        ]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]


def check_data(found: Dataset, record: dict[str, Any]) -> None:
    """Refuse other pixels than those of the record."""
    before = record["data"]["sha256"]
    if found.checksum != before:
        raise ValueError(
            f"data {found.name!r} is not what the run was trained on: its checksum is "
            f"{found.checksum[:12]}…, that of the run {before[:12]}…"
        )


def load(
    path: Any,
    *,
    device: Any = "cpu",
    networks: Custom = None,
    epoch: int | None = None,
    data: Any = None,
    data_dir: Any = None,
) -> Run:
    """The run kept in a folder, at its newest good checkpoint or at that of ``epoch``.

    Parameters
    ----------
    path : path
        A run's folder, as ``fit(out=...)`` or ``smmd train --out`` made it.
    device : device, optional
    networks : pair of modules or a function that makes them, optional
        For a run that was trained with networks of one's own: the same ones.
    epoch : int, optional
        Only the newest few are kept.
    data, data_dir : optional
        Where the images are now, if they were moved or were an array, as for ``fit``; they must be
        the same images.
    """
    where = Path(path).expanduser()
    record = records.read_config(where)
    config = Config.from_json(record["config"])
    channels, height, width = record["data"]["shape"]
    model = models.build(config, (channels, height, width), networks)
    expected = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    if epoch is not None:
        found: checkpoint.Checkpoint | None = checkpoint.read(where, epoch)
    else:
        found = checkpoint.newest(where)
    if found is None:
        raise ValueError(
            f"{where} holds no checkpoint yet: the first is written when an epoch is finished"
        )
    checkpoint.compare(where, _of_model(found.tensors), expected)
    names = {name.removeprefix("model."): t for name, t in _of_model(found.tensors).items()}
    model.load_state_dict(names)
    rows = [row for row in records.read_log(where) if row["epoch"] < found.epoch]
    found_data = None
    if data is not None or data_dir is not None:
        found_data = datasets.load(
            config.data if data is None else data, data_dir=data_dir, size=config.size
        )
        check_data(found_data, record)
    log = [*rows, found.state["row"]]
    return Run(config, model.to(device).eval(), record, log, where, found_data)


def _of_model(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: t for name, t in tensors.items() if name.startswith("model.")}


def load_all(path: Any, **options: Any) -> list[Run]:
    """The runs of a folder: one, or those of its several seeds."""
    where = Path(path).expanduser()
    inner = [p for p in where.glob("seed-*") if (p / records.CONFIG).is_file()]
    if (where / records.CONFIG).is_file() or not inner:
        return [load(where, **options)]
    return [load(p, **options) for p in sorted(inner, key=lambda p: int(p.name[5:]))]

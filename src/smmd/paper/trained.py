"""The paper's WAEs, trained by ``smmd.wae.fit``, and what is measured of them."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smmd import mardia, smmd
from smmd.errors import MissingExtra
from smmd.kernels import Adaptive, Gaussian
from smmd.monitor import BStatistic
from smmd.paper.work import N, Settings, Work

if TYPE_CHECKING:
    from smmd.wae import Config, Run

#: As in the paper: the B-statistic's batches.
BATCHES = 50
#: The paper's epochs.
EPOCHS = {"code-norm": 60, "adaptive-bn": 80, "adaptive-plain": 80}
#: Runs of another seed share no network with this one's.
SEEDS_APART = 1000
#: Trained networks that another item of the same process may go on with.
_RUNS: dict[tuple[Settings, str, str], list[Run]] = {}


def fit(work: Work, version: str, first: float, last: float, **options: Any) -> list[Run]:
    """``smmd.wae.fit`` of as many seeds as are asked for; the item is then from first to last."""
    try:
        from smmd.wae import fit as train
    except ImportError as error:  # pragma: no cover - the tests have PyTorch
        raise MissingExtra("Training auto-encoders", "train", error.name or "torch") from error
    return list(
        train(
            work.settings.data,
            data_dir=work.settings.data_dir,
            preset=work.sizes.wae_preset,
            version=version,
            seed=SEEDS_APART * work.settings.seed,
            seeds=work.sizes.waes,
            device=work.device,
            watcher=_Told(work, version, first, last),
            **options,
        )
    )


def runs(work: Work, version: str, first: float, last: float) -> list[Run]:
    """The trained networks of a version, one for each seed; in one process trained only once."""
    key = (work.settings, version, work.device)
    if key not in _RUNS:
        base = work.sizes.wae_epochs
        # The adaptive versions get a third more, as in the paper.
        longer = base is not None and version != "code-norm"
        epochs = round(base * 4 / 3) if base is not None and longer else base
        _RUNS[key] = fit(work, version, first, last, epochs=epochs)
    return _RUNS[key]


def own(config: Config) -> Config:
    """The options with which this module trains, of the same seed, version and data."""
    from smmd.wae.config import choose

    same = {name: getattr(config, name) for name in ("data", "data_dir", "version", "seed")}
    return choose(config.preset, precision=config.precision, **same)


class _Told:
    """A watcher of training that passes its progress on to the item's."""

    def __init__(self, work: Work, version: str, first: float, last: float) -> None:
        self.work, self.version, self.first, self.last = work, version, first, last
        self.total = 1

    def begin(self, title: str, total: int, done: int) -> None:
        self.total = total

    def note(self, text: str) -> None: ...

    def tick(self, epoch: int, share: float) -> None:
        done = (epoch - 1 + share) / self.total
        message = f"{self.version}, epoch {epoch} of {self.total}"
        self.work.show(message, self.first + (self.last - self.first) * done)

    def epoch(self, rows: list[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


def remark(preset: str, version: str, epochs: int, data: str) -> str:
    """Why numbers of such a run are not the paper's; "" if it is the paper's own recipe."""
    words = []
    if preset != "paper":
        words.append("a smaller network than the paper's")
    if epochs != EPOCHS[version]:
        words.append(f"{epochs} epochs instead of the paper's {EPOCHS[version]}")
    if data != "mnist":
        words.append("other images than the paper's")
    return ", ".join(words)


def measured(run: Run) -> dict[str, float]:
    """Test error, Mardia's moments and B-statistics of the codes of the test images.

    ``b`` is by the run's own kernel, ``b_fixed`` by the fixed width for all; B's batches are m = 50
    of n = 100 in an order drawn by lot, for MNIST's test images come in two halves that differ.
    """
    test = run.dataset().test
    codes = run.encode(test).astype(np.float64)
    pixels = test.astype(np.float64) / (255.0 if test.dtype == np.uint8 else 1.0)
    moments = mardia(codes)
    own = Adaptive(run.config.scale) if run.config.adaptive else Gaussian(run.config.scale)
    order = np.random.default_rng(0).permutation(len(codes))
    return {
        "mse": float(np.mean((run.decode(codes) - pixels) ** 2)),
        "kurtosis": float(moments.kurtosis),
        "skewness": float(moments.skewness),
        "b": b_statistic(codes[order], own),
        "b_fixed": b_statistic(codes[order], Gaussian(run.config.scale)),
    }


def b_statistic(codes: np.ndarray, kernel: Gaussian | Adaptive) -> float:
    """The mean SMMD² of up to 50 batches of 100 codes."""
    count = min(BATCHES, len(codes) // N)
    if count < 1:
        raise ValueError(f"there are only {len(codes)} codes; a batch has {N}")
    statistic = BStatistic()
    for value in smmd(codes[: count * N].reshape(count, N, -1), kernel=kernel):
        statistic.update(float(value))
    return statistic.value


def over_seeds(rows: Sequence[dict[str, float]]) -> dict[str, tuple[float, float, float]]:
    """(mean, its standard error, standard deviation between seeds) of each measure."""
    found = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        found[name] = (float(values.mean()), sd / len(values) ** 0.5, sd)
    return found


def pack(images: np.ndarray) -> dict[str, Any]:
    """Images in 0…1 (rows, columns, height, width) as JSON."""
    eight = np.round(255.0 * np.clip(images, 0.0, 1.0)).astype(np.uint8)
    text = base64.b64encode(zlib.compress(eight.tobytes(), 9)).decode()
    return {"shape": list(eight.shape), "zlib": text}


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """The inverse of ``pack``, as one picture (rows·height, columns·width)."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib"])), np.uint8)
    rows, columns, height, width = packed["shape"]
    tiles = raw.reshape(rows, columns, height, width)
    return tiles.transpose(0, 2, 1, 3).reshape(rows * height, columns * width)

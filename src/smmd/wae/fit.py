"""Training from nothing, or from where it stopped, to a kept run: what ``smmd train`` does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import torch

from smmd.wae import checkpoint, records, watch
from smmd.wae import data as datasets
from smmd.wae import model as models
from smmd.wae.config import Config, choose
from smmd.wae.loop import Learner, Ranks, advance
from smmd.wae.monitoring import Monitor, diverged
from smmd.wae.networks import Custom
from smmd.wae.run import Run, check_data


@overload
def fit(data: Any = ..., *, seeds: None = ..., **options: Any) -> Run: ...
@overload
def fit(data: Any = ..., *, seeds: int | Sequence[int], **options: Any) -> list[Run]: ...


def fit(
    data: Any = datasets.SUBSET,
    *,
    out: Any = None,
    preset: str = "quick",
    seeds: int | Sequence[int] | None = None,
    networks: Custom = None,
    device: Any = None,
    resume: bool = False,
    quiet: bool = True,
    **options: Any,
) -> Run | list[Run]:
    """Train a Wasserstein auto-encoder.

    Parameters
    ----------
    data : str, path, array or Dataset
        See ``smmd.wae.data.load``; ``data_dir`` and ``size`` may be given, too.
    out : path, optional
        The run's folder.  Without it nothing is written.
    preset : "quick" or "paper"
        "quick" is for two CPU cores, "paper" is the paper's recipe.
    seeds : int or list of int, optional
        Train so many seeds at once, from ``seed`` on, or these; a list of runs is returned, and
        ``out`` holds their folders ``seed-0``, ``seed-1``, ...
    networks : pair of modules or a function that makes them, optional
        Networks of your own, (encoder, decoder).
    device : device, optional
        By default a GPU if there is one.
    resume : bool
        Continue the run that is in ``out``, with its own options; on a CPU to the same bits.
    quiet : bool
        With False, progress is shown.
    **options
        Fields of ``Config``: ``version``, ``network``, ``latent``, ``epochs``, ``batch``,
        ``weight``, ``scale``, ``seed``, ...

    Returns
    -------
    Run, or a list of them if ``seeds`` is given
    """
    if networks is not None:
        options["network"] = "custom"
    name = str(data) if isinstance(data, str | Path) else getattr(data, "name", "array")
    given = choose(preset, data=name, **options)
    configs = [replace(given, seed=seed) for seed in _seeds(seeds, given.seed)]
    folders: list[Path | None] = [None] * len(configs)
    if out is not None:
        checkpoint.require()
        top = Path(out).expanduser()
        folders = [top if seeds is None else top / f"seed-{c.seed}" for c in configs]
    ranks = _ranks()
    records_before = _before(folders, resume)
    if records_before is not None:
        configs = [Config.from_json(record["config"]) for record in records_before]
        if isinstance(data, str | Path):
            data = configs[0].data
    dataset = datasets.load(data, data_dir=configs[0].data_dir, size=configs[0].size)
    if records_before is not None:
        for record in records_before:
            check_data(dataset, record)
    where = _device(device, ranks)
    watcher = watch.choose(quiet or ranks.rank > 0)
    with _threads(configs[0], where):
        session = _Session(configs, dataset, folders, where, ranks, networks, watcher)
        session.open(records_before)
        runs = session.train()
    return runs[0] if seeds is None else runs


def _seeds(seeds: int | Sequence[int] | None, first: int) -> list[int]:
    if seeds is None:
        return [first]
    if isinstance(seeds, int):
        if isinstance(seeds, bool) or seeds < 1:
            raise ValueError(f"seeds must be at least 1, got {seeds!r}")
        return list(range(first, first + seeds))
    chosen = [int(seed) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds must be different whole numbers, got {list(seeds)!r}")
    return chosen


def _before(folders: list[Path | None], resume: bool) -> list[dict[str, Any]] | None:
    """What the folders say about the runs that are in them; None if they hold none yet."""
    there = [f for f in folders if f is not None and (f / records.CONFIG).exists()]
    if resume and folders[0] is None:
        raise ValueError("resume=True needs out=, the folder of the run to continue")
    if not there:
        return None
    if not resume:
        raise ValueError(
            f"{there[0]} holds a run already: pass resume=True (--resume) to continue it, or "
            "another folder"
        )
    if len(there) < len(folders):
        # Killed while the folders were made: nothing was trained yet.
        return None
    return [records.read_config(f) for f in there]


def _ranks() -> Ranks:
    dist = torch.distributed
    if dist.is_available() and dist.is_initialized():
        return Ranks(dist.get_rank(), dist.get_world_size())
    return Ranks()


def _device(device: Any, ranks: Ranks) -> torch.device:
    if device is not None:
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda", ranks.rank % torch.cuda.device_count())
    return torch.device("cpu")


@contextmanager
def _threads(config: Config, device: torch.device) -> Iterator[None]:
    """As many threads as the options say, since their number decides the last bits."""
    before = torch.get_num_threads()
    if device.type == "cpu" and config.threads is not None:
        torch.set_num_threads(config.threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Session:
    """The seeds that are trained together, and where they are kept."""

    def __init__(
        self,
        configs: list[Config],
        dataset: datasets.Dataset,
        folders: list[Path | None],
        device: torch.device,
        ranks: Ranks,
        networks: Custom,
        watcher: watch.Watcher,
    ) -> None:
        if ranks.world > 1 and len(configs) > 1:
            raise ValueError(
                "several processes train one seed together; train several seeds in one process"
            )
        if len(configs) > 1 and networks is not None and not callable(networks):
            raise ValueError("several seeds need networks= to be a function that makes a new pair")
        self.configs, self.dataset, self.device = configs, dataset, device
        # One process of several keeps the run; the others only train.
        self.folders = folders if ranks.rank == 0 else [None] * len(folders)
        self.kept_in = folders
        self.watcher, self.ranks = watcher, ranks
        images = torch.from_numpy(dataset.train).to(device)
        self.held_out = torch.from_numpy(dataset.test).to(device)
        self.learners, self.monitors = [], []
        for config in configs:
            model = models.build(config, dataset.shape, networks).to(device)
            self.learners.append(Learner(config, model, images, ranks))
            self.monitors.append(Monitor(config))
        self.parameters = sum(p.numel() for p in self.learners[0].model.parameters())
        self.records: list[dict[str, Any]] = []
        self.logs: list[list[dict[str, Any]]] = [[] for _ in configs]
        self.epoch = 0

    def open(self, before: list[dict[str, Any]] | None) -> None:
        """Make the folders, or continue from what is in them."""
        if before is None:
            self.records = [
                records.describe(config, self.dataset, self.parameters, self.device)
                for config in self.configs
            ]
            for folder, record in zip(self.folders, self.records, strict=True):
                if folder is not None:
                    records.rewind_log(folder, None)
                    records.write_config(folder, record)
            return
        self.records = before
        self._restore()

    def _restore(self) -> None:
        """The latest epoch of which every seed has a good checkpoint."""
        folders = [folder for folder in self.kept_in if folder is not None]
        expected = [learner.tensors() for learner in self.learners]
        latest: int | None = None
        while True:
            found = [
                checkpoint.newest(folder, tensors, up_to=latest)
                for folder, tensors in zip(folders, expected, strict=True)
            ]
            epochs = {0 if c is None else c.epoch for c in found}
            if len(epochs) == 1:
                break
            latest = min(epochs)
        for k, (folder, state) in enumerate(zip(folders, found, strict=True)):
            if self.ranks.rank == 0:
                checkpoint.sweep(folder)
            if state is not None:
                self.learners[k].restore(state.tensors)
                self.monitors[k].restore(state.state["monitors"])
                self.epoch = state.epoch
            row = None if state is None else state.state["row"]
            if self.ranks.rank == 0:
                self.logs[k] = records.rewind_log(folder, row)

    def train(self) -> list[Run]:
        """All epochs that are left."""
        config = self.configs[0]
        about = watch.title(config, self.device, self.parameters, len(self.configs))
        self.watcher.begin(about, config.epochs, self.epoch)
        for note in self.dataset.notes[:10]:
            self.watcher.note(note)
        if self.epoch:
            self.watcher.note(f"continued after epoch {self.epoch}")
        try:
            with _Writer(background=self.device.type == "cuda") as writer:
                for epoch in range(self.epoch + 1, config.epochs + 1):
                    rows = self._epoch(epoch)
                    writer.after(self._keep(epoch, rows), lambda rows=rows: self._told(rows))
        finally:
            self.watcher.close()
        runs = zip(self.learners, self.records, self.logs, self.kept_in, strict=True)
        return [
            Run(learner.config, learner.model.eval(), record, log, folder, self.dataset)
            for learner, record, log, folder in runs
        ]

    def _epoch(self, epoch: int) -> list[dict[str, Any]]:
        start = time.perf_counter()
        for learner in self.learners:
            learner.begin(epoch)
        steps = self.learners[0].steps
        for done in advance(self.learners):
            self.watcher.tick(epoch, done / steps)
        measured = [learner.measured.cpu().numpy() for learner in self.learners]
        seconds = (time.perf_counter() - start) / len(self.learners)
        rows = []
        for learner, monitor, values in zip(self.learners, self.monitors, measured, strict=True):
            if why := diverged(values):
                raise FloatingPointError(f"seed {learner.config.seed}, epoch {epoch}: {why}")
            validation = learner.validate(self.held_out)
            rows.append(monitor.row(epoch, values, validation, seconds))
        return rows

    def _keep(self, epoch: int, rows: list[dict[str, Any]]) -> Any:
        """What is to be written, as a function without arguments."""
        parts = []
        for k, folder in enumerate(self.folders):
            self.logs[k].append(rows[k])
            if folder is not None:
                # On a CPU writing ends before training goes on, so that no copy is needed.
                tensors = {n: t.detach().cpu() for n, t in self.learners[k].tensors().items()}
                state = {"row": rows[k], "monitors": self.monitors[k].state()}
                parts.append((folder, tensors, state, self.configs[k].keep))

        def write() -> None:
            for folder, tensors, state, _ in parts:
                checkpoint.save(folder, epoch, tensors, state)
            for folder, _, state, keep in parts:
                records.append_log(folder, state["row"])
                checkpoint.prune(folder, keep)

        return write

    def _told(self, rows: list[dict[str, Any]]) -> None:
        self.watcher.epoch(rows)


class _Writer:
    """Writes at once, or (beside a GPU) while the next epoch is trained; one thing at a time.

    An epoch is reported once it is written, never before.
    """

    def __init__(self, background: bool) -> None:
        self.pool = ThreadPoolExecutor(1) if background else None
        self.last: Future[None] | None = None

    def after(self, write: Any, told: Any) -> None:
        if self.pool is None:
            write()
            told()
            return
        self.wait()

        def work() -> None:
            write()
            told()

        self.last = self.pool.submit(work)

    def wait(self) -> None:
        """Until what was begun is written; its error is raised here."""
        if self.last is not None:
            self.last.result()
            self.last = None

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.pool is not None:
            try:
                if kind is None:
                    self.wait()
            finally:
                self.pool.shutdown()

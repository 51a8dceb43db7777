"""The seeds that are trained together: epoch after epoch, watched and kept."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from smmd.wae import checkpoint, graphs, loop, records, watch
from smmd.wae import model as models
from smmd.wae.board import Board
from smmd.wae.config import Config
from smmd.wae.data import Dataset
from smmd.wae.loop import Learner
from smmd.wae.monitoring import REMEDY, Monitor, diverged
from smmd.wae.networks import Custom
from smmd.wae.ranks import Ranks
from smmd.wae.run import Run

Row = dict[str, Any]


class Session:
    """One model per seed on one device, or one model on the devices of several ranks."""

    def __init__(
        self,
        configs: list[Config],
        dataset: Dataset,
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
        if len(configs) > 1 and isinstance(networks, tuple):
            raise ValueError("several seeds need networks= to be a function that makes a new pair")
        self.configs, self.dataset, self.device = configs, dataset, device
        self.folders, self.ranks, self.watcher = folders, ranks, watcher
        self.keeps = ranks.rank == 0 and folders[0] is not None
        images, self.held_out = (
            # Arrays read from files may be read-only, which PyTorch takes with a warning.
            torch.from_numpy(np.require(part, requirements=["C", "W"])).to(device)
            for part in (dataset.train, dataset.test)
        )
        self.learners: list[Learner] = []
        for config in configs:
            model = models.build(config, dataset.shape, networks).to(device)
            if device.type == "cuda":
                model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
                model.narrow = torch.bfloat16 if config.precision == "bf16" else None
            fused = device.type == "cuda" and ranks.world == 1 and config.network != "custom"
            self.learners.append(Learner(config, model, images, ranks, fused=fused))
        self.monitors = [Monitor(config) for config in configs]
        self.parameters = sum(p.numel() for p in self.learners[0].model.parameters())
        self.records: list[dict[str, Any]] = []
        self.logs: list[list[Row]] = [[] for _ in configs]
        self.epoch = 0
        self.recording: graphs.Recording | None = None
        self.recordable = device.type == "cuda" and ranks.world == 1
        self.boards: list[Board] = []
        self.notes = list(dataset.notes[:10])

    def open(self, before: list[dict[str, Any]] | None) -> None:
        """Make the folders, or continue from what is in them."""
        self.records = before or [
            records.describe(config, self.dataset, self.parameters, self.device)
            for config in self.configs
        ]
        if self.keeps and before is None:
            for folder, record in zip(self._places(), self.records, strict=True):
                records.rewind_log(folder, None)
                records.write_config(folder, record)
        elif self.keeps:
            self._restore()
        if before is not None:
            self._share()
        if self.keeps:
            self.boards = [Board(folder, self.dataset) for folder in self._places()]

    def _places(self) -> list[Path]:
        return [folder for folder in self.folders if folder is not None]

    def _restore(self) -> None:
        """To the latest epoch of which every seed has a good checkpoint."""
        expected = [learner.tensors() for learner in self.learners]
        latest: int | None = None
        while True:
            found = [
                checkpoint.newest(folder, tensors, up_to=latest)
                for folder, tensors in zip(self._places(), expected, strict=True)
            ]
            epochs = {0 if state is None else state.epoch for state in found}
            if len(epochs) == 1:
                break
            latest = min(epochs)
        for k, (folder, state) in enumerate(zip(self._places(), found, strict=True)):
            checkpoint.sweep(folder)
            row = None
            if state is not None:
                self.learners[k].restore(state.tensors)
                self.monitors[k].restore(state.state["monitors"])
                self.epoch, row = state.epoch, state.state["row"]
            self.logs[k] = records.rewind_log(folder, row)

    def _share(self) -> None:
        """What the first rank restored, to the others, whether they see its disk or not."""
        states = [monitor.state() for monitor in self.monitors]
        self.epoch, self.logs, states = self.ranks.agree((self.epoch, self.logs, states))
        for learner, monitor, state in zip(self.learners, self.monitors, states, strict=True):
            monitor.restore(state)
            for tensor in learner.tensors().values():
                self.ranks.send(tensor)

    def train(self) -> list[Run]:
        """All epochs that are left."""
        config = self.configs[0]
        about = watch.title(config, self.device, self.parameters, len(self.configs))
        self.watcher.begin(about, config.epochs, self.epoch)
        for note in self.notes:
            self.watcher.note(note)
        if self.epoch:
            self.watcher.note(f"continued after epoch {self.epoch}")
        try:
            with Writer(background=self.device.type == "cuda") as writer:
                for epoch in range(self.epoch + 1, config.epochs + 1):
                    rows = self._epoch(epoch)
                    for log, row in zip(self.logs, rows, strict=True):
                        log.append(row)
                    writer.after(self._to_keep(epoch, rows), self._to_tell(rows))
        finally:
            self.watcher.close()
        parts = zip(self.learners, self.records, self.logs, self.folders, strict=True)
        return [
            Run(learner.config, _plain(learner.model), record, log, folder, self.dataset)
            for learner, record, log, folder in parts
        ]

    def _epoch(self, epoch: int) -> list[Row]:
        for learner in self.learners:
            learner.begin(epoch)
        if self.recordable and self.recording is None:
            start = time.perf_counter()
            self._record(epoch)
            self.watcher.note(f"steps made ready in {time.perf_counter() - start:.1f} s")
        start, steps = time.perf_counter(), self.learners[0].steps
        try:
            with self._draws(epoch):
                for done in self.recording() if self.recording else loop.advance(self.learners):
                    self.watcher.tick(epoch, done / steps)
        except ValueError as error:
            # On a CPU the penalty notices codes that are no numbers.
            if "NaN or infinite" not in str(error):
                raise
            raise FloatingPointError(
                f"seed {self.configs[0].seed}, epoch {epoch}: training diverged ({error}); {REMEDY}"
            ) from None
        measured = [self.ranks.mean(learner.measured).cpu().numpy() for learner in self.learners]
        seconds = time.perf_counter() - start
        rows: list[Row] = []
        for learner, monitor, values in zip(self.learners, self.monitors, measured, strict=True):
            if why := diverged(values):
                raise FloatingPointError(f"seed {learner.config.seed}, epoch {epoch}: {why}")
            if self.ranks.rank == 0:
                held_out = learner.validate(self.held_out)
                rows.append(monitor.row(epoch, values, held_out, seconds / len(measured)))
        agreed: list[Row] = self.ranks.agree(rows)
        return agreed

    @contextmanager
    def _draws(self, epoch: int) -> Iterator[None]:
        """Networks of the user's may draw (dropout): from a state that seed and epoch decide."""
        if self.configs[0].network != "custom":
            yield
            return
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(loop.seed_of(self.configs[0].seed, epoch))
            yield

    def _record(self, epoch: int) -> None:
        """Fused steps as a CUDA graph; else plain ones; else no graph.  All train alike."""
        try:
            self.recording = graphs.Recording(self.learners)
        except Exception as error:
            # Networks of the user's may wait for the device, a compiler may be missing.
            reason = str(error).strip().splitlines()[-1]
            fused = self.learners[0].fused
            what = "fused" if fused else "recorded as a CUDA graph"
            warnings.warn(f"steps cannot be {what}, training is slower: {reason}", stacklevel=2)
            self.recordable = fused
            if fused:
                self.learners = [learner.unfused() for learner in self.learners]
                for learner in self.learners:
                    learner.begin(epoch)
                self._record(epoch)

    def _to_keep(self, epoch: int, rows: list[Row]) -> Callable[[], None]:
        """What writes the epoch to disk.  The numbers are fetched now, before they change."""
        if not self.keeps:
            return lambda: None
        folders = self._places()
        # On a CPU writing ends before training goes on, so that no copy is needed.
        tensors = [
            {name: t.detach().cpu() for name, t in learner.tensors().items()}
            for learner in self.learners
        ]
        states = [{"monitors": monitor.state()} for monitor in self.monitors]
        last = self.configs[0].epochs
        pictures = [
            board.pictures(learner, epoch, last)
            for board, learner in zip(self.boards, self.learners, strict=True)
        ]

        def write() -> None:
            for folder, state, values, row in zip(folders, states, tensors, rows, strict=True):
                checkpoint.save(folder, epoch, values, {"row": row, **state})
            for k, folder in enumerate(folders):
                records.append_log(folder, rows[k])
                self.boards[k].write(rows[k], pictures[k])
                checkpoint.prune(folder, self.configs[k].keep)

        return write

    def _to_tell(self, rows: list[Row]) -> Callable[[], None]:
        return lambda: self.watcher.epoch(rows)


def _plain(model: models.Autoencoder) -> models.Autoencoder:
    """As ``load`` would give it."""
    model.fast.clear()
    return model.eval()


class Writer:
    """Writes at once, or (beside a GPU) while the next epoch is trained; one thing at a time.

    An epoch is reported once it is written, never before.
    """

    def __init__(self, background: bool) -> None:
        self.pool = ThreadPoolExecutor(1) if background else None
        self.last: Future[None] | None = None

    def after(self, write: Callable[[], None], tell: Callable[[], None]) -> None:
        """Write, then tell."""

        def work() -> None:
            write()
            tell()

        if self.pool is None:
            work()
        else:
            self.wait()
            self.last = self.pool.submit(work)

    def wait(self) -> None:
        """Until what was begun is written; its error is raised here."""
        last, self.last = self.last, None
        if last is not None:
            last.result()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            # Also when training was interrupted: what was begun is finished.
            self.wait()
        except Exception:
            if kind is None:
                raise
        finally:
            if self.pool is not None:
                self.pool.shutdown()

"""The paper's main training on full MNIST: seconds, and the spread of its numbers over seeds.

    PYTHONPATH=src python -m benchmarks.mnist --data-dir FOLDER --out results      # on a GPU
    python -m benchmarks.mnist --page results                                      # into docs/

FOLDER holds the four idx files as published; nothing is downloaded.  One seed is trained alone,
then ten at once, 60 epochs of 60,000 images each.  Whatever is finished is kept at once, so that a
run that is cut short leaves results of what it did:

results.json         machine, seconds, every epoch's log and every seed's measures
codes.npz            the codes of the test images, by seed: all that is said of the latent space
seed-0.tar           the first seed's weights as a run's folder, for ``smmd evaluate``
paper/VERSION.json   the runs as the reproduction's table takes them

``--page`` writes the table of docs/training.md and the picture beside it from these files.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import _mnist_page
from smmd.files import atomic_write
from smmd.paper import trained
from smmd.paper import wae as table
from smmd.wae import Run, checkpoint, fit, records, watch


class Results:
    """results.json, rewritten whole whenever something is new."""

    def __init__(self, folder: Path, head: dict[str, Any]) -> None:
        self.folder, self.content = folder, {**head, "parts": []}

    def write(self) -> None:
        atomic_write(self.folder / "results.json", json.dumps(self.content) + "\n")


class Keeper(watch.Lines):
    """Keeps every epoch's rows in results.json; shows every tenth epoch."""

    def __init__(self, results: Results, part: dict[str, Any]) -> None:
        super().__init__()
        self.results, self.part = results, part

    def begin(self, title: str, total: int, done: int) -> None:
        super().begin(title, total, done)
        self.began = time.perf_counter()

    def note(self, text: str) -> None:
        super().note(text)
        self.part["notes"].append(text)

    def epoch(self, rows: list[dict[str, Any]]) -> None:
        self.part["log"].append(rows)
        # A row's seconds are the epoch's, shared out among the seeds.
        self.part["train_s"] = sum(row["seconds"] for epoch in self.part["log"] for row in epoch)
        self.part["fit_s"] = time.perf_counter() - self.began
        self.results.write()
        if rows[0]["epoch"] % 10 == 0 or rows[0]["epoch"] == self.clock.total:
            super().epoch(rows[:1])


def train(results: Results, count: int, args: argparse.Namespace) -> None:
    """Train ``count`` seeds at once, and keep what came of them."""
    part: dict[str, Any] = {"seeds": count, "version": args.version}
    part |= {"log": [], "notes": [], "warnings": []}
    results.content["parts"].append(part)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs = fit(
            args.data, data_dir=args.data_dir, preset=args.preset, version=args.version,
            seeds=count, epochs=args.epochs, precision=args.precision, device=args.device,
            watcher=Keeper(results, part),
        )  # fmt: skip
    part["warnings"] = sorted({str(one.message) for one in caught})
    part["config"] = runs[0].config.to_json()
    results.write()
    codes = {f"seed_{run.config.seed}": run.encode(run.dataset().test) for run in runs}
    np.savez_compressed(results.folder / "codes.npz", **codes)
    pack(runs[0], results.folder / "seed-0.tar")
    part["measures"] = [{"seed": run.config.seed, **trained.measured(run)} for run in runs]
    results.write()
    print(f"{count} seeds: training {part['train_s']:.1f} s, fit {part['fit_s']:.1f} s", flush=True)
    for line in part["warnings"]:
        print("warning:", line)
    table.adopt(results.folder / "paper", runs)


def pack(run: Run, path: Path) -> None:
    """The run's folder with its last weights alone, as an archive."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "seed-0"
        weights = {f"model.{name}": t.cpu() for name, t in run.model.state_dict().items()}
        checkpoint.save(folder, run.epoch, weights, {"row": run.log[-1], "monitors": {}})
        records.write_config(folder, run.record)
        for row in run.log:
            records.append_log(folder, row)
        with tarfile.open(path, "w") as archive:
            archive.add(folder, "seed-0")


def head(args: argparse.Namespace) -> dict[str, Any]:
    """Where and with what it ran."""
    gpu = torch.cuda.is_available() and args.device != "cpu"
    return {
        "device": torch.cuda.get_device_name() if gpu else platform.processor() or "cpu",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "command": f"python -m benchmarks.mnist --seeds {args.seeds}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="the published idx files")
    parser.add_argument("--data", default="mnist", help="another data set, for a trial")
    parser.add_argument("--out", type=Path, default=Path("runs/mnist"))
    parser.add_argument("--seeds", default="1,10", help="how many at once, one after the other")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--version", default="code-norm")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--precision")
    parser.add_argument("--device")
    parser.add_argument("--page", type=Path, metavar="RESULTS", help="write the documentation")
    args = parser.parse_args()
    if args.page:
        _mnist_page.write(args.page)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    results = Results(args.out, head(args))
    failed = False
    for count in map(int, args.seeds.split(",")):
        try:
            train(results, count, args)
        except Exception:
            # The other counts may go well; what is wrong is in the results and on the screen.
            failed = True
            results.content["parts"][-1]["error"] = traceback.format_exc()
            results.write()
            traceback.print_exc()
    sys.exit(failed)


if __name__ == "__main__":
    main()

"""Wasserstein auto-encoders with a latent space that is normal, trained and kept in a folder.

    run = smmd.wae.fit("mnist-subset", out="runs/digits")     # what `smmd train` does
    run = smmd.wae.load("runs/digits")
    codes = run.encode(run.dataset().test)                    # (n, d), NumPy in and out
    images = run.decode(codes)                                # (n, channels, height, width), 0…1
    print(smmd.wae.evaluate(run))                             # what `smmd evaluate` prints
    smmd.wae.report.write(run)                                # report.html in the run's folder

The run folder
--------------
config.json                          options, seed, versions, data's name, shape and checksum
log.jsonl                            one line per finished epoch (``run.LOG_FIELDS`` says what)
checkpoints/epoch-0012.safetensors   weights, optimizer, running statistics
checkpoints/epoch-0012.json          its checksum, the schedule's place, monitors; written last
evaluation.json, report.html         the test set in numbers, and everything on one page
tensorboard/                         the same curves, and some images

A run with several seeds is a folder of such folders, ``seed-0``, ``seed-1``, ...: ``load_all``.

Where to begin reading
----------------------
networks, model, loop    the method
training, session        ``fit``, epoch after epoch, watched and kept
graphs, fused            the same steps made fast on a GPU
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smmd.wae.config import Config
    from smmd.wae.data import Dataset
    from smmd.wae.evaluation import Evaluation, evaluate
    from smmd.wae.run import Run, load, load_all
    from smmd.wae.training import fit

__all__ = ["Config", "Dataset", "Evaluation", "Run", "evaluate", "fit", "load", "load_all"]

_HOMES = {
    "Config": "config",
    "Dataset": "data",
    "Evaluation": "evaluation",
    "evaluate": "evaluation",
    "fit": "training",
    "Run": "run",
    "load": "run",
    "load_all": "run",
}


def __getattr__(name: str) -> Any:
    """PyTorch is imported when something is used that needs it."""
    from importlib import import_module

    if name == "report":  # the one submodule that is part of the interface
        return import_module(f"{__name__}.report")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value  # asked for once
    return value

"""What a run's folder holds besides checkpoints: config.json and log.jsonl."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import torch

import smmd
from smmd.files import atomic_write
from smmd.wae.config import Config
from smmd.wae.data import Dataset

FORMAT = 1
CONFIG, LOG = "config.json", "log.jsonl"

#: The fields of a line of log.jsonl, and what they are.
LOG_FIELDS = {
    "epoch": "counted from 1",
    "rate": "Adam's learning rate",
    "loss": "mse + weight * smmd, mean over the epoch's batches",
    "mse": "reconstruction error per pixel, mean over the epoch's batches",
    "smmd": "SMMD² of a training batch, mean over the epoch's batches",
    "smmd_last": "SMMD² of the last training batch",
    "threshold": "what one training batch exceeds with probability 5 % if codes are normal",
    "e": "E-statistic over the training batches of the whole run",
    "e_low": "its three-sigma band if codes are normal, lower end",
    "e_high": "upper end",
    "val_mse": "reconstruction error per pixel of held-out images",
    "b": "B-statistic: SMMD² of held-out batches (running statistics), mean",
    "b_low": "its three-sigma band if codes are normal, lower end",
    "b_high": "upper end",
    "b_batches": "over how many batches",
    "seconds": "training time of the epoch, without preparation and validation",
}


def describe(config: Config, data: Dataset, parameters: int, device: Any) -> dict[str, Any]:
    """Everything that is needed to repeat the run."""
    return {
        "format": FORMAT,
        "kind": "smmd.wae run",
        "config": config.to_json(),
        "data": {
            "name": data.name,
            "shape": list(data.shape),
            "train": len(data.train),
            "test": len(data.test),
            "sha256": data.checksum,
            "notes": list(data.notes),
        },
        "parameters": parameters,
        "versions": {
            "smmd": smmd.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "machine": {
            "platform": platform.platform(),
            "device": str(device),
            "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
            "threads": torch.get_num_threads(),
        },
    }


def write_config(folder: Path, record: dict[str, Any]) -> None:
    """config.json, whole or not at all."""
    atomic_write(folder / CONFIG, json.dumps(record, indent=2) + "\n")


def read_config(folder: Path) -> dict[str, Any]:
    """The record that ``write_config`` wrote."""
    file = folder / CONFIG
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        inner = sorted(p.name for p in folder.glob("seed-*") if (p / CONFIG).is_file())
        hint = f"; it holds the runs {', '.join(inner)}: name one of them" if inner else ""
        raise ValueError(f"{folder} is not the folder of a run: no {CONFIG}{hint}") from None
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    if not isinstance(record, dict) or record.get("kind") != "smmd.wae run":
        raise ValueError(f"{file} was not written by smmd train")
    if record.get("format") != FORMAT:
        raise ValueError(f"{file} was written by another version of smmd, in another format")
    return record


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The rows of log.jsonl; a last line that was cut short is left out."""
    try:
        lines = (folder / LOG).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    rows = []
    for number, line in enumerate(lines[:-1]):  # what follows the last newline is not whole
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise ValueError(f"{folder / LOG}, line {number + 1}, is not JSON: {line!r}") from None
    return rows


def append_log(folder: Path, row: dict[str, Any]) -> None:
    """One more line."""
    with open(folder / LOG, "ab") as file:
        file.write(json.dumps(row).encode() + b"\n")


def rewind_log(folder: Path, row: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Bring log.jsonl to where the checkpoint with this row was written; None: to the start."""
    last = 0 if row is None else row["epoch"]
    rows = [r for r in read_log(folder) if r["epoch"] < last]
    if row is not None:
        rows.append(row)
    atomic_write(folder / LOG, "".join(json.dumps(r) + "\n" for r in rows))
    return rows

"""Checkpoints: safetensors for the numbers, JSON for everything else; never pickle.

``epoch-0012.safetensors`` is written first, ``epoch-0012.json`` with its checksum last, each of
them whole or not at all: a checkpoint exists once its JSON does, and what a killed process leaves
is an older checkpoint.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from smmd.errors import MissingExtra
from smmd.files import atomic_write

FORMAT = 1
_NAME = re.compile(r"epoch-(\d{4,})\.json")


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; says why, and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """The state after ``epoch``: tensors by name, and plain values (monitors, the log's row)."""

    epoch: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


def _safetensors() -> Any:
    try:
        import safetensors.torch as module
    except ImportError:
        raise MissingExtra("keeping a run in a folder", "train", "safetensors") from None
    return module


def require() -> None:
    """Complain now, and not after the first epoch, if checkpoints cannot be written."""
    _safetensors()


def folder_of(run: Path) -> Path:
    """Where a run keeps its checkpoints."""
    return run / "checkpoints"


def epochs(run: Path) -> list[int]:
    """The epochs of which there is a checkpoint, the newest first; they may yet be damaged."""
    folder = folder_of(run)
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    return sorted((int(m[1]) for name in names if (m := _NAME.fullmatch(name))), reverse=True)


def save(run: Path, epoch: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write a checkpoint."""
    base = folder_of(run) / f"epoch-{epoch:04d}"
    data = _safetensors().save({name: t.detach().contiguous() for name, t in tensors.items()})
    atomic_write(base.with_suffix(".safetensors"), data)
    about = {
        "format": FORMAT,
        "kind": "smmd.wae checkpoint",
        "epoch": epoch,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        **state,
    }
    atomic_write(base.with_suffix(".json"), json.dumps(about, indent=1) + "\n")


def prune(run: Path, keep: int) -> None:
    """Remove all but the newest and ``keep`` more, and what killed writers left half done."""
    folder = folder_of(run)
    for epoch in epochs(run)[keep + 1 :]:
        # The JSON first: without it the rest is no checkpoint any more.
        for suffix in (".json", ".safetensors"):
            (folder / f"epoch-{epoch:04d}{suffix}").unlink(missing_ok=True)


def sweep(run: Path) -> None:
    """Remove what killed writers left half done; nobody may be writing."""
    if folder_of(run).is_dir():
        for part in folder_of(run).glob(".*.part"):
            with contextlib.suppress(OSError):
                part.unlink()


def read(run: Path, epoch: int, expected: dict[str, Tensor] | None = None) -> Checkpoint:
    """The checkpoint of ``epoch``, verified to the last byte; ``CheckpointError`` if it is not.

    ``expected`` names the tensors that there must be, with their shapes.
    """
    base = folder_of(run) / f"epoch-{epoch:04d}"
    about = _about(base.with_suffix(".json"), epoch)
    file = base.with_suffix(".safetensors")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}") from None
    if len(data) != about.pop("bytes") or hashlib.sha256(data).hexdigest() != about.pop("sha256"):
        raise CheckpointError(f"{file} is damaged: its checksum is not the one written beside it")
    try:
        tensors = _safetensors().load(data)
    except Exception as error:  # safetensors has an exception type of its own
        raise CheckpointError(f"{file} is not a safetensors file: {error}") from None
    if expected is not None:
        compare(file, tensors, expected)
    return Checkpoint(epoch, tensors, about)


def _about(file: Path, epoch: int) -> dict[str, Any]:
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}") from None
    if not isinstance(about, dict) or about.pop("kind", None) != "smmd.wae checkpoint":
        raise CheckpointError(f"{file} was not written by smmd")
    if about.pop("format", None) != FORMAT:
        raise CheckpointError(f"{file} was written by another version of smmd, in another format")
    missing = {"epoch", "bytes", "sha256", "row"} - set(about)
    if missing or about.pop("epoch") != epoch:
        raise CheckpointError(f"{file} is incomplete, or was renamed")
    return about


def compare(file: Path, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    if tensors.keys() != expected.keys():
        odd = sorted(tensors.keys() ^ expected.keys())
        raise CheckpointError(
            f"{file} belongs to another network: {len(odd)} tensors do not match, "
            f"the first is {odd[0]!r}"
        )
    for name, tensor in expected.items():
        if tensors[name].shape != tensor.shape:
            raise CheckpointError(
                f"{file} belongs to another network: {name} has shape "
                f"{tuple(tensors[name].shape)}, not {tuple(tensor.shape)}"
            )


def newest(
    run: Path, expected: dict[str, Tensor] | None = None, *, up_to: int | None = None
) -> Checkpoint | None:
    """The newest good checkpoint, None if there is none at all.

    A damaged or foreign one is passed over with a warning that says what is wrong with it; if no
    other is left, that is an error.
    """
    failures = []
    for epoch in epochs(run):
        if up_to is not None and epoch > up_to:
            continue
        try:
            found = read(run, epoch, expected)
        except CheckpointError as error:
            failures.append(str(error))
            continue
        for failure in failures:
            warnings.warn(f"{failure}; epoch {epoch} is used instead", stacklevel=2)
        return found
    if failures:
        raise CheckpointError(
            "no checkpoint can be used:\n  " + "\n  ".join(failures) + "\n"
            f"Restore one, or train again into another folder than {run}"
        )
    return None

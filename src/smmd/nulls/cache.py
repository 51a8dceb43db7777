"""Simulated nulls are kept between runs: one small file each in the user's cache folder.

A file is written beside its final place and moved there in one step, so two processes may write
at once and no reader sees half a file.  What cannot be read, or is not what its name says, is
simulated again.  ``SMMD_CACHE_DIR`` chooses another folder; ``SMMD_CACHE_DIR=""`` keeps nothing
on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_IN_MEMORY = 64
_recent: OrderedDict[str, np.ndarray] = OrderedDict()


def folder() -> Path | None:
    """Where simulated nulls are kept, or None if nothing is to be kept on disk."""
    chosen = os.environ.get("SMMD_CACHE_DIR")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared:
        return Path(shared) / "smmd"
    try:
        home = Path.home()
    except RuntimeError:  # no home folder
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "smmd" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "smmd"
    return home / ".cache" / "smmd"


def fetch(key: Mapping[str, Any], build: Callable[[], np.ndarray]) -> np.ndarray:
    """The values that ``key`` describes in full: from memory, from disk, or built and kept."""
    described = json.dumps(key, sort_keys=True)
    known = _recent.get(described)
    if known is not None:
        _recent.move_to_end(described)
        return known
    path = _path(described, key)
    values = _read(path, described) if path else None
    if values is None:
        values = np.ascontiguousarray(build(), dtype=np.float64)
        if path:
            _write(path, described, values)
    values.flags.writeable = False
    _recent[described] = values
    while len(_recent) > _IN_MEMORY:
        _recent.popitem(last=False)
    return values


def forget() -> None:
    """Empty the memory of this process; files stay."""
    _recent.clear()


def _path(described: str, key: Mapping[str, Any]) -> Path | None:
    place = folder()
    if place is None:
        return None
    digest = hashlib.sha256(described.encode()).hexdigest()[:20]
    readable = "-".join(str(key[name]) for name in ("statistic", "null", "n", "d") if name in key)
    return place / f"null-{readable}-{digest}.npz"


def _read(path: Path, described: str) -> np.ndarray | None:
    try:
        # opened here, because NumPy leaves a damaged archive open
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if bytes(stored["key"]).decode() != described:
                return None
            values = np.asarray(stored["values"], dtype=np.float64)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, UnicodeDecodeError):
        return None
    expected = json.loads(described).get("n_resamples")
    whole = values.ndim == 1 and values.size == expected and bool(np.all(np.isfinite(values)))
    return values if whole else None


def _write(path: Path, described: str, values: np.ndarray) -> None:
    """Keep the values if that is possible; a full or read-only disk is no reason to fail."""
    written = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=".writing-", suffix=".npz", delete=False
        ) as file:
            written = file.name
            key = np.frombuffer(described.encode(), dtype=np.uint8)
            np.savez(file, values=values, key=key)
        os.replace(written, path)
    except OSError:
        if written is not None:
            with contextlib.suppress(OSError):
                os.unlink(written)

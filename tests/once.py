"""Work that several test processes want the result of, done by the first that asks."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path


def once(factory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` filled, shared by all of pytest-xdist's workers."""
    base = factory.getbasetemp()
    if base.name.startswith("popen-"):  # a worker's own folder inside the run's
        base = base.parent
    folder = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            (folder / "done").touch()
    return folder

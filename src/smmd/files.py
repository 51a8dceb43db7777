"""Files that are whole or not there: written beside their place and moved into it in one step."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that becomes ``path`` when the block ends well, and vanishes if it does not.

    Its folder is made if need be.  The bytes reach the disk before the name does, so that a power
    cut leaves the old file or the new one; two processes may write at once.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno and error.filename is None:
            # A full disk does not say where it is full.
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Make ``data`` the content of ``path``; text is written as UTF-8."""
    with replacing(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)

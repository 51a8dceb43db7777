"""A file is the old one or the new one, whatever happens while it is written."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smmd.files import atomic_write, replacing

# Rewrites one file for ever with a megabyte of one letter, each time another.
_WRITER = """
import sys
from smmd.files import atomic_write
letters = "abcdefgh"
i = 0
while True:
    atomic_write(sys.argv[1], letters[i % 8] * 1_000_000)
    i += 1
"""


def test_text_and_bytes_in_a_folder_that_was_not_there(tmp_path: Path) -> None:
    atomic_write(tmp_path / "new" / "a.txt", "σ²")
    atomic_write(str(tmp_path / "new" / "b.bin"), b"\x00\xff")
    assert (tmp_path / "new" / "a.txt").read_text(encoding="utf-8") == "σ²"
    assert (tmp_path / "new" / "b.bin").read_bytes() == b"\x00\xff"
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["a.txt", "b.bin"]


def test_a_failed_writer_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    atomic_write(path, "old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half of it")
            raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    atomic_write(tmp_path / "ours", "x")
    (tmp_path / "usual").write_text("x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "usual")]
    assert modes[0] == modes[1]


@pytest.mark.skipif(os.name == "nt", reason="kills a process by a POSIX signal")
def test_a_killed_writer_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "letters"
    for delay in (0.05, 0.11):
        process = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)])
        try:
            deadline = time.monotonic() + 60.0
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(delay)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        text = path.read_text()
        assert len(text) == 1_000_000
        assert len(set(text)) == 1


def test_a_full_disk_says_where_it_is_full(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match=r"No space left.*kept") as caught,
        replacing(tmp_path / "kept"),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []

"""Running the command line in this process, as a user would in a shell."""

import sys
from dataclasses import dataclass

import pytest

from smmd import cli


@dataclass
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["smmd", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        code = stop.value.code
        captured = capsys.readouterr()
        return Outcome(0 if code is None else code, captured.out, captured.err)

    return call

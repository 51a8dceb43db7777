"""``smmd reproduce`` and ``python -m smmd.paper``."""

import io
import sys

import pytest

from smmd import cli
from smmd.paper import __main__ as module
from smmd.paper import registry, request
from smmd.paper.work import FULL, QUICK, Settings, Work


@pytest.fixture
def smmd(capsys, monkeypatch):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["smmd", "reproduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


def test_list(smmd, capsys):
    status, out, _ = smmd("--list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == [i.name for i in registry.ITEMS]
    assert module.main(["--list"]) == 0
    assert capsys.readouterr().out == out


def test_one_item_twice_and_its_page(smmd, tmp_path):
    status, out, err = smmd("--item", "variance-curve", "--out", tmp_path / "r")
    assert status == 0
    assert out.strip() == str(tmp_path / "r" / "index.html")
    assert "[1/1] variance-curve:" in err
    _, _, err = smmd("--item", "variance-curve", "--out", tmp_path / "r")
    assert "stored before" in err
    (tmp_path / "r" / "index.html").unlink()
    assert smmd("--page-only", "--out", tmp_path / "r")[0] == 0
    assert (tmp_path / "r" / "index.html").is_file()


def test_mistakes(smmd, tmp_path, capsys):
    status, _, err = smmd("--item", "nothing", "--out", tmp_path)
    assert status == 2
    assert "there is no item 'nothing'" in err
    status, _, err = smmd("--page-only", "--out", tmp_path)
    assert status == 2
    assert "holds no results" in err
    assert module.main(["--page-only", "--out", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err


def test_what_fails_is_told_in_a_line(smmd, tmp_path, monkeypatch):
    def failing(*args):
        raise FloatingPointError("training diverged")

    monkeypatch.setattr(request, "reproduce", failing)
    status, _, err = smmd("--item", "intervals", "--out", tmp_path)
    assert status == 1
    assert err.splitlines()[-1] == "smmd: error: training diverged"


def test_the_module_computes_without_the_command_line(tmp_path, capsys):
    assert module.main(["--item", "intervals", "--out", str(tmp_path), "--device", "cpu"]) == 0
    assert "intervals" in capsys.readouterr().out


def test_which_items_and_which_data():
    training = {item.name for item in registry.ITEMS if item.needs_training}
    assert training == {"discrimination-mnist", "wae", "codenorm-removal"}
    assert not training & set(request.chosen(None, False, None))
    assert training <= set(request.chosen(None, True, None))
    assert training <= set(request.chosen(None, False, True))
    assert not training & set(request.chosen(None, True, False))
    assert request.settings().sizes == QUICK
    full = request.settings(full=True, on="cpu")
    assert (full.sizes, full.data) == (FULL, "mnist-subset")
    assert request.settings(data_dir="somewhere").data == "mnist"
    assert request.settings(data="cifar10").data == "cifar10"
    assert request.settings(full=True, on="cpu", wae_epochs=3).sizes.wae_epochs == 3


def test_a_terminal_gets_one_line_that_changes(tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    teller = request.Teller(stream, 1)
    item = registry.ITEMS[0]
    teller.show(item, "", 0.0)
    Work("any", Settings(), tmp_path, lambda text, share: teller.show(item, text, share)).show(
        "a part", 1.0
    )
    teller.show(item, "", 1.0)
    assert "99%, a part" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_an_interruption_is_told_without_a_traceback(tmp_path, capsys, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(request, "reproduce", interrupted)
    assert module.main(["--item", "intervals", "--out", str(tmp_path), "--device", "cpu"]) == 130
    assert "goes on where it was" in capsys.readouterr().out

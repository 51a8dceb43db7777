"""What is shown and logged while training runs."""

import io
import json
import struct

import numpy as np
import pytest
import torch
from rich.console import Console

import smmd
from smmd.nulls import law_for
from smmd.wae import events, fit, watch
from smmd.wae.config import choose
from smmd.wae.live import Live
from smmd.wae.loop import Validation
from smmd.wae.monitoring import Monitor, diverged

SMALL = {"batch": 50, "latent": 2, "threads": 1}


def row(epoch=3, **changes):
    monitor = Monitor(choose("quick", **SMALL))
    measured = np.array([[0.1, 0.5], [0.2, -1.5]])
    return {**monitor.row(epoch, measured, Validation(0.3, [0.5, -0.1]), 1.5), **changes}


def test_a_row_holds_the_papers_statistics():
    found = row()
    assert found["mse"] == pytest.approx(0.15)
    assert found["loss"] == pytest.approx(0.15 + 0.01 * -0.5)
    assert found["smmd_last"] == -1.5
    assert (found["b"], found["b_batches"]) == (pytest.approx(0.2), 2)
    assert found["b_high"] == pytest.approx(3 / np.sqrt(2))
    # A batch normalized by its own moments has a law of its own, in whose units E is counted.
    law = law_for(smmd.Gaussian(), "diagonal", 50, 2).law
    e = smmd.EStatistic()
    for value in (0.5, -1.5):
        e.update((value - law.mean) / law.sd)
    assert found["e"] == pytest.approx(e.value)
    assert found["threshold"] == pytest.approx(law.isf(0.05))


def test_e_of_normal_codes_stays_in_its_band():
    monitor = Monitor(choose("quick", **SMALL))
    rng = np.random.default_rng(0)
    z = smmd.code_normalize(rng.standard_normal((2000, 50, 2)))
    found = monitor.row(1, np.stack([np.zeros(2000), smmd.smmd(z)], 1), Validation(0, [0]), 1)
    assert found["e_low"] < found["e"] < found["e_high"]


def test_thresholds_of_the_other_versions():
    adaptive = Monitor(choose("quick", version="adaptive-plain", **SMALL))
    assert (adaptive.mean, adaptive.sd, adaptive.threshold) == (0.0, 1.0, 2.0)


def test_numbers_that_are_none_end_the_run(spots):
    assert diverged(np.zeros((3, 2))) is None
    measured = np.zeros((3, 2))
    measured[1, 0] = np.nan
    assert "from step 2" in diverged(measured)
    with pytest.raises(FloatingPointError, match=r"seed 0, epoch 1.*learning rate"):
        fit(spots, stages=((1, 1e30),), **SMALL)


def test_lines_for_log_files(spots, tmp_path, capsys):
    fit(spots, out=tmp_path / "run", epochs=2, quiet=False, **SMALL)
    first, *lines = capsys.readouterr().out.splitlines()
    assert "code-norm" in first
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    for word in ("loss", "mse", "held out", "SMMD²", "(<", "E ", "B ", "±", "left"):
        assert word in lines[0]
    fit(spots, epochs=1, **SMALL)
    assert capsys.readouterr().out == ""
    fit(spots, out=tmp_path / "new", resume=True, epochs=1, quiet=False, **SMALL)
    assert "new holds no run yet" in capsys.readouterr().out


def test_seeds_have_lines_of_their_own():
    out = io.StringIO()
    lines = watch.Lines(out)
    lines.begin("title", 5, 2)
    lines.note("a note")
    lines.epoch([row(), row()])
    text = out.getvalue().splitlines()
    assert text[:2] == ["title", "a note"]
    assert text[2].startswith("epoch 3/5 #0")
    assert text[3].startswith("epoch 3/5 #1")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5.4, "0:05"), (65, "1:05"), (3725, "1:02:05"), (float("nan"), "?")]
)
def test_clock(seconds, shown):
    assert watch.clock(seconds) == shown


def test_the_live_table():
    out = io.StringIO()
    live = Live(Console(file=out, force_terminal=True, width=120, color_system=None))
    live.begin("mnist, code-norm", 5, 0)
    live.tick(1, 0.5)
    live.note("[a note]")
    live.epoch([row(1)])
    live.epoch([row(2, b=9.0)])
    live.close()
    text = out.getvalue()
    for word in ("mnist, code-norm", "[a note]", "epoch 3/5", "40%", "SMMD² (threshold)", "+9.00"):
        assert word in text
    live.close()


def test_a_terminal_gets_the_live_table(monkeypatch):
    assert isinstance(watch.choose(True), watch.Quiet)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert isinstance(watch.choose(False), Live)
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert isinstance(watch.choose(False), watch.Lines)


def test_tensorboard_files_hold_curves_and_images(spots, tmp_path):
    fit(spots, out=tmp_path, epochs=2, **SMALL)
    (file,) = (tmp_path / "tensorboard").iterdir()
    assert file.name.startswith("events.out.tfevents.")
    messages = list(events.read(file))
    assert b"brain.Event:2" in messages[0]
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    curves = [m for m in messages if b"train/mse" in m]
    assert len(curves) == 2
    assert struct.pack("<f", log[1]["mse"]) in curves[1]
    assert sum(b"\x89PNG" in m for m in messages) == 2
    file.write_bytes(file.read_bytes()[:-3])
    assert len(list(events.read(file))) == len(messages) - 1


def test_crc32c():
    # The check value of CRC-32C is that of "123456789": 0xE3069283, here masked as TFRecord does.
    crc = 0xE3069283
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert events._masked(b"123456789") == struct.pack("<I", masked)


def test_progress_is_told_after_it_is_kept(spots, tmp_path, monkeypatch):
    from smmd.wae import checkpoint

    class Told(watch.Quiet):
        def epoch(self, rows):
            assert checkpoint.epochs(tmp_path)[0] == rows[0]["epoch"]

    monkeypatch.setattr(watch, "choose", lambda quiet: Told())
    assert fit(spots, out=tmp_path, epochs=2, **SMALL).finished
    assert torch.get_num_threads() >= 1

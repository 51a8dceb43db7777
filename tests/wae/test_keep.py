"""Runs are kept: resumed to the same bits, after kills, with damaged and foreign checkpoints."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from smmd.wae import checkpoint, fit, load, load_all, records, session

SMALL = {"batch": 50, "latent": 2, "threads": 1}


class _Stop(Exception):
    pass


def interrupted(monkeypatch, after, *args, **options):
    """``fit``, ended by an exception in the epoch after ``after``."""
    true = session.Session._epoch

    def epoch(self, number):
        if number > after:
            raise _Stop
        return true(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(session.Session, "_epoch", epoch)
        with pytest.raises(_Stop):
            fit(*args, **options)


def same(first, second):
    """Whether two runs have the same weights, running statistics and history, to the bit."""
    weights = [run.model.state_dict() for run in (first, second)]
    assert weights[0].keys() == weights[1].keys()
    for name, tensor in weights[0].items():
        assert torch.equal(tensor, weights[1][name]), name
    logs = [[{**row, "seconds": 0} for row in run.log] for run in (first, second)]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("version", ["code-norm", "adaptive-bn", "random"])
def test_resumed_is_as_if_never_stopped(version, spots_file, tmp_path, monkeypatch):
    options = {**SMALL, "version": version, "epochs": 4}
    whole = fit(spots_file, **options)
    interrupted(monkeypatch, 2, spots_file, out=tmp_path / "run", **options)
    again = fit(spots_file, out=tmp_path / "run", resume=True)
    same(whole, again)
    same(whole, load(tmp_path / "run"))
    assert again.finished
    # Nothing is left to do, and nothing is done.
    same(whole, fit(spots_file, out=tmp_path / "run", resume=True))


def test_networks_that_draw_are_resumed_to_the_same_bits(spots_file, tmp_path, monkeypatch):
    def networks():
        encoder = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 2))
        decoder = nn.Sequential(nn.Linear(2, 64), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))
        return encoder, decoder

    options = {**SMALL, "epochs": 3, "networks": networks}
    whole = fit(spots_file, **options)
    interrupted(monkeypatch, 1, spots_file, out=tmp_path / "run", **options)
    torch.rand(7)  # another process has drawn something else
    state = torch.get_rng_state()
    same(whole, fit(spots_file, out=tmp_path / "run", resume=True, networks=networks))
    assert torch.equal(torch.get_rng_state(), state)


def test_several_seeds_are_each_as_alone(spots_file, tmp_path, monkeypatch):
    options = {**SMALL, "epochs": 2}
    interrupted(monkeypatch, 1, spots_file, out=tmp_path, seeds=[3, 5], **options)
    runs = fit(spots_file, out=tmp_path, seeds=[3, 5], resume=True, **options)
    assert [run.folder.name for run in runs] == ["seed-3", "seed-5"]
    for run, kept in zip(runs, load_all(tmp_path), strict=True):
        same(run, kept)
        same(run, fit(spots_file, seed=run.config.seed, **options))
    with pytest.raises(ValueError, match="holds the runs seed-3, seed-5"):
        load(tmp_path)


def test_seeds_that_stopped_at_different_epochs(spots_file, tmp_path, monkeypatch):
    options = {**SMALL, "epochs": 3}
    whole = fit(spots_file, seeds=2, **options)
    interrupted(monkeypatch, 2, spots_file, out=tmp_path, seeds=2, **options)
    (tmp_path / "seed-1/checkpoints/epoch-0002.json").unlink()
    again = fit(spots_file, out=tmp_path, seeds=2, resume=True)
    for pair in zip(whole, again, strict=True):
        same(*pair)


def test_killed_at_any_instant(spots_file, tmp_path):
    """Real kills, at random moments; each loses at most the epoch that was running."""
    worker = Path(__file__).with_name("killer.py")
    folder = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, worker, spots_file, folder, "8"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    kills = json.loads(done.stdout)
    assert len(kills) == 8
    for kill in kills:
        # An epoch that was reported is there; at most its report is missing.
        assert kill["checkpoint"] in (kill["logged"], kill["logged"] + 1)
        assert kill["checkpoint"] >= kill["before"]
    assert kills[-1]["checkpoint"] >= 4
    again = fit(spots_file, out=folder, resume=True)
    same(fit(spots_file, epochs=30, **SMALL), again)
    assert not list(folder.glob("checkpoints/.*.part"))
    assert [row["epoch"] for row in records.read_log(folder)] == list(range(1, 31))


@pytest.fixture
def kept(spots_file, tmp_path):
    """A run of three epochs with three checkpoints."""
    run = fit(spots_file, out=tmp_path / "run", epochs=3, **SMALL)
    assert checkpoint.epochs(run.folder) == [3, 2, 1]
    return run


def _damage(path, how):
    data = path.read_bytes()
    if how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        path.write_bytes(data[:-100] + bytes([data[-100] ^ 1]) + data[-99:])
    elif how == "gone":
        path.unlink()
    else:
        path.write_text(how)


@pytest.mark.parametrize(
    ("file", "how", "words"),
    [
        ("safetensors", "cut", "damaged"),
        ("safetensors", "flipped", "damaged"),
        ("safetensors", "gone", "cannot be read"),
        ("json", "cut", "cannot be read"),
        ("json", "[]", "not written by smmd"),
        ("json", '{"kind": "smmd.wae checkpoint", "format": 99}', "another version"),
        ("json", '{"kind": "smmd.wae checkpoint", "format": 1, "epoch": 3}', "incomplete"),
    ],
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(kept, file, how, words):
    _damage(kept.folder / f"checkpoints/epoch-0003.{file}", how)
    with pytest.warns(UserWarning, match=f"epoch-0003.*{words}.*epoch 2 is used"):
        assert load(kept.folder).epoch == 2
    with pytest.warns(UserWarning, match="epoch 2 is used"):
        again = fit(kept.config.data, out=kept.folder, resume=True)
    same(kept, again)


def test_without_a_good_checkpoint_there_is_an_error(kept):
    for file in kept.folder.glob("checkpoints/*.safetensors"):
        _damage(file, "cut")
    with pytest.raises(checkpoint.CheckpointError, match=r"epoch-0003.*\n.*epoch-0002.*\n.*0001"):
        load(kept.folder)


def test_a_foreign_checkpoint_is_named(kept, spots_file, tmp_path):
    other = fit(spots_file, out=tmp_path / "other", epochs=1, network="residual", **SMALL)
    for suffix in (".json", ".safetensors"):
        source = other.folder / f"checkpoints/epoch-0001{suffix}"
        about = source.read_bytes().replace(b'"epoch": 1', b'"epoch": 3')
        (kept.folder / f"checkpoints/epoch-0003{suffix}").write_bytes(about)
    with pytest.warns(UserWarning, match="another network"):
        fit(spots_file, out=kept.folder, resume=True)


def test_only_the_newest_are_kept(spots_file, tmp_path):
    run = fit(spots_file, out=tmp_path / "run", epochs=5, keep=1, **SMALL)
    assert checkpoint.epochs(run.folder) == [5, 4]
    assert load(run.folder, epoch=4).epoch == 4
    with pytest.raises(checkpoint.CheckpointError, match="epoch-0001"):
        load(run.folder, epoch=1)


def test_a_folder_says_what_is_needed_to_repeat_it(kept):
    record = json.loads((kept.folder / "config.json").read_text())
    assert record["data"]["sha256"] == kept.dataset().checksum
    assert record["config"]["seed"] == 0
    assert set(record["versions"]) == {"smmd", "torch", "numpy", "python"}
    same(kept, fit(**{k: v for k, v in record["config"].items() if k != "network"}))
    rows = records.read_log(kept.folder)
    assert all(set(row) == set(records.LOG_FIELDS) for row in rows)


def test_a_line_cut_short_is_not_read(kept):
    with open(kept.folder / "log.jsonl", "ab") as file:
        file.write(b'{"epoch": 4, "ra')
    assert [row["epoch"] for row in records.read_log(kept.folder)] == [1, 2, 3]
    assert load(kept.folder).epoch == 3


def test_other_options_and_other_data_are_refused(kept, spots_file, tmp_path):
    for option in ({"latent": 3}, {"epochs": 7}, {"seed": 1}, {"version": "random"}):
        with pytest.raises(ValueError, match=f"{next(iter(option))}.*leave the option out"):
            fit(spots_file, out=kept.folder, resume=True, **{**SMALL, **option})
    with pytest.raises(ValueError, match="holds a run already"):
        fit(spots_file, out=kept.folder, epochs=3, **SMALL)
    with pytest.raises(ValueError, match="needs out="):
        fit(spots_file, resume=True)
    parts = dict(np.load(spots_file))
    np.savez(spots_file, x_train=parts["x_train"][::-1], x_test=parts["x_test"])
    with pytest.raises(ValueError, match="checksum"):
        fit(spots_file, out=kept.folder, resume=True)
    with pytest.raises(ValueError, match="checksum"):
        load(kept.folder).dataset()


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "not the folder of a run"), ("{", "damaged"), ("{}", "not written by smmd train")],
)
def test_a_folder_that_is_no_run(tmp_path, content, words):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=words):
        load(tmp_path)


def test_a_full_disk_is_named_and_loses_one_epoch(spots_file, tmp_path, monkeypatch):
    """As where the second epoch's checkpoint finds no room."""
    true = checkpoint.atomic_write

    def full(path, data):
        if path.name == "epoch-0002.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        true(path, data)

    options = {**SMALL, "epochs": 3}
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "atomic_write", full)
        with pytest.raises(OSError, match=r"No space left.*epoch-0002"):
            fit(spots_file, out=tmp_path / "run", **options)
    again = fit(spots_file, out=tmp_path / "run", resume=True)
    same(fit(spots_file, **options), again)

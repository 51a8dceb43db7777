"""Simulated nulls on disk: found again, keyed by everything, safe against damage and company."""

import multiprocessing
import os

import numpy as np
import pytest

import smmd
from smmd.normality import reference, statistics
from smmd.nulls import cache

KEY = {"statistic": "smmd", "null": "normal", "n": 20, "d": 3, "n_resamples": 50}
VALUES = np.linspace(-1.0, 3.0, 50)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SMMD_CACHE_DIR", str(tmp_path))
    cache.forget()
    yield tmp_path
    cache.forget()


def never():
    raise AssertionError("it was simulated again")


def test_what_was_kept_is_found_again(folder):
    cache.fetch(KEY, lambda: VALUES)
    assert cache.fetch(KEY, never) is cache.fetch(KEY, never)  # in memory
    cache.forget()
    np.testing.assert_array_equal(cache.fetch(KEY, never), VALUES)  # on disk
    (file,) = folder.iterdir()
    assert file.name.startswith("null-smmd-normal-20-3-")
    with pytest.raises(ValueError, match="read-only"):
        cache.fetch(KEY, never)[0] = 0.0


def emptied(file):
    file.write_bytes(b"")


def shortened(file):
    file.write_bytes(file.read_bytes()[:-40])


def noise(file):
    file.write_bytes(np.random.default_rng(0).bytes(500))


def of_another_key(file):
    np.savez(file, values=VALUES, key=np.frombuffer(b"{}", dtype=np.uint8))


def with_a_nan(file):
    with np.load(file) as stored:
        key = stored["key"]
    np.savez(file, values=np.where(VALUES > 2.0, np.nan, VALUES), key=key)


@pytest.mark.parametrize("damage", [emptied, shortened, noise, of_another_key, with_a_nan])
def test_a_damaged_file_is_built_again(folder, damage):
    cache.fetch(KEY, lambda: VALUES)
    (file,) = folder.iterdir()
    damage(file)
    cache.forget()
    again = cache.fetch(KEY, lambda: VALUES + 1.0)
    np.testing.assert_array_equal(again, VALUES + 1.0)
    cache.forget()
    np.testing.assert_array_equal(cache.fetch(KEY, never), VALUES + 1.0)


@pytest.mark.parametrize("place", ["", "file/below"])
def test_no_place_to_keep_it_is_no_error(folder, monkeypatch, place):
    (folder / "file").write_text("not a folder")
    monkeypatch.setenv("SMMD_CACHE_DIR", place and str(folder / place))
    np.testing.assert_array_equal(cache.fetch(KEY, lambda: VALUES), VALUES)
    assert [path.name for path in folder.iterdir()] == ["file"]


def write_often(folder, start, turns):
    os.environ["SMMD_CACHE_DIR"] = folder
    start.wait(60)
    for _ in range(turns):
        cache.forget()
        found = cache.fetch(KEY, lambda: VALUES)
        assert np.array_equal(found, VALUES)
        for file in cache.folder().glob("null-*"):
            file.unlink(missing_ok=True)


def test_two_processes_at_once(folder):
    """Both write and remove the same file all the time; neither ever reads half of one."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    workers = [context.Process(target=write_often, args=(str(folder), start, 60)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert not list(folder.glob(".writing-*"))


def test_the_key_holds_everything_that_matters(folder):
    """One file for each request that differs in one thing; no second one for a repetition."""
    plain = {"statistic": "smmd", "kernel": smmd.Gaussian(), "null": "normal", "n": 12, "d": 2}
    changes = [
        {},
        {"null": "diagonal"},
        {"n": 13},
        {"d": 3},
        {"kernel": smmd.Gaussian(0.25)},
        {"kernel": smmd.Gaussian(gamma=0.5)},
        {"statistic": "bhep"},
        {"n_resamples": 29},
        {},
    ]
    for change in changes:
        asked = {"n_resamples": 19, **plain, **change}
        chosen = statistics.STATISTICS[asked.pop("statistic")]
        reference.find(chosen, method="monte-carlo", **asked)
    assert len(list(folder.iterdir())) == len(changes) - 1


def test_a_generator_is_not_kept(folder):
    found = statistics.STATISTICS["smmd"]
    reference.find(
        found, smmd.Gaussian(), "normal", 12, 2, method="monte-carlo", n_resamples=19, rng=1
    )
    assert not list(folder.iterdir())

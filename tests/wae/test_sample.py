"""Codes: draws, slices, ways; and the files that images are written to."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from smmd.wae import sample


def test_draws_are_reproducible_and_standard_normal():
    codes = sample.draws(4000, 3, seed=5)
    assert np.array_equal(codes, sample.draws(4000, 3, seed=5))
    assert not np.array_equal(codes, sample.draws(4000, 3, seed=6))
    assert np.abs(codes.mean(0)).max() < 4 / np.sqrt(4000)
    assert np.abs(np.cov(codes.T) - np.eye(3)).max() < 4 * np.sqrt(2 / 4000)


@pytest.mark.parametrize("d", [2, 8, 64])
def test_a_slice_is_a_regular_grid_on_a_plane_through_the_origin(d):
    grid = sample.plane_slice(d, 5, 2.0).reshape(5, 5, d)
    assert np.linalg.matrix_rank(grid.reshape(25, d)) == 2
    assert grid[2, 2] == pytest.approx(np.zeros(d))
    across, down = grid[0, 1] - grid[0, 0], grid[1, 0] - grid[0, 0]
    assert np.linalg.norm(across) == pytest.approx(1.0)
    assert np.linalg.norm(down) == pytest.approx(1.0)
    assert across @ down == pytest.approx(0.0, abs=1e-12)
    assert grid[4, 4] - grid[0, 0] == pytest.approx(4 * across + 4 * down)


def test_a_slice_of_one_dimension_is_a_line():
    line = sample.plane_slice(1, 5, 2.0)
    assert np.abs(line[:, 0]) == pytest.approx([2, 1, 0, 1, 2])


def test_ways_begin_and_end_at_their_codes_and_keep_to_the_sphere():
    ends = np.random.default_rng(0).standard_normal((2, 4, 6))
    way = sample.between(ends, 7).reshape(4, 7, 6)
    assert way[:, 0] == pytest.approx(ends[0])
    assert way[:, -1] == pytest.approx(ends[1])
    lengths = np.linalg.norm(way, axis=2)
    assert np.diff(lengths, 2) == pytest.approx(0.0, abs=1e-9)  # straight in length
    steps = way / lengths[..., None]
    angles = np.arccos(np.sum(steps[:, 1:] * steps[:, :-1], axis=2))
    assert np.ptp(angles, axis=1) == pytest.approx(0.0, abs=1e-6)  # and even in angle


def test_ways_between_parallel_and_opposite_codes_are_straight():
    a = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    b = np.array([[2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    middle = sample.between(np.stack([a, b]), 3).reshape(3, 3, 2)[:, 1]
    assert middle == pytest.approx(np.array([[1.5, 0.0], [0.0, 0.0], [0.0, 0.0]]))


def test_files_of_every_kind(tmp_path):
    pictures = np.linspace(0, 1, 6 * 3 * 4 * 5, dtype=np.float32).reshape(6, 3, 4, 5)
    sample.write(tmp_path / "x.npy", pictures)
    kept = np.load(tmp_path / "x.npy")
    assert (kept.shape, kept.dtype) == ((6, 4, 5, 3), np.uint8)
    sample.write(tmp_path / "x.png", pictures, columns=3)
    with Image.open(tmp_path / "x.png") as sheet:
        assert sheet.size == (15, 8)
        assert np.array_equal(np.asarray(sheet)[4:, 10:], kept[5])
    sample.write(tmp_path / "folder", pictures[:, :1])
    names = sorted(p.name for p in (tmp_path / "folder").iterdir())
    assert names == [f"{k}.png" for k in range(6)]
    with Image.open(tmp_path / "folder" / "2.png") as one:
        assert one.mode == "L"
        assert np.array_equal(np.asarray(one), kept[2, :, :, 0])


def test_targets_that_cannot_be_written_are_refused_early(tmp_path):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("x")
    for name, message in (
        ("x.gif", "images are written as .png"),
        ("folder.png", "is a folder; name a file"),
        ("file", "exists and is not a folder"),
    ):
        with pytest.raises(ValueError, match=message):
            sample.check_target(tmp_path / name)

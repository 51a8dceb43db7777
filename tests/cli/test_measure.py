"""``smmd measure``: every kind of file gives the function's value, or one clear line."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import smmd

X = np.random.default_rng(8).standard_normal((60, 3))
#: The header of an array of 60 TB, and nothing behind it.
HUGE = b"\x93NUMPY\x01\x00v\x00" + (
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }".ljust(117) + b"\n"
)


def value(outcome):
    assert outcome.status == 0, outcome.err
    return json.loads(outcome.out)


def write(path, x=X):
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    name = path.name
    if name.endswith(".csv"):
        frame.to_csv(path, index=False)
    elif name.endswith(".tsv"):
        frame.to_csv(path, index=False, sep="\t")
    elif name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    elif name.endswith(".parquet"):
        frame.to_parquet(path)
    elif name.endswith(".npy"):
        np.save(path, x)
    else:
        np.savez(path, x=x)
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "x.parquet", "x.npy", "x.npz"])
def test_every_format_gives_the_function_s_value(run, tmp_path, name):
    result = value(run("measure", write(tmp_path / name), "--json"))
    # CSV is written with 17 digits, so that nothing is lost on the way.
    assert result["smmd"] == pytest.approx(float(smmd.smmd(X)), abs=1e-12)
    assert result["mmd2_unbiased"] == pytest.approx(float(smmd.mmd2(X)), abs=1e-15)
    assert result["mmd2_biased"] == pytest.approx(float(smmd.mmd2(X, unbiased=False)), abs=1e-15)
    assert (result["n"], result["d"]) == (60, 3)
    assert result["gamma"] == pytest.approx((3 / 8) ** 0.5)


@pytest.mark.parametrize(
    ("options", "kernel"),
    [
        (["--scale", "1/16"], smmd.Gaussian(1 / 16)),
        (["--gamma", "0.5"], smmd.Gaussian(gamma=0.5)),
        (["--kernel", "imq"], smmd.IMQ()),
        (["--kernel", "sliced", "--gamma", "2"], smmd.Sliced(2.0)),
        (["--kernel", "adaptive"], smmd.Adaptive()),
        (["--kernel", "henze-zirkler"], smmd.HenzeZirkler()),
        (["--kernel", "multi-scale", "--scale", "1/4,1/8"], smmd.MultiScale((1 / 4, 1 / 8))),
    ],
)
def test_kernels_by_name(run, tmp_path, options, kernel):
    result = value(run("measure", write(tmp_path / "x.npy"), "--json", *options))
    assert result["smmd"] == pytest.approx(float(smmd.smmd(X, kernel=kernel)), abs=1e-12)


def test_columns_by_name_and_index(run, tmp_path):
    path = write(tmp_path / "x.csv")
    expected = float(smmd.smmd(X[:, [2, 0]]))
    for columns in ("c,a", "2,0"):
        result = value(run("measure", path, "--columns", columns, "--json"))
        assert result["smmd"] == pytest.approx(expected, abs=1e-12)


def test_a_file_without_header_and_one_with_semicolons(run, tmp_path):
    bare, european = tmp_path / "bare.csv", tmp_path / "european.csv"
    spaces = tmp_path / "spaces.txt"
    np.savetxt(bare, X, delimiter=",", fmt="%.17g")
    np.savetxt(spaces, X, fmt="%.17g")
    pd.DataFrame(X).to_csv(european, sep=";", index=False)
    for path in (bare, european, spaces):
        result = value(run("measure", path, "--json"))
        assert result["n"] == 60
        assert result["smmd"] == pytest.approx(float(smmd.smmd(X)), abs=1e-12)


def test_shipped_sample_and_its_sentence(run):
    outcome = run("measure")
    assert outcome.status == 0
    assert "n = 150, d = 4" in outcome.out
    assert "Not N(0, I)" in outcome.out
    assert "--normalize whiten" in outcome.out


def test_normal_data_read_as_normal(run, tmp_path):
    outcome = run("measure", write(tmp_path / "x.npy"))
    assert "Within what a standard normal sample of this size gives" in outcome.out


def test_missing_values_are_counted(run, tmp_path):
    x = X.copy()
    x[3, 1] = np.nan
    path = write(tmp_path / "x.csv", x)
    refused = run("measure", path)
    assert refused.status == 2
    assert "column 'b', in 1 of 60 rows" in refused.err
    result = value(run("measure", path, "--nan-policy", "omit", "--json"))
    assert (result["n"], result["rows_omitted"]) == (59, 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "there is no such file"),
        ("empty.csv", b"", "is empty"),
        ("x.xlsx", b"abc", "the ending '.xlsx' is not one of"),
        ("x.parquet", b"not a parquet file at all", "could not be read as PARQUET"),
        ("x.npz", b"PK\x03\x04 broken", "could not be read as NPZ"),
        ("x.npy", b"\x93NUMPY", "could not be read as NPY"),
        ("x.csv", b"a,b\n1,2\n3,4,5\n", "could not be read as CSV"),
        ("words.csv", b"a,b\nx,y\nz,w\n", "has no numeric columns"),
        ("one.csv", b"a,b\n1,2\n", "at least 2 are needed"),
        ("inf.csv", b"a,b\n1,inf\n3,4\n", "inf.csv holds 1 NaN or infinite value"),
        ("huge.csv", b"a,b\n1e308,2\n3,4\n", "huge.csv holds values beyond"),
        ("header.csv", b"a,b\n", "has columns but no rows"),
        ("utf16.csv", "a,b\n1,2\n".encode("utf-16"), "could not be read as CSV"),
        ("random.csv", bytes(range(256)) * 9, "could not be read as CSV"),
        ("bomb.npy", HUGE, "could not be read as NPY"),
    ],
)
def test_hostile_files_end_in_one_line(run, tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    outcome = run("measure", path)
    assert outcome.status == 2
    assert outcome.err.startswith("smmd: error: ")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_pickles_are_refused(run, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "refused because reading them can run code" in run("measure", path).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--columns", "q"], "there is no column 'q'"),
        (["--columns", "a,a"], "twice"),
        (["--scale", "-1"], "scale must be positive"),
        (["--scale", "wide"], "is not a number"),
        (["--scale", "1,2"], "need --kernel multi-scale"),
        (["--scale", "1", "--gamma", "1"], "exclude each other"),
        (["--kernel", "sliced", "--scale", "1"], "use --gamma"),
        (["--kernel", "henze-zirkler", "--gamma", "1"], "does not apply"),
    ],
)
def test_impossible_options_are_named(run, tmp_path, options, message):
    outcome = run("measure", write(tmp_path / "x.csv"), *options)
    assert outcome.status == 2
    assert message in outcome.err


def test_unknown_option_and_version(run):
    assert run("measure", "--no-such-option").status == 2
    assert run("--version").out.strip() == smmd.__version__


def test_help_teaches(run):
    out = run("measure", "--help").out
    for phrase in ("0 ± 1 for a standard normal sample", "smmd test", "--normalize whiten", "1/8"):
        assert phrase in " ".join(out.split())


def test_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "smmd", "measure", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["d"] == 4

"""Data frames and arrays of every framework: one answer, names kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import smmd

X = np.random.default_rng(20260107).gamma(5.0, size=(90, 3))
NAMES = ("height", "weight", "age")
COLUMNS = dict(zip(NAMES, X.T, strict=True))
EXPECTED = smmd.normality_test(X)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS),
     np.rec.fromarrays(list(X.T), names=list(NAMES))],
    ids=["pandas", "polars", "pyarrow", "records"],
)  # fmt: skip
def test_frames_keep_their_names(frame):
    r = smmd.normality_test(frame)
    assert r.names == NAMES
    assert r.statistic == EXPECTED.statistic
    assert "'height', 'weight', 'age'" in str(r)
    assert [column.name for column in smmd.diagnose(frame, n_directions=0).columns] == list(NAMES)


@pytest.mark.parametrize(
    ("x", "tolerance"),
    [
        (torch.tensor(X), 1e-12),
        (torch.tensor(X, dtype=torch.float32, requires_grad=True), 1e-4),
        (torch.tensor(X).bfloat16(), 0.3),
        (jnp.asarray(X), 1e-4),
        (X.tolist(), 1e-12),
        (np.asfortranarray(X), 1e-12),
        (X.astype(object), 1e-12),
        (np.ma.masked_invalid(X), 1e-12),
    ],
    ids=["torch", "torch32", "bfloat16", "jax", "lists", "fortran", "objects", "masked"],
)
def test_arrays(x, tolerance):
    r = smmd.normality_test(x)
    assert r.statistic == pytest.approx(EXPECTED.statistic, abs=tolerance)
    assert isinstance(r.statistic, float)
    assert r.names == ("0", "1", "2")


def test_jax_in_double_precision():
    with jax.enable_x64(True):
        assert smmd.normality_test(jnp.asarray(X)).statistic == pytest.approx(EXPECTED.statistic)


def test_summing_with_pytorch_where_asked():
    r = smmd.normality_test(X, device="cpu")
    assert r.statistic == pytest.approx(EXPECTED.statistic, abs=1e-11)


def test_missing_values_of_frames():
    frame = pd.DataFrame({"a": pd.array([1, None, 3] * 30, dtype="Int64"), "b": X[:, 0]})
    with pytest.raises(ValueError, match="missing values\\) in column 'a', in 30 of 90 rows"):
        smmd.normality_test(frame)
    table = pl.DataFrame({"a": [None, *X[1:, 1]], "b": X[:, 0]})
    assert smmd.normality_test(table, nan_policy="omit").n_omitted == 1
    masked = np.ma.array(X, mask=np.arange(270).reshape(90, 3) == 4)
    assert smmd.normality_test(masked, nan_policy="omit").n_omitted == 1


def test_series_are_one_column():
    r = smmd.normality_test(pd.Series(X[:, 0], name="height"))
    assert (r.d, r.names) == (1, ("height",))
    assert smmd.normality_test(pl.Series("height", X[:, 0])).statistic == r.statistic


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_that_are_not_numbers_are_named(library):
    frame = library.DataFrame({"a": X[:, 0], "kind": ["x"] * 90})
    with pytest.raises(TypeError, match=r"column 'kind' is not numeric; pass x\[\['a'\]\]"):
        smmd.normality_test(frame)


def test_lazy_frames_and_repeated_names():
    with pytest.raises(TypeError, match=r"pass x.collect\(\)"):
        smmd.normality_test(pl.LazyFrame(COLUMNS))
    twice = pd.DataFrame(X[:, :2], columns=["a", "a"])
    with pytest.raises(ValueError, match="several columns of one name"):
        smmd.normality_test(twice)

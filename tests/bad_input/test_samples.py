"""What is no sample is refused early, by name, with what was got and what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import smmd

Z = np.random.default_rng(0).standard_normal((10, 3))


def with_value(value):
    z = Z.copy()
    z[2, 1] = value
    return z


BAD = {
    "NaN": (with_value(np.nan), ValueError, "z holds 1 NaN or infinite value; remove"),
    "infinity": (with_value(-np.inf), ValueError, "z holds 1 NaN or infinite value; remove"),
    "NaN in float16": (with_value(np.nan).astype(np.float16), ValueError, "1 NaN"),
    "a masked value": (np.ma.array(Z, mask=Z > 1), ValueError, "NaN or infinite"),
    "too large to square": (Z * 1e200, ValueError, "beyond ±1e\\+150.*check their units"),
    "one point": (Z[:1], ValueError, "z has n=1 points.*unbiased estimator needs at least 2"),
    "no points": (Z[:0], ValueError, "z has n=0 points.*pass more rows"),
    "no columns": (Z[:, :0], ValueError, "z has no columns: its shape is \\(10, 0\\)"),
    "one axis": (Z[:, 0], ValueError, "shape \\(..., n, d\\), got \\(10,\\).*pass z\\[:, None\\]"),
    "a number": (3.0, ValueError, "shape \\(..., n, d\\), got \\(\\)"),
    "complex": (Z + 1j, TypeError, "z is complex \\(complex128\\).*z.real, z.imag"),
    "objects": (Z.astype(object), TypeError, "got ndarray of dtype object.*z.astype\\(float\\)"),
    "None": (None, TypeError, "z must hold real numbers, got NoneType"),
    "text": ([["a", "b"], ["c", "d"]], TypeError, "real numbers, got list of dtype <U1"),
    "dates": (Z.astype("M8[D]"), TypeError, "dtype datetime64"),
    "rows of two lengths": ([[1.0, 2.0], [3.0]], ValueError, "z .* its rows differ in length"),
    "a generator": ((row for row in Z), TypeError, "got generator"),
    "a column of text": (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), TypeError, "DataFrame"),
    "SciPy sparse": (scipy.sparse.csr_array(Z), TypeError, "sparse csr_array; pass z.toarray"),
    "torch NaN": (torch.tensor(with_value(np.nan)), ValueError, "1 NaN or infinite"),
    "torch sparse": (torch.tensor(Z).to_sparse(), TypeError, "sparse tensor .*z.to_dense"),
    "torch complex": (torch.ones(3, 2, dtype=torch.complex64), TypeError, "z is complex"),
    "torch float8": (torch.zeros(3, 2, dtype=torch.float8_e5m2), TypeError, "float32 first"),
    "jax NaN": (jnp.asarray(with_value(np.nan)), ValueError, "1 NaN or infinite"),
}


@pytest.mark.parametrize("name", BAD)
def test_no_sample(name):
    z, error, message = BAD[name]
    with pytest.raises(error, match=message):
        smmd.smmd(z)


@pytest.mark.parametrize(
    "function",
    [
        smmd.mmd2, smmd.value_and_grad, smmd.cramer_wold, smmd.mardia, smmd.optimal_shift,
        smmd.outlier_delta, smmd.explain, smmd.standardize, smmd.whiten, smmd.code_normalize,
        lambda z: smmd.witness(Z, z), lambda z: smmd.mmd2_two_sample(Z, z),
        lambda z: smmd.mmd2(Z, var=z + 4.0), lambda z: smmd.effect_size(Z, z),
    ],
)  # fmt: skip
def test_every_function_refuses_nan_and_complex_numbers(function):
    with pytest.raises(ValueError, match="1 NaN or infinite value"):
        function(with_value(np.nan))
    with pytest.raises(TypeError, match="is complex"):
        function(Z + 1j)


def test_what_is_no_error():
    whole = np.arange(12).reshape(6, 2) - 5
    expected = smmd.smmd(whole.astype(float))
    for z in (whole, whole.tolist(), whole.astype(np.int8), pd.DataFrame(whole)):
        assert smmd.smmd(z) == expected
    assert smmd.smmd(Z > 0) == smmd.smmd((Z > 0).astype(float))
    integers = torch.tensor(whole)
    assert smmd.smmd(integers).dtype == torch.get_default_dtype()
    assert float(smmd.smmd(integers)) == pytest.approx(expected, rel=1e-6)
    assert smmd.smmd(jnp.asarray(whole)).dtype == jnp.asarray(0.0).dtype
    assert smmd.smmd(np.zeros((0, 5, 2))).shape == (0,)
    assert smmd.mmd2(Z[:1], unbiased=False) > 0.0  # one point is a sample of the V-statistic
    assert smmd.smmd(np.ma.array(Z, mask=False)) == smmd.smmd(Z)


VARIANCES = {
    "negative": (-np.ones((10, 3)), ValueError, "smallest -1.*the variance σ², not its logarithm"),
    "of another shape": (np.ones(3), ValueError, "\\(10, 3\\), or \\(10,\\).*got \\(3,\\)"),
    "a column": (np.ones((10, 1)), ValueError, "got \\(10, 1\\)"),
    "one number": (0.1, ValueError, "one variance per point; got \\(\\)"),
    "NaN": (np.abs(with_value(np.nan)), ValueError, "var holds 1 NaN"),
    "complex": (np.ones((10, 3)) * 1j, TypeError, "var is complex"),
    "of another framework": (torch.ones(10, 3), TypeError, "var is a torch array but z a numpy"),
    "too large": (np.full((10, 3), 1e200), ValueError, "var holds values beyond"),
}


@pytest.mark.parametrize("name", VARIANCES)
def test_no_variances(name):
    var, error, message = VARIANCES[name]
    for call in (smmd.mmd2, smmd.smmd, smmd.code_normalize):
        with pytest.raises(error, match=message):
            call(Z, var=var)


def test_two_samples_that_do_not_meet():
    """Frameworks, dimensions, batches."""
    for function in (smmd.witness, smmd.mmd2_two_sample):
        for z, y in (
            (Z, Z[:, :2]), (Z, torch.tensor(Z)), (np.zeros((2, 5, 3)), np.zeros((4, 5, 3))),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="one framework and dimension, with batches"):
                function(z, y)
    assert smmd.witness(np.zeros((2, 5, 3)), Z).shape == (2, 10)
    assert smmd.mmd2_two_sample(np.zeros((2, 5, 3)), np.ones((4, 1, 6, 3))).shape == (4, 2)


def test_where_an_outlier_may_go():
    with pytest.raises(ValueError, match="index must name one of the n=10 points, got 10"):
        smmd.outlier_delta(Z, index=10)
    with pytest.raises(ValueError, match="index must be at least -10"):
        smmd.outlier_delta(Z, index=-11)
    with pytest.raises(TypeError, match=r"index must be a whole number, got 1.5"):
        smmd.outlier_delta(Z, index=1.5)
    for to in (np.zeros(2), torch.zeros(3)):
        with pytest.raises(ValueError, match=r"to must be a numpy array of shape \(..., 3\)"):
            smmd.outlier_delta(Z, to=to)
    with pytest.raises(ValueError, match="to holds 3 NaN"):
        smmd.outlier_delta(Z, to=np.full(3, np.nan))
    assert smmd.outlier_delta(Z, index=-1) == smmd.outlier_delta(Z, index=9)


def test_effect_sizes_need_a_spread():
    for a, b, message in (
        ([1.0], [2.0, 3.0], "a must hold at least 2 values"),
        ([1.0, 1.0], [2.0, 2.0], "both constant"),
        (Z, Z[:4], "one framework and, but for the last axis, one shape"),
        (torch.zeros(3), Z[0], "one framework"),
    ):
        with pytest.raises(ValueError, match=message):
            smmd.effect_size(a, b)


def test_what_cannot_be_normalized():
    constant = Z.copy()
    constant[:, 1] = 7.0
    for function in (smmd.standardize, smmd.whiten, smmd.code_normalize):
        with pytest.raises(ValueError, match=r"constant column 1: .*drop"):
            function(constant)
        with pytest.raises(ValueError, match="n=1 points"):
            function(Z[:1])
    with pytest.raises(ValueError, match="more than 3 rows, or project"):
        smmd.whiten(Z[:3])
    with pytest.raises(ValueError, match=r"singular .*drop them"):
        smmd.whiten(Z @ np.ones((3, 3)) + Z[:, :1])
    with pytest.raises(ValueError, match="constant columns 0, 1, 2"):
        smmd.code_normalize(np.ones((4, 3)), var=np.zeros(4))


def test_functions_that_read_values_say_so_under_jax():
    with pytest.raises(TypeError, match=r"optimal_shift searches.*outside jit, grad and vmap"):
        jax.jit(smmd.optimal_shift)(jnp.asarray(Z))

"""Sums over pairs: the only O(n²) work.  One chooser, several ways.

dense   any framework, as the formulas read       blocks  NumPy, threads
torch   one PyTorch operator                       gpu     Triton's kernels, for that operator
ranks   several processes                          jax     derivatives of its own

``explain`` says which of them serves given data, and why; ``use`` overrides it.
"""

from __future__ import annotations

import numpy as np

from smmd.arrays import Array, is_transformed, kind, namespace
from smmd.pairs import blocks, dense
from smmd.pairs.explanation import Explanation, explain
from smmd.pairs.plan import forced, use
from smmd.radial import Radial, SeriesRadial, is_fixed

__all__ = [
    "Explanation",
    "explain",
    "operand",
    "overlap_sum",
    "overlap_terms",
    "pair_sum",
    "pair_sum_and_gradient",
    "radial_value",
    "row_sums",
    "use",
]

overlap_sum = dense.overlap_sum
overlap_terms = dense.overlap_terms
row_sums = dense.row_sums


def operand(given: Array, work: Array) -> Array:
    """What to sum over: the data as given where their type is one that sums know, else ``work``.

    float32 data stay float32, so that PyTorch's gradients need no conversion on their way back.
    """
    if kind(given) not in ("numpy", "torch"):
        return work
    known = str(given.dtype).endswith(("float32", "float64"))
    if not known and kind(given) == "torch":
        from smmd.pairs import gpu

        known = gpu.serves(given)
    return given if known else work


def pair_sum(z: Array, radial: Radial) -> Array:
    """Σ_{i≠j} f(‖z_i − z_j‖²), shape (…) for z of shape (…, n, d).

    In float64 under NumPy and PyTorch; that z is float32 lets them use faster products.
    """
    name = kind(z)
    if name == "numpy" and forced() == "dense":
        return dense.pair_sum(z.astype(np.float64), radial)
    if name == "numpy":
        return blocks.pair_sum(z, radial, single=z.dtype == np.float32)[0]
    if name == "torch":
        from smmd.pairs import torch as torch_pairs

        return torch_pairs.pair_sum(z, radial)
    if name == "jax":
        from smmd.pairs import jax as jax_pairs

        return jax_pairs.pair_sum(z, radial)
    return dense.pair_sum(z, radial)


def pair_sum_and_gradient(z: Array, radial: Radial) -> tuple[Array, Array]:
    """``pair_sum`` and its gradient in z, for frameworks that do not differentiate."""
    if kind(z) == "numpy":
        value, gradient = blocks.pair_sum(z, radial, gradient=True, single=z.dtype == np.float32)
        assert gradient is not None
        return value, gradient
    return dense.pair_sum(z, radial), dense.pair_gradient(z, radial)


def radial_value(radial: Radial, r2: Array) -> Array:
    """f(r²) element by element."""
    if isinstance(radial, SeriesRadial) and kind(r2) == "torch" and not is_transformed(r2):
        from smmd.pairs import torch as torch_pairs

        return torch_pairs.radial_value(radial, r2)
    if kind(r2) == "jax" and is_fixed(radial):
        from smmd.pairs import jax as jax_pairs

        return jax_pairs.radial_value(r2, radial)
    return radial.value(namespace(r2), r2)

"""Sums over pairs: the only O(n²) work.  One chooser, several ways.

dense   any framework, as the formulas read       blocks  NumPy, threads
torch   one PyTorch operator                       (JAX runs ``dense`` in a compiled loop)
"""

from __future__ import annotations

from smmd.arrays import Array, is_transformed, kind, namespace
from smmd.pairs import blocks, dense
from smmd.radial import Radial, SeriesRadial

overlap_sum = dense.overlap_sum
overlap_terms = dense.overlap_terms
row_sums = dense.row_sums


def pair_sum(z: Array, radial: Radial) -> Array:
    """Σ_{i≠j} f(‖z_i − z_j‖²), shape (…) for z of shape (…, n, d)."""
    name = kind(z)
    if name == "numpy":
        return blocks.pair_sum(z, radial)[0]
    if name == "torch":
        from smmd.pairs import torch as torch_pairs

        return torch_pairs.pair_sum(z, radial)
    return dense.pair_sum(z, radial)


def pair_sum_and_gradient(z: Array, radial: Radial) -> tuple[Array, Array]:
    """``pair_sum`` and its gradient in z, for frameworks that do not differentiate."""
    if kind(z) == "numpy":
        value, gradient = blocks.pair_sum(z, radial, gradient=True)
        assert gradient is not None
        return value, gradient
    return dense.pair_sum(z, radial), dense.pair_gradient(z, radial)


def radial_value(radial: Radial, r2: Array) -> Array:
    """f(r²) element by element."""
    if isinstance(radial, SeriesRadial) and kind(r2) == "torch" and not is_transformed(r2):
        from smmd.pairs import torch as torch_pairs

        return torch_pairs.radial_value(radial, r2)
    return radial.value(namespace(r2), r2)

"""Affine functions g = c₀ + c₁ r² of squared distances, filled block by block.

Each class prepares a group of samples once, rows x (s, m, d) against columns y (s, n, d), fills
blocks of g, and collects the moments of the slopes f'(r²_ij), from which the gradient
Σ_j f'(r²_ij)(x_i − y_j) is made.  Without y the columns are the rows, and a block off the diagonal
stands for its mirror image too.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from smmd.pairs.products import product

#: A row's sum may be so much smaller than its terms: they lose three digits at most.
KEPT = 1e-3


class Distances(Protocol):
    """What the sum over blocks needs; ``rows`` and ``cols`` are ranges of points."""

    dtype: np.dtype[Any]

    def fill(self, rows: slice, cols: slice, out: np.ndarray) -> None:
        """g for a block of pairs."""

    def collect(self, slope: np.ndarray, rows: slice, cols: slice) -> None:
        """Add a block of slopes."""

    def gradient(self) -> np.ndarray:
        """Σ_j slope_ij (x_i − y_j) in float64, shape (s, m, d)."""


class Gram:
    """One matrix product gives g, norms and constant included: its inner dimension is d + 2.

    With y = √|2c₁|·x and h = ½|y|²,  g = c₀ ± ½|y − y'|² = [∓y, ±h + c₀, 1]·[y', 1, ±h'].
    In float32, h and c₀ take two columns each, so that a row's norm carries no rounding error
    that all its pairs would share.  Points must be centred, or the norms cancel.

    ``alone`` says that no other thread of ours is at work, so that BLAS may use its own.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray | None, c0: Any, c1: Any, *, dtype: Any,
                 slopes: bool, alone: bool) -> None:  # fmt: skip
        self.product = np.matmul if alone else product
        self.dtype = np.dtype(dtype)
        self.mirror = y is None
        several = isinstance(c1, np.ndarray)
        sign = 1.0 if (c1.max() if several else c1) >= 0.0 else -1.0
        self.stretch = np.sqrt(np.abs(2.0 * c1)) if several else math.sqrt(abs(2.0 * c1))
        rows, row_norms = self._stretched(x, sign)
        cols, col_norms = (rows, row_norms) if y is None else self._stretched(y, sign)
        (samples, m, d), split = x.shape, 2 if self.dtype == np.float32 else 1
        self.left = np.empty((samples, m, d + 2 * split), self.dtype)
        self.right = np.empty((samples, d + 2 * split, cols.shape[1]), self.dtype)
        np.multiply(rows, -sign, out=self.left[..., :d])
        self.right[:, :d] = cols.swapaxes(-1, -2)
        self.left[..., d + split :] = 1.0
        self.right[:, d : d + split] = 1.0
        constant = c0[..., 0] if isinstance(c0, np.ndarray) else c0
        self._parts(row_norms + constant, self.left[..., d : d + split])
        self._parts(col_norms, self.right[:, d + split :].swapaxes(-1, -2))
        if slopes:
            self.x = x
            self.points = self.right[:, : d + 1].swapaxes(-1, -2)  # y' and 1
            self.moments = np.zeros((samples, m, d + 1))

    def _stretched(self, x: np.ndarray, sign: float) -> tuple[np.ndarray, np.ndarray]:
        """y in the type of the products, and ±½|y|² of that very y in float64."""
        y = (x * self.stretch).astype(self.dtype, copy=False)
        return y, (0.5 * sign) * np.einsum("...k,...k->...", y, y, dtype=np.float64)

    @staticmethod
    def _parts(values: np.ndarray, out: np.ndarray) -> None:
        """``values`` as the sum of the columns of ``out``, of which there are one or two."""
        out[..., 0] = values
        if out.shape[-1] > 1:
            out[..., 1] = values - out[..., 0]

    def fill(self, rows: slice, cols: slice, out: np.ndarray) -> None:
        self.product(self.left[:, rows], self.right[..., cols], out)

    def collect(self, slope: np.ndarray, rows: slice, cols: slice) -> None:
        if slope.shape[1:] == (self.left.shape[1], self.right.shape[2]):  # all pairs
            self.product(slope, self.points, self.moments)
            return
        part = np.empty((*slope.shape[:2], self.points.shape[-1]), self.dtype)
        self.moments[:, rows] += self.product(slope, self.points[:, cols], part)
        if self.mirror and rows != cols:
            part = np.empty((*slope.shape[::2], self.points.shape[-1]), self.dtype)
            mirrored = slope.swapaxes(-1, -2)
            self.moments[:, cols] += self.product(mirrored, self.points[:, rows], part)

    def gradient(self) -> np.ndarray:
        pull = self.x * self.moments[..., -1:]
        pull -= self.moments[..., :-1] / self.stretch
        return pull

    def cancels(self, pull: np.ndarray, radius: float) -> bool:
        """Whether this ``gradient`` may have lost digits.

        x·Σ slope − Σ slope·y is off by ε|x|·Σ slope.  A row of near-duplicates, whose slopes
        outweigh all others, may itself be far smaller.
        """
        sizes = np.sqrt(np.einsum("...k,...k->...", pull, pull))
        return bool(np.any(sizes < (KEPT * radius) * np.abs(self.moments[..., -1])))


class Differences:
    """Coordinate by coordinate: nothing cancels, wherever the points lie."""

    dtype = np.dtype(np.float64)

    def __init__(
        self, x: np.ndarray, y: np.ndarray | None, c0: Any, c1: Any, *, slopes: bool
    ) -> None:
        self.mirror = y is None
        self.x, self.y = x, x if y is None else y
        self.c0, self.c1 = c0, c1
        self.pull = np.zeros(x.shape) if slopes else None

    def fill(self, rows: slice, cols: slice, out: np.ndarray) -> None:
        from scipy.spatial.distance import cdist  # here, because it doubles the time of an import

        with np.errstate(over="ignore"):
            for x, y, g in zip(self.x[:, rows], self.y[:, cols], out, strict=True):
                g[...] = cdist(x, y, "sqeuclidean")
            np.minimum(out, 1e300, out=out)  # times a negative c₁, ∞ would be fine; times 0 not
            out *= self.c1
        out += self.c0

    def collect(self, slope: np.ndarray, rows: slice, cols: slice) -> None:
        assert self.pull is not None
        for k in range(self.x.shape[-1]):
            step = self.x[:, rows, None, k] - self.y[:, None, cols, k]
            step *= slope
            self.pull[:, rows, k] += step.sum(axis=-1)
            if self.mirror and rows != cols:
                self.pull[:, cols, k] -= step.sum(axis=-2)

    def gradient(self) -> np.ndarray:
        assert self.pull is not None
        return self.pull

"""What single rows have to do with the value of the statistic, and which of them lie far out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from smmd import measure, pairs, samples
from smmd.closed_form import Terms
from smmd.kernels import Kernel

#: Rows are called far out if a normal sample of this size has such a row with this probability.
FAR = 0.01


@dataclass(frozen=True)
class Row:
    """One row of the data.

    ``share`` is the row's part of SMMD²: the parts of all rows add up to it.  ``witness`` is
    positive where the sample has more mass than the normal law, the row itself left out.  ``pull``
    is the length of the statistic's gradient in the row: how fast moving it would change SMMD².
    ``distance`` is Mahalanobis'; ``pvalue`` is the probability that any of n normal rows is
    that far out.
    """

    index: int
    share: float
    witness: float
    pull: float
    distance: float
    pvalue: float


@dataclass(frozen=True, eq=False)
class Parts:
    """The same for all rows, as arrays of length n."""

    share: np.ndarray
    witness: np.ndarray
    pull: np.ndarray
    distance: np.ndarray
    pvalue: np.ndarray

    def row(self, k: int, index: int) -> Row:
        """The k-th, which is called ``index`` in the data."""
        fields = (self.share, self.witness, self.pull, self.distance, self.pvalue)
        return Row(index, *(float(values[k]) for values in fields))


def parts_of(z: np.ndarray, kernel: Kernel, null: str) -> Parts:
    """How SMMD² of the normalized rows ``z`` is made up.

    SMMD² is the mean over rows of mean_{j≠i} h(z_i, z_j), in null standard deviations, with h the
    kernel centred on both sides: under N(0, I) each row's part has mean zero wherever it lies.
    """
    n, d = z.shape
    sample = samples.take(z, minimum=2, why="SMMD²")
    terms = measure.terms_for(kernel, sample, standardized=True)
    norms = np.einsum("ij,ij->i", z, z)
    share, witness = _made_up(z, z, terms)
    _, gradient = measure.value_and_grad(z, kernel)
    return Parts(
        share=share / n,
        witness=witness,
        pull=np.linalg.norm(gradient, axis=1),
        distance=np.sqrt(norms),
        pvalue=far_out(norms, n, d, null),
    )


def distance_law(n: int, d: int, null: str) -> Any:
    """The law of one row's squared Mahalanobis distance under the null.

    With mean and n−1 covariance of the sample itself, n D²/(n−1)² ~ Beta(d/2, (n−d−1)/2)
    (Gnanadesikan and Kettenring 1972).  χ² for "standard", and nearly so for "diagonal".
    """
    if null == "normal" or (null == "diagonal" and d == 1):
        return stats.beta(0.5 * d, 0.5 * (n - d - 1), scale=(n - 1) ** 2 / n)
    return stats.chi2(d)


def far_out(squared: np.ndarray, n: int, d: int, null: str) -> np.ndarray:
    """The probability that any of n normal rows lies as far out, at most (Bonferroni)."""
    return np.minimum(1.0, n * np.asarray(distance_law(n, d, null).sf(squared)))


def shares(z: np.ndarray, at: np.ndarray, kernel: Kernel) -> list[tuple[float, float]]:
    """Share and witness of a few rows only: (rows) × n instead of n²."""
    if not len(at):
        return []
    n = len(z)
    sample = samples.take(z, minimum=2, why="SMMD²")
    terms = measure.terms_for(kernel, sample, standardized=True)
    share, witness = _made_up(z[at], z, terms)
    return [(float(s) / n, float(w)) for s, w in zip(share, witness, strict=True)]


def _made_up(some: np.ndarray, z: np.ndarray, terms: Terms) -> tuple[np.ndarray, np.ndarray]:
    """n·share and witness of some of the rows."""
    everywhere = np.asarray(terms.cross.value(np, np.einsum("ij,ij->i", z, z))).sum()
    cross = np.asarray(terms.cross.value(np, np.einsum("ij,ij->i", some, some)))
    own = np.asarray(terms.pair.value(np, np.zeros(1)))
    others = len(z) - 1
    witness = (np.asarray(pairs.row_sums(some, z, terms.pair)) - own) / others - cross
    return witness - (everywhere - cross) / others + terms.constant, witness

"""The eigenvalues of the Gaussian kernel under N(0, I), before and after projection.

Kernel k(x, y) = exp(-u |x - y|^2 / 2) with u = 1/gamma^2, integrated against N(0, I_d). A null
that estimates parameters projects the kernel: constants for "standard"; constants, every x_k and
every x_k^2 - 1 for "diagonal"; all polynomials of degree at most 2 for "normal". The limit law of
n * MMD^2 is a chi-square sum with the eigenvalues of the projected kernel as its weights.

With r = sqrt(1 + 4u) and B = (r - 1)/(r + 1), Mehler's formula gives the eigenvalues
(1 - B)^d B^m of the kernel itself, with multiplicity C(m + d - 1, m). Projection touches only the
angular sectors l = 0, 1, 2 (functions of |x| times a spherical harmonic of degree l); in each of
them a small matrix is diagonalized.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

Null = Literal["standard", "diagonal", "normal"]
NULLS: tuple[Null, ...] = ("standard", "diagonal", "normal")

# Eigenvalues whose share of the trace is below this do not change any float64 result.
_NEGLIGIBLE = 1e-16
# Below this B the Hermite basis needs few functions and keeps tiny eigenvalues exact; above it
# the eigenbasis of the kernel is smaller, and projecting in it loses only eps / B^4.
_WIDE_KERNEL = 0.1


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Distinct eigenvalues, largest first, and how many times each occurs."""

    eigenvalues: NDArray[np.float64]
    multiplicities: NDArray[np.float64]

    def trace(self, power: int = 1) -> float:
        """T_j, the sum of multiplicity * eigenvalue^j."""
        # one factor eigenvalue joins the multiplicity first: the multiplicity alone can be 1e200
        shares = self.multiplicities * self.eigenvalues
        return float(np.sum(shares * self.eigenvalues ** (power - 1)))


def check_null(null: str) -> None:
    if null not in NULLS:
        raise ValueError(f"null must be one of {', '.join(NULLS)}, got {null!r}")


def check_kernel(d: int, gamma2: float) -> None:
    if d < 1:
        raise ValueError(f"d must be at least 1, got {d}; it is the number of columns of the data")
    if not (gamma2 > 0 and np.isfinite(gamma2)):
        raise ValueError(
            f"gamma2 must be positive and finite, got {gamma2}; it is the kernel's squared width"
        )


def mehler_ratio(gamma2: float) -> float:
    """B, the ratio of successive eigenvalues; gamma2 = (1 - B)^2 / B."""
    u = 1.0 / gamma2
    r = np.sqrt(1.0 + 4.0 * u)
    return float(4.0 * u / (r + 1.0) ** 2)  # (r - 1)/(r + 1) without the cancellation of r - 1


@lru_cache(maxsize=256)
def kernel_spectrum(d: int, gamma2: float) -> Spectrum:
    """Spectrum of the kernel itself: (1 - B)^d B^m, C(m + d - 1, m) times."""
    check_kernel(d, gamma2)
    eigenvalues, multiplicities = _mehler(d, gamma2)
    return _tidy(eigenvalues, multiplicities)


@lru_cache(maxsize=256)
def projected_spectrum(null: Null, d: int, gamma2: float) -> Spectrum:
    """Spectrum of the kernel after projecting out what the null estimates."""
    check_null(null)
    check_kernel(d, gamma2)
    eigenvalues, multiplicities = _mehler(d, gamma2)
    pieces = [eigenvalues]
    counts = [multiplicities]
    for degree, copies, removed in sectors(null, d):
        # these copies of lambda_l, lambda_{l+2}, ... leave the plain spectrum ...
        multiplicities[degree::2] -= copies
        # ... and come back projected.
        projected = _projected_sector(d, gamma2, degree, removed)
        pieces.append(projected)
        counts.append(np.full(projected.size, float(copies)))
    return _tidy(np.concatenate(pieces), np.concatenate(counts))


def sectors(null: Null, d: int) -> list[tuple[int, int, int]]:
    """(angular degree l, copies of the sector, polynomials removed from each copy)."""
    if null == "standard":
        return [(0, 1, 1)]
    harmonics = d - 1 if null == "diagonal" else d * (d + 1) // 2 - 1
    sectors = [(0, 1, 2), (1, d, 1)]
    # in one dimension there is no spherical harmonic of degree 2
    return [*sectors, (2, harmonics, 1)] if harmonics else sectors


def _mehler(d: int, gamma2: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    b = mehler_ratio(gamma2)
    # Shares of the trace, C(m + d - 1, m) (1 - B)^d B^m, are a negative binomial distribution.
    last = _negative_binomial_end(d, b)
    m = np.arange(last + 1)
    eigenvalues = np.exp(d * np.log1p(-b) + m * np.log(b))
    # C(m + d, m + 1) = C(m + d - 1, m) (m + d)/(m + 1): exact integers as long as they fit
    multiplicities = np.ones(last + 1)
    for k in range(last):
        multiplicities[k + 1] = np.rint(multiplicities[k] * (k + d) / (k + 1.0))
    if not np.isfinite(multiplicities[-1]):
        raise ValueError(
            f"gamma2 = {gamma2} is too narrow for d = {d}: the spectrum has more than 1e308 "
            "terms; use a wider kernel"
        )
    return eigenvalues, multiplicities


def _negative_binomial_end(size: float, ratio: float) -> int:
    """First m beyond which the weights (size)_m/m! ratio^m (1-ratio)^size sum to nothing."""
    mean = size * ratio / (1.0 - ratio)
    end = 8
    # P(M >= end) is a regularized incomplete beta function
    while end < mean or special.betainc(end, size, ratio) > 1e-3 * _NEGLIGIBLE:
        end += 1 + end // 8
    return end


def _projected_sector(d: int, gamma2: float, degree: int, removed: int) -> NDArray[np.float64]:
    if mehler_ratio(gamma2) < _WIDE_KERNEL:
        return _sector_in_hermite_basis(d, gamma2, degree, removed)
    return _sector_in_eigenbasis(d, gamma2, degree, removed)


def _sector_in_hermite_basis(
    d: int, gamma2: float, degree: int, removed: int
) -> NDArray[np.float64]:
    """Orthogonal polynomials under N(0, I): to project is to delete leading rows and columns."""
    u = 1.0 / gamma2
    v = u / (1.0 + 2.0 * u)
    beta = d / 2.0 + degree
    size = 24 + int(8.0 * beta * v)  # diagonal entries fall like (2v)^(2i) beyond i ~ beta v
    i = np.arange(removed, removed + size)
    m = degree + np.arange(2 * i[-1] + 1)
    log_matrix = log_hermite_matrix(m * np.log(v) - 0.5 * d * np.log1p(2.0 * u), beta, i)
    scale = float(log_matrix.max())
    values = np.linalg.eigvalsh(np.exp(log_matrix - scale)) * np.exp(scale)
    return np.asarray(values, dtype=float)


def log_hermite_matrix(
    log_c: NDArray[np.float64], beta: float, i: NDArray[np.int_]
) -> NDArray[np.float64]:
    """The kernel between the polynomials of degree l + 2i and l + 2j of one sector.

    With beta = d/2 + l, and up to signs that do not change eigenvalues,

        M[i, j] = c_{l+i+j} Gamma(beta+i+j) / sqrt(i! j! Gamma(beta+i) Gamma(beta+j)).

    ``log_c`` begins at l. One width has c_m = (1+2u)^(-d/2) v^m, v = u/(1+2u), a mixture the sum
    of its widths'.
    """
    half = 0.5 * (special.gammaln(i + 1.0) + special.gammaln(beta + i))
    sums = np.arange(2 * i[-1] + 1)
    log_moments = log_c[sums] + special.gammaln(beta + sums)
    return np.asarray(log_moments[i[:, None] + i] - half[:, None] - half)


def _sector_in_eigenbasis(d: int, gamma2: float, degree: int, removed: int) -> NDArray[np.float64]:
    """Eigenbasis of the kernel: diagonal lambda_{l+2J}, polynomials spread over all J.

    The sector's lowest polynomial has weight w_J = (1 - B^2)^beta (beta)_J / J! B^(2J) on J,
    beta = d/2 + l; the next one is sqrt(w) times a linear function of J.
    """
    b = mehler_ratio(gamma2)
    beta = d / 2.0 + degree
    b2 = b * b
    # far enough for the weights and for the eigenvalues themselves
    size = max(_negative_binomial_end(beta, b2), int(np.ceil(np.log(1e-18) / np.log(b2)))) + 1
    j = np.arange(size, dtype=float)
    log_w = beta * np.log1p(-b2) + special.gammaln(beta + j) - special.gammaln(beta)
    log_w += j * np.log(b2) - special.gammaln(j + 1.0)
    root = np.exp(0.5 * log_w)
    columns = [root]
    if removed == 2:
        columns.append(root * (j - beta * b2 / (1.0 - b2)))
    full, _ = linalg.qr(np.stack(columns, axis=1))
    complement = full[:, removed:]
    eigenvalues = np.exp(d * np.log1p(-b) + (degree + 2.0 * j) * np.log(b))
    matrix = complement.T @ (eigenvalues[:, None] * complement)
    return np.asarray(np.linalg.eigvalsh(matrix), dtype=float)


def _tidy(eigenvalues: NDArray[np.float64], multiplicities: NDArray[np.float64]) -> Spectrum:
    # In T_1 the many small eigenvalues count, in T_4 the few large ones: keep what either needs.
    first = eigenvalues * multiplicities
    fourth = first * (eigenvalues / eigenvalues.max()) ** 3
    keep = (first > _NEGLIGIBLE * first.sum()) | (fourth > _NEGLIGIBLE * fourth.sum())
    order = np.argsort(-eigenvalues[keep], kind="stable")
    values, counts = eigenvalues[keep][order], multiplicities[keep][order]
    values.flags.writeable = counts.flags.writeable = False  # the result is cached and shared
    return Spectrum(values, counts)

"""Expectations of products of the centred kernel h over the edges of a graph, null "standard".

h(x, y) = k(x, y) - a(x) - a(y) + c with a(x) = E_y k(x, y), c = E a(x). A product of h over edges
is a signed sum of products of k, a and c; each of these is a Gaussian integral

    E prod_edges k prod_vertices a = det(I + L)^(-d/2) (1+u)^(-d (number of a)/2),

with L = u times the graph's Laplacian, plus rho = u/(1+u) on the diagonal for every a.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from smmd.nulls.spectrum import check_kernel

Edges = tuple[tuple[int, int], ...]

SAME_EDGE_TWICE: Edges = ((0, 1), (0, 1))
SAME_EDGE_THRICE: Edges = ((0, 1),) * 3
SAME_EDGE_FOUR_TIMES: Edges = ((0, 1),) * 4
TWO_DOUBLE_EDGES: Edges = ((0, 1), (0, 1), (0, 2), (0, 2))
TRIANGLE: Edges = ((0, 1), (1, 2), (2, 0))
TRIANGLE_WITH_DOUBLE_EDGE: Edges = ((0, 1), (0, 1), (1, 2), (2, 0))


@lru_cache(maxsize=1024)
def centred_edge_product(edges: Edges, d: int, gamma2: float | tuple[float, ...]) -> float:
    """E prod h over the edges; gamma2 is one squared width, or one for every edge.

    Absolute error about 1e-15 (the terms are at most 1 and cancel for wide kernels).
    """
    widths: Sequence[float] = gamma2 if isinstance(gamma2, tuple) else (gamma2,) * len(edges)
    for width in widths:
        check_kernel(d, width)
    vertices = 1 + max(max(edge) for edge in edges)
    signs, log_constants, matrices = [], [], []
    for choice in product(("k", "first", "second", "c"), repeat=len(edges)):
        matrix = np.eye(vertices)
        log_constant, sign = 0.0, 1.0
        for part, (i, j), width in zip(choice, edges, widths, strict=True):
            u = 1.0 / width
            if part == "k":
                matrix[i, i] += u
                matrix[j, j] += u
                matrix[i, j] -= u
                matrix[j, i] -= u
            elif part == "c":
                log_constant -= 0.5 * np.log1p(2.0 * u)
            else:
                vertex = i if part == "first" else j
                matrix[vertex, vertex] += u / (1.0 + u)
                log_constant -= 0.5 * np.log1p(u)
                sign = -sign
        signs.append(sign)
        log_constants.append(log_constant)
        matrices.append(matrix)
    _, log_det = np.linalg.slogdet(np.stack(matrices))
    terms = np.array(signs) * np.exp(d * (np.array(log_constants) - 0.5 * log_det))
    return float(np.sum(terms[np.argsort(np.abs(terms))]))

"""Matrix products inside worker threads.

A BLAS that starts threads of its own for each product, from several of our threads at once, waits
for itself.  OpenBLAS, NumPy's usual one, computes a product on the calling thread as long as
m·k·n stays below 2¹⁸, and has its fastest kernels for such sizes: so products are cut into slices
of that size, handed over in one ``matmul``.
"""

from __future__ import annotations

import numpy as np

#: m·k·n up to which OpenBLAS keeps a product on the calling thread.
LIMIT = 1 << 18


def product(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    """``a @ b`` into ``out``, for stacks (s, m, k), (s, k, n) and (s, m, n)."""
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    if m * k * n <= LIMIT:
        return np.matmul(a, b, out=out)
    # Some 32 rows in a slice use the kernels well; wide products are cut in columns as well.
    width = max(16, min(n, LIMIT // (32 * k) // 16 * 16))
    for start in range(0, n, width):
        stop = min(start + width, n)
        rows = 1 << max(0, (LIMIT // (k * (stop - start))).bit_length() - 1)  # divides full blocks
        whole = m - m % rows
        for x, y, z in zip(a, b[..., start:stop], out[..., start:stop], strict=True):
            if whole:
                # Splitting an axis is always a view, so this writes into ``out``.
                slices = z[:whole].reshape(-1, rows, stop - start)
                np.matmul(x[:whole].reshape(-1, rows, k), y, out=slices)
            if whole < m:
                np.matmul(x[whole:], y, out=z[whole:])
    return out

"""The paper's printed TensorFlow listing (appendix Code), line by line in NumPy.

An oracle where the data are ordinary, and the thing to improve on where they are not.
"""

from __future__ import annotations

import numpy as np


def smmd(z, scale=1.0 / 8.0, adaptive=False):
    """SMMD² as printed, computed in the type of ``z``."""
    real = z.dtype.type
    nf, latent_dim, scale = real(z.shape[0]), real(z.shape[1]), real(scale)
    one, two, three, four = (real(v) for v in (1, 2, 3, 4))
    with np.errstate(all="ignore"):
        norms2 = np.sum(np.square(z), axis=1, keepdims=True)
        dotprods = z @ z.T
        dists2 = norms2 + norms2.T - two * dotprods

        gamma2 = scale * (np.mean(norms2) if adaptive else latent_dim)

        variance = (
            (gamma2 / (two + gamma2)) ** latent_dim
            + (gamma2 / (four + gamma2)) ** (latent_dim / two)
            - two * (gamma2**two / ((one + gamma2) * (three + gamma2))) ** (latent_dim / two)
        )
        variance = two * variance / (nf * (nf - one))
        variance_normalization = variance ** (-one / two)

        e_kzz = (np.sum(np.exp(-dists2 / (two * gamma2))) - nf) / (nf * nf - nf)
        e_kzn = (gamma2 / (one + gamma2)) ** (latent_dim / two) * np.mean(
            np.exp(-norms2 / (two * (one + gamma2)))
        )
        e_knn = (gamma2 / (two + gamma2)) ** (latent_dim / two)
        return variance_normalization * (e_kzz - two * e_kzn + e_knn)

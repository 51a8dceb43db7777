"""The paper's printed listing: a drop-in where it is accurate, better where it is not."""

import numpy as np
import pytest

import smmd
from tests import listing


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("scale", [1 / 8, 1.0, 4.0])
@pytest.mark.parametrize("d", [1, 2, 8, 64])
def test_the_same_on_ordinary_data(d, scale, adaptive):
    rng = np.random.default_rng(d)
    for z in (rng.standard_normal((100, d)), rng.uniform(-1.0, 2.0, (100, d))):
        assert smmd.smmd(z, scale, adaptive) == pytest.approx(
            listing.smmd(z, scale, adaptive), rel=1e-8, abs=1e-8
        )
        single = z.astype(np.float32)
        assert smmd.smmd(single, scale, adaptive) == pytest.approx(
            smmd.smmd(single.astype(np.float64), scale, adaptive), rel=2e-4, abs=2e-4
        )


def test_the_listing_fails_where_smmd_does_not():
    """So that the accuracy table compares with something: each of these is known to fail."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((100, 8))
    wide = smmd.smmd(z, 1e9)
    assert abs(wide) < 10.0
    assert not abs(listing.smmd(z, 1e9) - wide) < 1.0
    narrow = rng.standard_normal((100, 512))
    assert abs(smmd.smmd(narrow, 1 / 32)) < 10.0
    assert not abs(listing.smmd(narrow, 1 / 32) - smmd.smmd(narrow, 1 / 32)) < 1e-3
    far = (z + 1e6).astype(np.float32)
    assert not np.isclose(listing.smmd(far), smmd.smmd(far.astype(np.float64)), rtol=1e-3)

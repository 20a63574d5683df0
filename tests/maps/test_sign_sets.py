"""Sign sets of mutually unbiased Hadamard bases."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from craftmaps.maps.parts.sign_sets import _POLYNOMIALS, _Field, n_sign_sets, sign_sets


def cross_products(signs):
    """Sizes of the inner products of unit rows of every two bases H diag(s)."""
    size = signs.shape[1]
    H = hadamard(size)
    n = len(signs)
    pairs = np.array([signs[a] * signs[b] for a in range(n) for b in range(a)])
    return np.abs(pairs @ H) / size  # H diag(s_a s_b) H has these entries, each in every row


@pytest.mark.parametrize(("size", "n_sets"), [(64, 32), (128, 128), (256, 128), (512, 512)])
def test_rows_of_different_bases_have_equal_angles(size, n_sets):
    """All 1/sqrt(size) for an even power of two, 0 or sqrt(2/size) for an odd one."""
    assert n_sign_sets(size) == n_sets
    which = np.arange(n_sets) if size <= 128 else np.r_[0:12, n_sets - 12 : n_sets]
    signs = sign_sets(size, which)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    even = (size.bit_length() - 1) % 2 == 0
    allowed = [size**-0.5] if even else [0.0, (2 / size) ** 0.5]
    np.testing.assert_allclose(np.unique(cross_products(signs)), allowed)


def test_random_signs_would_not_do():
    signs = 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, (24, 256))
    assert cross_products(signs).max() > 3 / np.sqrt(256)


@pytest.mark.slow
@pytest.mark.parametrize("degree", _POLYNOMIALS)
def test_polynomials_are_primitive(degree):
    """The powers of x run through all elements but 0, so every one has a logarithm."""
    field = _Field(degree)
    assert len(np.unique(field._powers)) == field.size - 1
    some = np.random.default_rng(0).integers(0, field.size, (3, 50))
    a, b, c = some
    np.testing.assert_array_equal(
        field.times(a, b ^ c), field.times(a, b) ^ field.times(a, c)
    )  # so it is a field
    np.testing.assert_array_equal(field.trace(field.times(a, a)), field.trace(a))


def test_beyond_the_table_there_is_one():
    assert n_sign_sets(2**23) == 1
    np.testing.assert_array_equal(sign_sets(2**23, np.array([0]))[:, ::100_000], 1.0)

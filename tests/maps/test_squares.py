"""Squares of features in a fold: against an oracle, what they share, and what a file may claim."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import normalize

import oracles
from craftmaps import CraftMap, DotProduct, Polynomial, load
from craftmaps.loops.hadamard import GROUPS, SIDE, meeting
from craftmaps.maps.parts.hadamard_products import HadamardProducts
from craftmaps.maps.parts.hadamard_squares import Shape
from unbiased import Biased, check_unbiased, kernel_estimates

SHAPES = [
    # counts of features by degree, columns of the rows, columns of the fold, columns in use
    ([0, 40, 700, 900, 800, 0, 700], 200, 517, 1),  # cut where the fold begins again
    ([0, 0, 2500, 2000, 0, 2000, 0, 0, 1200, 300], 300, 1000, 0),  # degree 9 has no squares
    ([0, 0, 4000, 4000], 1000, 1000, 3),
]


def draw(counts, d, fold, occupied, seed=0):
    weights, rng = 1.0 / (1 + np.arange(len(counts))), np.random.default_rng(seed)
    return HadamardProducts.draw(np.array(counts), weights, 3, d, False, rng, fold, occupied)


def rows(n_rows, n_columns):
    """Unit rows with inner products of order 1."""
    return normalize(np.random.default_rng(0).random((n_rows, n_columns)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_features_are_those_of_the_blocks(shape, dtype, rtol):
    counts, d, fold, _ = shape
    products = draw(*shape)
    assert products.n_squares
    assert products.length.sum() == sum(counts)
    products.check(d, 3 + fold)
    X = (np.random.default_rng(1).normal(size=(2, d)) / np.sqrt(d)).astype(dtype)
    out = np.full((2, 3 + fold), np.nan, dtype)
    products.fill(X, out)
    expected = oracles.hadamard_features(products, X.astype(float), 3 + fold)
    np.testing.assert_allclose(out, expected, rtol=0, atol=5 * rtol * np.abs(expected).max())


def test_squares_of_half_vectors():
    """Files of 0.2.0 have squares whose length is a multiple of eight only."""
    products = draw(*SHAPES[0])
    _, d, fold, _ = SHAPES[0]
    shorter = products.length.copy()
    shorter[: products.n_squares * SIDE**2] -= 8
    products = replace(products, length=shorter)
    products.check(d, 3 + fold)
    X = np.random.default_rng(1).normal(size=(2, d)) / np.sqrt(d)
    out = np.full((2, 3 + fold), np.nan)
    products.fill(X, out)
    expected = oracles.hadamard_features(products, X, 3 + fold)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize(("shape", "group"), list(zip(SHAPES, (2, 4, 4), strict=True)))
def test_features_of_a_square_that_meet_share_nothing(shape, group):
    products = draw(*shape)
    in_squares = products.n_squares * SIDE**2
    size, width = products.gather.shape[1], len(products.signs)
    place = (products.offset[:in_squares, 1:] - width) % width
    for first in range(0, in_squares, SIDE**2):
        n = products.degree[first] - 1
        block = place[first : first + SIDE**2, :n]
        column = products.column[first : first + SIDE**2]
        for i in range(SIDE**2):
            meet = np.flatnonzero(column == column[i])
            assert len(meet) == group
            others = meet[meet != i]
            apart = (block[others] - block[i]) % size
            length = products.length[first]
            assert ((apart >= length) & (apart <= size - length)).all()


def test_lengths_of_products_that_meet_multiply():
    P, Q = np.random.default_rng(0).normal(size=(2, SIDE))
    columns = np.zeros(SIDE)
    for i, k, where, sign in meeting(SIDE):
        columns[where] += sign * P[i] * Q[k]
    assert columns @ columns == pytest.approx((P @ P) * (Q @ Q))


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_get_nearly_the_same_number_of_features(shape):
    counts, _, fold, _ = shape
    products = draw(*shape)
    number = np.zeros(3 + fold)
    for column, length in zip(products.column, products.length, strict=True):
        number[column : column + length] += 1
    mean = sum(counts) / fold
    assert (number[:3] == 0).all()
    # beside a group, there are features in no square and columns beyond the last whole vector
    assert np.abs(number[3 + 8 :] - mean).max() <= 2 * GROUPS[0] + len(counts)
    assert np.abs(number[3 + 8 :] - mean).mean() <= GROUPS[0]


def test_whole_squares_use_every_entry_equally_often():
    products = draw([0, 0, 4 * 1024, 8 * 1024, 4 * 1024], 784, 4096, 0)
    for factors, *_ in products._by_degree():
        for k, index in enumerate(factors):
            number = np.bincount(index - k * 1024, minlength=1024)
            assert (number == factors.shape[1] // 1024).all()


@pytest.mark.parametrize(
    ("n_features", "size", "fold", "shape"),
    [
        (32767, 1024, 4095, (256, 4)),  # slices are a quarter of a row,
        (32767, 4096, 4095, (256, 4)),  # at most 256 entries,
        (4096, 1024, 512, (128, 4)),  # and fit side by side into the fold
        (2048, 1024, 512, (128, 4)),
        (4096, 128, 512, None),  # few columns
        (4096, 1024, 248, None),  # or few columns of the fold
        (1024, 1024, 512, None),  # hardly a fold
        (512 * 5, 1024, 512, None),  # columns would get 4 or 6 features
        (512 * 9, 1024, 512, (64, 2)),  # or 8 and 10, which costs little
        (512 * 41, 1024, 512, (128, 4)),
    ],
)
def test_where_squares_are_used(n_features, size, fold, shape):
    found = Shape.of(n_features, size, fold)
    assert (found and (found.longest, found.group)) == shape


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: {"n_squares": p.n_squares + 1},
        lambda p: {"n_squares": len(p.length)},
        lambda p: {"n_squares": -1},
        lambda p: {"n_squares": 1.5},
        lambda p: {"signs": p.signs[:-8]},
        lambda p: {"offset": changed(p.offset, (3, 2), 8)},
        lambda p: {"offset": changed(p.offset, (5, 0), 8)},
        lambda p: {"column": changed(p.column, 6, 8)},
        lambda p: {"length": changed(p.length, 6, -8)},
        lambda p: {"scale": changed(p.scale, 6, 1.0)},
        lambda p: {"degree": changed(p.degree, 6, 1)},
    ],
)
def test_other_blocks_are_not_taken_for_squares(damage):
    products = draw(*SHAPES[0])
    products.check(200, 520)
    with pytest.raises(ValueError, match="do not fit together"):
        replace(products, **damage(products)).check(200, 520)


def changed(array, place, by):
    array = array.copy()
    array[place] += by
    return array


def test_a_file_keeps_squares(tmp_path):
    X = rows(20, 200)
    feature_map = CraftMap(n_components=1024, n_up=8192, random_state=0).fit(X)
    feature_map.save(tmp_path / "map.craft")
    restored = load(tmp_path / "map.craft")
    assert restored._products.n_squares == feature_map._products.n_squares > 0
    np.testing.assert_array_equal(restored.transform(X), feature_map.transform(X))


def test_unbiased():
    """And features that are too long by 5 % are noticed, by the same check."""
    X, kernel, pairs = rows(3, 200), Polynomial(3), [(0, 1), (0, 2), (1, 1)]

    def make(seed):
        return CraftMap(kernel, 512, n_up=4096, h01="none", random_state=seed)

    assert make(0).fit(X)._products.n_squares
    expected = kernel(X)[tuple(np.transpose(pairs))]
    estimates = kernel_estimates(make, X, pairs, range(150))
    check_unbiased(estimates, expected, smallest=0.1)
    with pytest.raises(Biased):
        check_unbiased(1.05**2 * estimates, expected, smallest=0.11)


@pytest.mark.slow
def test_the_expected_error_knows_what_features_share():
    """The up-projection makes most of the error here, and sharing a sixth of its variance.

    Errors of one map hang together, so it takes many maps to know their mean.
    """
    X, kernel = rows(25, 200), DotProduct([0.0, 0.0, 0.0, 1.0])
    maps = [CraftMap(kernel, 512, n_up=2048, random_state=s) for s in range(200)]
    K, off = kernel(X), ~np.eye(len(X), dtype=bool)
    squares = [np.mean((Z @ Z.T - K)[off] ** 2) for Z in (m.fit_transform(X) for m in maps)]
    measured = np.sqrt(np.mean(squares) / np.mean(K[off] ** 2))
    assert maps[0]._products.n_squares
    assert maps[0].expected_error_ == pytest.approx(measured, rel=0.06)

"""Rotations as moves of groups of entries."""

import dataclasses

import numpy as np
import pytest

from craftmaps.loops import hadamard
from craftmaps.maps.parts.hadamard_products import HadamardProducts
from craftmaps.maps.parts.rotations import draw_rotations, moves_of


def rotations(d, size, parts=1):
    return draw_rotations(5, d, size, parts, np.random.default_rng(0))


@pytest.mark.parametrize(("d", "size"), [(64, 64), (63, 64), (40, 64), (3, 64), (784, 1024)])
def test_moves_are_the_same_rotations(d, size):
    gather = rotations(d, size)
    moves = moves_of(gather, d)
    arranged = np.full(size, d)
    arranged[moves.place] = np.arange(d)
    code = moves.code.reshape(gather.shape)
    group = np.repeat(moves.group.reshape(len(gather), -1), 8, axis=1)
    column = arranged[group + code % 8]
    expected = np.where(column == d, 2 * d, column + d * (code >= 128))
    np.testing.assert_array_equal(gather, expected)
    other = np.arange(size) // 8 % 2
    np.testing.assert_array_equal(code // 8 % 2, np.tile(other, (len(gather), 1)))


def test_frozen_rotations():
    """A change of these numbers is a change of the random stream: say so in the changelog."""
    gather = draw_rotations(2, 60, 64, 1, np.random.default_rng(0))
    expected = [[116, 41, 33, 91, 29, 15, 120, 54], [44, 96, 16, 8, 64, 113, 23, 87]]
    np.testing.assert_array_equal(gather[:, :8], expected)


def test_groups_and_their_entries_are_permuted():
    """Among 5 rotations of 128 groups, chance leaves fewer than 10 groups in place or in order."""
    moves = moves_of(rotations(1024, 1024), 1024)
    group, code = moves.group.reshape(5, 128), moves.code.reshape(5, 128, 8) % 8
    assert (group[1:] == group[:1]).sum() < 10
    assert (code[1:] == code[:1]).all(axis=2).sum() < 10


@pytest.mark.parametrize(
    ("gather", "d"),
    [
        (rotations(32, 32), 32),
        (rotations(64, 64, parts=2), 64),
        (np.random.default_rng(0).permuted(np.tile(np.arange(64), (2, 1)), axis=1), 64),
        (np.arange(128).reshape(2, 64), 128),
        (np.zeros((0, 64), np.uint32), 64),
    ],
    ids=["short", "complex", "any permutation", "a row for each factor", "none"],
)
def test_other_rotations_have_no_moves(gather, d):
    assert moves_of(gather, d) is hadamard.NO_MOVES


@pytest.mark.skipif("not hadamard.can_move()", reason="needs a processor with AVX2")
@pytest.mark.parametrize("fold", [None, 512])
@pytest.mark.parametrize("d", [64, 300])
def test_moves_change_no_bit_of_the_features(d, fold):
    """Maps in files of older releases, whose permutations are not moves, take the other way."""
    counts = np.array([0, 100, 3000, 1500, 200])
    rng = np.random.default_rng(0)
    products = HadamardProducts.draw(counts, np.ones(5), 0, d, False, rng, fold)
    X = rng.normal(size=(3, d)).astype(np.float32)
    moved, gathered = np.zeros((2, 3, fold or 4800), np.float32)
    products.fill(X, moved)
    assert products._moves(d).place is not None
    other = dataclasses.replace(products)
    other._known_moves[d] = hadamard.NO_MOVES
    other.fill(X, gathered)
    np.testing.assert_array_equal(moved, gathered)

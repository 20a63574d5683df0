"""Down-projections: against explicit matrices, unbiased, with the variance that is claimed."""

import itertools

import numpy as np
import pytest
from scipy.linalg import hadamard

from craftmaps.maps.parts.down import DRAW, Fold, Matrix, SparseSigns, SubsampledHadamard
from unbiased import Biased, check_unbiased

U = np.array([[1.0, 2.0, 0.5, 0, 0, 1, 1, 1, 0.3], [2.0, 1.0, 1.0, 1, 0, 1, 0.5, 1, 0.2]])


def applied(down, U, n_out):
    out = np.empty((len(U), n_out), dtype=U.dtype)
    down.fill(U.copy(), out)
    return out


def as_matrix(down, n_in, n_out):
    """The matrix whose product with u the projection is."""
    return applied(down, np.eye(n_in), n_out).T


def test_fold_is_a_balanced_sum_with_signs():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 23))
    fold = Fold.draw(23, 5, rng)
    expected = np.zeros((3, 5))
    for j in range(23):
        expected[:, j % 5] += fold.signs[j] * rows[:, j]
    np.testing.assert_allclose(applied(fold, rows, 5), expected)


@pytest.mark.parametrize("n_in", [64, 100, 7])
def test_srht_takes_rows_of_a_signed_hadamard_matrix(n_in):
    down = SubsampledHadamard.draw(n_in, 6, np.random.default_rng(0))
    size = 1 << (n_in - 1).bit_length()
    expected = hadamard(size)[down.rows][:, :n_in] * down.signs / np.sqrt(6)
    np.testing.assert_allclose(as_matrix(down, n_in, 6), expected, atol=1e-12)
    assert len(set(down.rows)) == 6


@pytest.mark.parametrize("n_out", [1, 3, 10, 64])
def test_sparse_signs_have_one_entry_in_each_stack(n_out):
    matrix = as_matrix(SparseSigns.draw(50, n_out, np.random.default_rng(0)), 50, n_out)
    stacks = min(4, n_out)
    assert (np.count_nonzero(matrix, axis=0) == stacks).all()
    np.testing.assert_allclose(np.abs(matrix[matrix != 0]), stacks**-0.5)


@pytest.mark.parametrize("name", sorted(DRAW))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_projection_is_linear_and_keeps_the_type(name, dtype):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((9, 40)).astype(dtype)
    down = DRAW[name](40, 12, rng)
    Z = applied(down, rows, 12)
    assert Z.dtype == dtype
    np.testing.assert_allclose(Z, rows @ as_matrix(down, 40, 12).T, rtol=1e-4, atol=1e-5)


def inner_products(draw, n_seeds=12_000, n_out=4):
    """<Gu, Gu> and <Gu, Gv> for each seed."""
    estimates = np.empty((n_seeds, 2))
    rng = np.random.default_rng(1)
    for seed in range(n_seeds):
        Z = applied(draw(U.shape[1], n_out, rng), U, n_out)
        estimates[seed] = Z[0] @ Z[0], Z[0] @ Z[1]
    return estimates


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DRAW))
def test_inner_products_are_kept_on_average(name):
    check_unbiased(inner_products(DRAW[name]), (U @ U.T)[0], smallest=0.1)


def test_folds_with_missing_signs_are_caught():
    def no_signs(n_in, n_out, rng):
        return Fold(np.ones(n_in, dtype=np.int8))

    def half_of_them(n_in, n_out, rng):
        fold = Fold.draw(n_in, n_out, rng)
        fold.signs[: n_in - 2] = 1
        return fold

    for wrong in (no_signs, half_of_them):
        with pytest.raises(Biased):
            check_unbiased(inner_products(wrong), (U @ U.T)[0], smallest=0.1)


def claimed_variance(u, v, n_out):
    """(D - E) / (E (D - 1)) (|u|^2 |v|^2 + <u,v>^2 - 2 sum u_i^2 v_i^2)."""
    n_in = len(u)
    spread = (u @ u) * (v @ v) + (u @ v) ** 2 - 2 * np.sum(u**2 * v**2)
    return (n_in - n_out) / (n_out * (n_in - 1)) * spread


@pytest.mark.parametrize("n_out", [1, 2, 4])
def test_the_variance_of_a_fold_is_exactly_as_claimed(n_out):
    """Over all signs and all orders of the columns."""
    u, v = np.array([1.0, 2.0, -0.5, 0.7]), np.array([0.5, 1.0, 1.5, -1.0])
    estimates = []
    for signs in itertools.product([-1, 1], repeat=4):
        fold = Fold(np.array(signs, dtype=np.int8))
        for order in itertools.permutations(range(4)):
            a, b = applied(fold, np.array([u, v])[:, list(order)], n_out)
            estimates.append(a @ b)
    assert np.mean(estimates) == pytest.approx(u @ v)
    assert np.var(estimates) == pytest.approx(claimed_variance(u, v, n_out), abs=1e-12)


@pytest.mark.parametrize("n_out", [1, 2, 3, 4])
def test_the_variance_of_srht_is_exactly_as_claimed(n_out):
    """Over all signs and all choices of rows."""
    u, v = np.array([1.0, 2.0, -0.5, 0.7]), np.array([0.5, 1.0, 1.5, -1.0])
    estimates = []
    for signs in itertools.product([-1, 1], repeat=4):
        for chosen in itertools.combinations(range(4), n_out):
            down = SubsampledHadamard(np.array(signs, dtype=np.int8), np.array(chosen))
            a, b = applied(down, np.array([u, v]), n_out)
            estimates.append(a @ b)
    assert np.mean(estimates) == pytest.approx(u @ v)
    assert np.var(estimates) == pytest.approx(claimed_variance(u, v, n_out), abs=1e-12)


def test_the_principal_subspace_is_that_of_the_singular_vectors():
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((60, 5)) @ rng.standard_normal((5, 200))).astype(np.float32)
    rows += 0.01 * rng.standard_normal(rows.shape).astype(np.float32)
    learned = Matrix.learn(rows, 5).matrix
    directions = np.linalg.svd(rows.astype(float))[2][:5].T
    np.testing.assert_allclose(learned @ learned.T, directions @ directions.T, atol=1e-4)


def test_a_rank_deficient_sample_leaves_columns_empty():
    matrix = Matrix.learn(np.ones((6, 20), dtype=np.float32), 3).matrix
    assert np.isfinite(matrix).all()
    np.testing.assert_allclose(np.sort(np.linalg.norm(matrix, axis=0)), [0, 0, 1], atol=1e-5)


def test_the_principal_subspace_keeps_directions_that_single_precision_would_lose():
    """Lengths fall by a million over the directions, and eigenvalues by its square."""
    rng = np.random.default_rng(0)
    turns = [np.linalg.qr(rng.standard_normal((n, 40)))[0] for n in (80, 300)]
    lengths = np.logspace(0, -6, 40)
    rows = (turns[0] * lengths @ turns[1].T).astype(np.float32)
    learned = Matrix.learn(rows, 30).matrix.astype(float)
    left = rows - rows @ learned @ learned.T
    assert np.linalg.norm(left) < 1.1 * np.linalg.norm(lengths[30:])

"""The ridge solve: against scikit-learn, hat matrices, refits and augmented least squares."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning, circulant, sqrtm
from sklearn.linear_model import Ridge, RidgeCV

from craftmaps import FourierFeatures, NormalEquations, OnePassRegressor
from craftmaps.learn.solvers import ridge
from craftmaps.learn.solvers.cholesky import Cholesky
from craftmaps.learn.solvers.left_out import LeftOut, LeftOutScores
from craftmaps.learn.solvers.path import RidgePath, cross_validate
from craftmaps.learn.solvers.search import best_alpha, search

pytestmark = pytest.mark.delicate

ROWS, FEATURES, TARGETS = 80, 12, 3
ALPHAS = 10.0 ** np.arange(-3, 4)


def data(dtype=np.float64, seed=0, rows=ROWS, features=FEATURES):
    rng = np.random.default_rng(seed)
    Z = (rng.standard_normal((rows, features)) * rng.uniform(0.1, 3, features) + 1).astype(dtype)
    Y = Z @ rng.standard_normal((features, TARGETS)) + 3 * rng.standard_normal((rows, TARGETS))
    return Z, Y, rng.uniform(0, 2, rows)


def penalised_least_squares(Z, Y, alpha, P, intercept=True):
    """Coefficients and hat matrix by least squares on rows augmented with sqrt(alpha P)."""
    columns = np.column_stack([Z, np.ones(len(Z))]) if intercept else Z
    root = np.zeros((len(P), columns.shape[1]))
    root[:, : len(P)] = np.sqrt(alpha) * np.real(sqrtm(P))
    inverse = np.linalg.pinv(np.vstack([columns, root]), rcond=1e-9)[:, : len(Z)]
    return (inverse @ Y)[: len(P)], columns @ inverse


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 10.0, np.full(TARGETS, 10.0)])
def test_equals_ridge_of_scikit_learn(dtype, tolerance, fit_intercept, weighted, alpha):
    Z, Y, weights = data(dtype)
    weights = weights if weighted else None
    expected = Ridge(alpha, fit_intercept=fit_intercept, solver="cholesky")
    expected.fit(Z.astype(np.float64), Y, weights)
    found = ridge.solve(NormalEquations().update(Z, Y, weights), alpha, fit_intercept=fit_intercept)
    np.testing.assert_allclose(found.coef.T, expected.coef_, rtol=0, atol=tolerance * 3)
    np.testing.assert_allclose(found.intercept, expected.intercept_, rtol=0, atol=tolerance * 10)
    assert np.all(np.asarray(found.jitter) == 0)


def test_a_solve_in_place_leaves_the_sums_as_they_were():
    Z, Y, _ = data()
    equations = NormalEquations().update(Z, Y)
    before = equations.hessian
    first = ridge.solve(equations, 10.0).coef
    with pytest.warns(LinAlgWarning):
        ridge.solve(NormalEquations().update(Z[:3], Y[:3]), 0.0)
    np.testing.assert_array_equal(equations.hessian, before)
    equations._lower[np.triu_indices(FEATURES, 1)] = np.nan  # what a factor leaves is never read
    for alpha in (10.0, np.full(TARGETS, 10.0)):
        np.testing.assert_allclose(ridge.solve(equations, alpha).coef, first, rtol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(equations)).hessian, before)
    twice = NormalEquations().update(Z, Y).merge(equations).update(Z, Y)
    np.testing.assert_allclose(twice.hessian, 3 * before, rtol=1e-9, atol=1e-9)


def test_solves_in_place_wait_for_each_other():
    """Two threads that ask one learner at once get what one would."""
    Z, Y, _ = data(rows=2000, features=400)
    equations = NormalEquations().update(Z, Y)
    alphas = np.repeat([0.1, 10.0, 1000.0], 4)
    expected = [ridge.solve(equations, float(alpha)).coef for alpha in alphas]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda alpha: ridge.solve(equations, float(alpha)).coef, alphas))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gcv_is_that_of_the_hat_matrix(fit_intercept):
    Z, Y, _ = data()
    solver = RidgePath(NormalEquations().update(Z, Y), fit_intercept)
    for alpha, scores in zip(ALPHAS, solver.gcv(ALPHAS), strict=True):
        _, hat = penalised_least_squares(Z, Y, alpha, np.eye(FEATURES), fit_intercept)
        residual = Y - hat @ Y
        expected = (residual**2).mean(axis=0) / (1 - np.trace(hat) / ROWS) ** 2
        np.testing.assert_allclose(scores, expected, rtol=1e-9)
        found, freedom = solver.fit_at(alpha)
        np.testing.assert_allclose(freedom, np.trace(hat), rtol=1e-10)
        np.testing.assert_allclose(found, (residual**2).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("gcv_mode", ["svd", "eigen"])
def test_gcv_is_leave_one_out_where_leverages_are_equal(gcv_mode):
    """RidgeCV computes leave-one-out errors; for a circulant design they are GCV exactly."""
    rng = np.random.default_rng(0)
    Z = circulant(rng.standard_normal(30))[:, ::2]
    Z = np.hstack([Z, np.roll(Z, 1, axis=0)])  # all shifts: the hat matrix is circulant
    y = rng.standard_normal(30) + Z[:, 0]
    expected = RidgeCV(ALPHAS, gcv_mode=gcv_mode, store_cv_results=True).fit(Z, y)
    solver = RidgePath(NormalEquations().update(Z, y), fit_intercept=True)
    scores = solver.gcv(ALPHAS)
    np.testing.assert_allclose(scores[:, 0], expected.cv_results_.mean(axis=0), rtol=1e-8)
    assert best_alpha(ALPHAS, scores, per_target=False) == expected.alpha_


@pytest.mark.parametrize("per_target", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_gcv_chooses_as_ridge_cv_does(per_target, seed):
    Z, Y, _ = data(seed=seed, rows=400)
    expected = RidgeCV(ALPHAS, alpha_per_target=per_target).fit(Z, Y).alpha_
    solver = RidgePath(NormalEquations().update(Z, Y), fit_intercept=True)
    np.testing.assert_array_equal(best_alpha(ALPHAS, solver.gcv(ALPHAS), per_target), expected)


def test_the_grid_of_gcv_holds_the_minimum():
    Z, Y, _ = data()
    equations = NormalEquations().update(Z, Y)
    found = ridge.solve(equations, "gcv")
    fine = np.geomspace(1e-8, 1e8, 2000)
    least = RidgePath(equations, True).gcv(fine).sum(axis=1).min()
    assert least <= found.scores.sum(axis=1).min() < 1.01 * least
    again = ridge.solve(equations, found.alpha)
    np.testing.assert_allclose(again.coef, found.coef, rtol=1e-9)
    each = ridge.solve(equations, "gcv", per_target=True)
    assert each.alpha.shape == (TARGETS,)
    for t, alpha in enumerate(each.alpha):
        alone = ridge.solve(equations, float(alpha))
        np.testing.assert_allclose(each.coef[:, t], alone.coef[:, t], rtol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_folds_from_sums_are_folds_by_refitting(fit_intercept):
    Z, Y, weights = data()
    fold_of = np.arange(ROWS) % 4
    folds = [
        NormalEquations().update(Z[fold_of == f], Y[fold_of == f], weights[fold_of == f])
        for f in range(4)
    ]
    found = cross_validate(folds, ALPHAS, fit_intercept=fit_intercept)
    for alpha, errors in zip(ALPHAS, found, strict=True):
        expected = np.zeros(TARGETS)
        for f in range(4):
            train, test = fold_of != f, fold_of == f
            model = Ridge(alpha, fit_intercept=fit_intercept)
            model.fit(Z[train], Y[train], weights[train])
            expected += weights[test] @ (Y[test] - model.predict(Z[test])) ** 2
        np.testing.assert_allclose(errors, expected / weights.sum(), rtol=1e-10)


def test_singular_systems_are_solved_and_say_so():
    Z, Y, _ = data()
    doubled = np.hstack([Z, Z])
    equations = NormalEquations().update(doubled, Y)
    for alpha in (0.0, np.zeros(TARGETS)):
        with pytest.warns(LinAlgWarning, match="singular to working precision"):
            found = ridge.solve(equations, alpha)
        assert np.all(np.asarray(found.jitter) > 0)
        assert np.all(np.asarray(found.jitter) < 1e-8)
        assert np.all(np.asarray(found.condition) > 1e10)
        expected = Ridge(0.0).fit(Z, Y).predict(Z)
        np.testing.assert_allclose(doubled @ found.coef + found.intercept, expected, rtol=1e-5)
    assert ridge.solve(equations, 1e-3).jitter == 0


def test_condition_is_that_of_the_solved_matrix():
    Z, Y, _ = data()
    equations = NormalEquations().update(Z, Y)
    system = equations.hessian + 2 * np.eye(FEATURES)
    exact = np.linalg.cond(system)
    np.testing.assert_allclose(ridge.solve(equations, np.full(3, 2.0)).condition, exact, rtol=1e-9)
    lengths = np.sqrt(system.diagonal())
    scaled = np.linalg.cond(system / np.outer(lengths, lengths))
    assert scaled / FEATURES < ridge.solve(equations, 2.0).condition < scaled * FEATURES


def test_features_of_very_different_lengths_are_not_singular():
    Z, Y, _ = data()
    Z = (Z * 10.0 ** np.linspace(-1, 5, FEATURES)).astype(np.float32)
    equations = NormalEquations().update(Z, Y.astype(np.float32))
    assert np.linalg.cond(equations.hessian) > 1 / np.finfo(np.float32).eps
    found = ridge.solve(equations, 1e-3)
    assert found.jitter == 0
    expected = Ridge(1e-3).fit(Z.astype(np.float64), Y).predict(Z.astype(np.float64))
    np.testing.assert_allclose(Z @ found.coef + found.intercept, expected, rtol=1e-3, atol=1e-3)


def test_what_is_added_to_a_singular_system_grows_with_the_features():
    Z, Y, _ = data()
    lengths = 10.0 ** np.linspace(-2, 2, FEATURES)
    equations = NormalEquations().update(np.hstack([Z, Z]), Y)
    scaled = NormalEquations().update(np.hstack([Z, Z]) * np.tile(lengths, 2), Y)
    with pytest.warns(LinAlgWarning, match="singular to working precision"):
        found = ridge.solve(equations, 0.0)
    with pytest.warns(LinAlgWarning, match="singular to working precision"):
        same = ridge.solve(scaled, 0.0)
    expected = found.coef[:FEATURES] + found.coef[FEATURES:]
    both = lengths[:, None] * (same.coef[:FEATURES] + same.coef[FEATURES:])
    np.testing.assert_allclose(both, expected, rtol=1e-6)
    assert same.jitter > found.jitter


def test_features_below_the_rounding_errors_of_the_longest_are_not_stretched():
    Z, Y, _ = data()
    noise = 1e-7 * np.random.default_rng(2).standard_normal((ROWS, 1))
    equations = NormalEquations().update(np.hstack([1e3 * Z, noise]).astype(np.float32), Y)
    with pytest.warns(LinAlgWarning, match="singular to working precision"):
        found = ridge.solve(equations, 0.0)
    expected = Ridge(0.0).fit(1e3 * Z, Y).predict(1e3 * Z)
    predicted = 1e3 * Z @ found.coef[:-1] + noise @ found.coef[-1:] + found.intercept
    np.testing.assert_allclose(predicted, expected, rtol=1e-3, atol=1e-3)


def test_nothing_seen_is_an_error():
    with pytest.raises(ValueError, match="weight of all rows together is zero"):
        ridge.solve(NormalEquations().update(np.ones((2, 2)), np.ones(2), np.zeros(2)))


def test_features_that_do_not_vary_get_no_coefficient():
    found = ridge.solve(NormalEquations().update(np.ones((5, 3)), np.arange(5.0)), "gcv")
    assert np.abs(found.coef).max() == 0
    np.testing.assert_allclose(found.intercept, 2.0)


PENALTIES = ("full", "ill-conditioned", "free direction")


def penalty_matrix(name):
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0]
    values = rng.uniform(0.5, 2, FEATURES)
    if name == "ill-conditioned":
        values[0] = 1e-11
    if name == "free direction":
        values[:2] = 0
    return (Q * values) @ Q.T


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [5.0, np.full(TARGETS, 5.0)])
def test_any_penalty(name, fit_intercept, alpha):
    Z, Y, _ = data()
    P = penalty_matrix(name)
    equations = NormalEquations().update(Z, Y)
    found = ridge.solve(equations, alpha, fit_intercept=fit_intercept, penalty=P)
    expected, _ = penalised_least_squares(Z, Y, 5.0, P, fit_intercept)
    np.testing.assert_allclose(found.coef, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", PENALTIES)
def test_gcv_with_any_penalty(name):
    Z, Y, _ = data()
    P = penalty_matrix(name)
    solver = RidgePath(NormalEquations().update(Z, Y), True, P)
    for alpha, scores in zip(ALPHAS, solver.gcv(ALPHAS), strict=True):
        _, hat = penalised_least_squares(Z, Y, alpha, P)
        expected = ((Y - hat @ Y) ** 2).mean(axis=0) / (1 - np.trace(hat) / ROWS) ** 2
        np.testing.assert_allclose(scores, expected, rtol=1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dependent_landmarks(fit_intercept):
    """Kernel columns of repeated landmarks: P is singular where the features do not vary."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    L = np.vstack([X[:8], X[:4]])
    K_xl, K_ll = np.exp(X @ L.T / 4), np.exp(L @ L.T / 4)
    equations = NormalEquations().update(K_xl, y)
    found = ridge.solve(equations, 0.5, fit_intercept=fit_intercept, penalty=K_ll)
    distinct = NormalEquations().update(K_xl[:, :8], y)
    expected = ridge.solve(distinct, 0.5, fit_intercept=fit_intercept, penalty=K_ll[:8, :8])
    np.testing.assert_allclose(
        K_xl @ found.coef + found.intercept,
        K_xl[:, :8] @ expected.coef + expected.intercept,
        rtol=1e-6,
    )


@pytest.mark.parametrize("name", [None, *PENALTIES])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_leverages_foretell_refits_without_a_row(name, fit_intercept):
    Z, Y, weights = data()
    P = None if name is None else penalty_matrix(name)
    options = {"fit_intercept": fit_intercept, "penalty": P}
    equations = NormalEquations().update(Z, Y, weights)
    whole = ridge.solve(equations, 2.0, **options)
    h = weights * Cholesky(equations, fit_intercept, P).leverages(Z, 2.0)
    left_out = (Y - Z @ whole.coef - whole.intercept) / (1 - h)[:, None]
    for i in (0, 7, 50):
        rest = np.delete(np.arange(ROWS), i)
        refit = ridge.solve(
            NormalEquations().update(Z[rest], Y[rest], weights[rest]), 2.0, **options
        )
        expected = Y[i] - Z[i] @ refit.coef - refit.intercept
        np.testing.assert_allclose(left_out[i], expected, rtol=1e-5)


@pytest.mark.parametrize("name", [None, *PENALTIES])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_errors_of_rows_left_out_are_those_of_refits(name, fit_intercept):
    Z, Y, weights = data(rows=30)
    weights = np.minimum(weights, 1)
    P = None if name is None else penalty_matrix(name)
    rows = np.array([0, 3, 7, 20])

    def loss(predicted):
        return np.average((Y[rows] - predicted) ** 2, axis=0, weights=weights[rows])

    held = LeftOut(Z[rows], Y[rows], weights[rows], loss)
    equations = NormalEquations().update(Z, Y, weights)
    alphas = np.array([0.1, 2.0, 50.0])
    found = RidgePath(equations, fit_intercept, P).left_out(alphas, held)
    score = LeftOutScores(equations, fit_intercept, P, held)
    np.testing.assert_allclose([score(alpha) for alpha in alphas], found, rtol=1e-8)
    for alpha, scores in zip(alphas, found, strict=True):
        predicted = []
        for i in rows:
            rest = np.delete(np.arange(len(Z)), i)
            sums = NormalEquations().update(Z[rest], Y[rest], weights[rest])
            refit = ridge.solve(sums, float(alpha), fit_intercept=fit_intercept, penalty=P)
            predicted.append(Z[i] @ refit.coef + refit.intercept)
        np.testing.assert_allclose(scores, loss(np.array(predicted)), rtol=1e-5)


def test_a_row_of_weight_two_is_two_rows_also_when_left_out():
    Z, Y, _ = data(rows=10)
    times = np.array([1, 2, 3, 1, 0, 2, 1, 1, 2, 1])

    def held(Z, Y, weights):
        return LeftOut(Z, Y, weights, lambda p: np.average((Y - p) ** 2, axis=0, weights=weights))

    repeated = Z.repeat(times, axis=0), Y.repeat(times, axis=0), np.ones(times.sum())
    scores = [
        [LeftOutScores(NormalEquations().update(*rows), True, None, held(*rows))(a) for a in ALPHAS]
        for rows in ((Z, Y, times.astype(float)), repeated)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9)


def test_alphas_that_interpolate_are_not_judged_by_rounding_errors():
    rng = np.random.default_rng(0)
    Z, Y = rng.standard_normal((20, 60)), rng.standard_normal((20, TARGETS))
    held = LeftOut(Z, Y, np.ones(20), lambda p: np.mean((Y - p) ** 2, axis=0))
    equations = NormalEquations().update(Z, Y)
    found = ridge.solve(equations, "auto", per_target=True, left_out=held)
    clear = np.isfinite(found.scores).all(axis=1)
    assert clear.any()
    assert not clear.all()
    assert np.all(found.alphas[~clear] < found.alphas[clear].min())
    assert np.all(found.alpha > 10), "noise teaches nothing: the mean of the targets is best"
    shared = ridge.solve(equations, "auto", left_out=held)
    assert np.isfinite(shared.scores).all()
    assert shared.alpha > 10


def test_a_single_row_judges_nothing():
    Z, Y, _ = data(rows=1)
    held = LeftOut(Z, Y, np.ones(1), lambda p: np.mean((Y - p) ** 2, axis=0))
    found = ridge.solve(NormalEquations().update(Z, Y), "auto", left_out=held)
    assert not found.left_out
    np.testing.assert_allclose(Z @ found.coef + found.intercept, Y)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_finds_the_least_score_of_the_whole_grid(seed):
    """Coarse steps and finer ones end where a look at every alpha ends, in few factorizations."""
    Z, Y, _ = data(seed=seed, rows=200)
    Z = Z * 10.0 ** np.linspace(0, -3, FEATURES)
    held = LeftOut(Z, Y, np.ones(len(Z)))
    equations = NormalEquations().update(Z, Y)
    found = ridge.solve(equations, "auto", left_out=held)
    path = RidgePath(equations, True)
    scores = path.left_out(path.grid(), held).sum(axis=1)
    assert found.scores.sum(axis=1).min() <= 1.001 * scores.min()
    assert len(found.alphas) <= 12
    assert np.all(np.diff(found.alphas) > 0)


@pytest.mark.parametrize("least", [1e-13, 1e-9, 3e-4, 0.1, 5.0])
def test_a_search_goes_as_far_as_the_least_score_is(least):
    alphas, scores = search(lambda a: np.array([np.log10(a / least) ** 2]), 2.2e-16, 1.0)
    assert abs(np.log10(alphas[scores[:, 0].argmin()] / least)) <= 1 / 8 + 1e-9
    assert len(alphas) < 10 + abs(np.log10(least / 1e-4))


def test_the_least_alpha_is_taken_with_a_warning_where_a_smaller_one_would_do_better():
    """Noise-free targets along a direction that float32 sums cannot tell from zero."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 3)) * [1.0, 1.0, 2e-4]
    y = Z @ [1.0, 0.0, 5e3]
    equations = NormalEquations().update(Z.astype(np.float32), y)
    held = LeftOut(Z, y[:, None], np.ones(400))
    with pytest.warns(UserWarning, match="is the smallest that sums of float32 products support"):
        found = ridge.solve(equations, "auto", left_out=held)
    assert found.alpha == found.alphas[0] >= 10 * 1.1e-7 * equations.hessian.trace()
    ridge.solve(NormalEquations().update(Z, y), "auto", left_out=held)  # without a warning


@pytest.mark.filterwarnings("ignore:predictions lie up to")
def test_alpha_by_rows_left_out_does_not_explode_where_gcv_does():
    """Columns of few values: leverages differ widely, and GCV chooses an alpha far too small."""
    errors = {"gcv": [], "auto": []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.stack([rng.choice(np.linspace(-2, 2, k), 700) for k in (21, 6, 6, 4, 30)], axis=1)
        X[:, 0] += 6 * (rng.random(700) < 0.02)
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(700)
        for alpha, found in errors.items():
            feature_map = FourierFeatures(n_components=400, random_state=seed)
            model = OnePassRegressor(feature_map, alpha=alpha).fit(X[:500], y[:500])
            found.append(np.sqrt(np.mean((model.predict(X[500:]) - y[500:]) ** 2)) / y.std())
    assert np.mean(errors["auto"]) < 0.45
    assert np.mean(errors["gcv"]) > 1.3 * np.mean(errors["auto"])

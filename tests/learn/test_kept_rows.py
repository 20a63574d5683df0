"""Ridge by conjugate gradients on kept rows, against the same problem solved directly."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from craftmaps import OnePassClassifier, OnePassRegressor, Polynomial, RandomMaclaurin, load
from craftmaps.learn.solvers import choose, memory
from craftmaps.learn.solvers import conjugate_gradients as kept_rows
from craftmaps.learn.solvers.conjugate_gradients import KeptRows

pytestmark = pytest.mark.delicate

N_ROWS, N_FEATURES = 300, 500


def problem(dtype=np.float64, weighted=False):
    """Rows whose directions vary by factors of up to 300, as features of real rows do."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((N_ROWS, N_FEATURES)) / np.arange(1, N_FEATURES + 1)
    Z = (Z @ np.linalg.qr(rng.standard_normal((N_FEATURES, N_FEATURES)))[0] + 0.1).astype(dtype)
    Y = rng.standard_normal((N_ROWS, 3)) + Z[:, :3] + 5
    return Z, Y, rng.integers(0, 4, N_ROWS).astype(float) if weighted else None


def direct(Z, Y, weights, alpha, fit_intercept):
    """Coefficients, intercept and degrees of freedom of the textbook."""
    Z, weights = Z.astype(np.float64), np.ones(len(Z)) if weights is None else weights
    z_mean, y_mean = (
        np.average(A, axis=0, weights=weights) if fit_intercept else np.zeros(A.shape[1])
        for A in (Z, Y)
    )
    Z, root = Z - z_mean, np.sqrt(weights)[:, None]
    system = (root * Z).T @ (root * Z) + alpha * np.eye(Z.shape[1])
    coef = np.linalg.solve(system, (root * Z).T @ (root * (Y - y_mean)))
    hat = root * Z @ np.linalg.solve(system, (root * Z).T)
    return coef, y_mean - z_mean @ coef, hat


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_solution_is_that_of_the_normal_equations(alpha, fit_intercept, weighted):
    Z, Y, weights = problem(weighted=weighted)
    solution = KeptRows(Z, weights, fit_intercept).solve(Y, alpha)
    coef, intercept, _ = direct(Z, Y, weights, alpha, fit_intercept)
    np.testing.assert_allclose(solution.coef, coef, atol=1e-6 * np.abs(coef).max())
    np.testing.assert_allclose(solution.intercept, intercept, atol=1e-6)
    assert solution.alpha == alpha
    if weights is not None:  # a test that could not tell weights from none would say nothing
        assert np.abs(solution.coef - direct(Z, Y, None, alpha, fit_intercept)[0]).max() > 1e-3


def test_float32_rows_predict_the_same():
    Z, Y, _ = problem(np.float32)
    rows = KeptRows(Z, None, True)
    coef, intercept, _ = direct(Z, Y, None, 0.01, True)
    predicted = rows.predicted(rows.solve(Y, 0.01))
    np.testing.assert_allclose(predicted, Z @ coef + intercept, atol=2e-3 * Y.std())


def test_targets_that_depend_on_others_follow_from_them():
    Z, Y, _ = problem()
    code = np.random.default_rng(1).choice([-1.0, 1.0], (3, 40))
    whole = KeptRows(Z, None, True).solve(Y @ code, 0.01)
    assert whole.coef.shape == (N_FEATURES, 40)
    np.testing.assert_allclose(whole.coef, direct(Z, Y @ code, None, 0.01, True)[0], atol=1e-6)
    constant = KeptRows(Z, None, True).solve(np.full((N_ROWS, 2), 7.0), 0.01)
    np.testing.assert_array_equal(constant.coef, np.zeros((N_FEATURES, 2)))
    np.testing.assert_allclose(constant.intercept, 7.0)


@pytest.mark.parametrize("weighted", [True, False])
def test_mean_leverage_is_within_five_standard_deviations(weighted):
    """Random signs err with variance 2 (|A|^2 - sum a_ii^2) / 8; one false alarm in 1.7 million."""
    Z, Y, weights = problem(weighted=weighted)
    hat = direct(Z, Y, weights, 0.01, True)[2]
    total = N_ROWS if weights is None else weights.sum()
    spread = np.sqrt(2 * (np.square(hat).sum() - np.square(hat.diagonal()).sum()) / 8)
    found = KeptRows(Z, weights, True).solve(Y, 0.01).mean_leverage * total
    assert abs(found - np.trace(hat) - 1) < 5 * spread
    assert 5 * spread < 0.25 * np.trace(hat)  # so that half of it would be noticed


@pytest.fixture
def iterations(monkeypatch):
    """Counts products with H while a function runs."""

    def count(solve):
        made = []
        times = KeptRows._times
        with monkeypatch.context() as patch:
            patch.setattr(KeptRows, "_times", lambda self, V: made.append(0) or times(self, V))
            solve()
        return len(made)

    return count


def test_a_sample_of_the_rows_saves_iterations(iterations, monkeypatch):
    Z, Y, _ = problem()
    sampled = iterations(lambda: KeptRows(Z, None, True).solve(Y, 1e-4))
    monkeypatch.setattr(kept_rows._Sample, "preconditioner", lambda self, alpha: lambda R: R)
    assert sampled < 0.8 * iterations(lambda: KeptRows(Z, None, True).solve(Y, 1e-4))


def test_fewer_digits_save_iterations(iterations):
    Z, Y, _ = problem()
    rows = KeptRows(Z, None, True)
    exact, rough = (rows.solve(Y, 0.01, digits).coef for digits in (2 / 3, 1 / 3))
    np.testing.assert_allclose(rough, exact, atol=1e-4 * np.abs(exact).max())
    many, few = (iterations(lambda d=d: rows.solve(Y, 0.01, d)) for d in (2 / 3, 1 / 3))
    assert few < 0.7 * many


def test_too_many_iterations_are_told(monkeypatch):
    Z, Y, _ = problem()
    monkeypatch.setattr(kept_rows, "_MAX_ITERATIONS", 2)
    with pytest.raises(ValueError, match=r"2 iterations did not solve.*raise alpha"):
        KeptRows(Z, None, True).solve(Y, 1e-8)


def test_rows_that_overflow_or_weigh_nothing_are_told():
    Z, _, _ = problem(np.float32)
    with pytest.raises(ValueError, match="nothing to learn from"):
        KeptRows(Z, np.zeros(N_ROWS), True)
    for large in (np.inf, np.nan, 1e25):
        Z[3, 4] = large
        with pytest.raises(ValueError, match="too large for float32"):
            KeptRows(Z, None, True)


@pytest.fixture
def few_are_many(monkeypatch):
    """Makes 50 rows many."""
    return lambda: monkeypatch.setattr(choose, "MANY_ROWS", 50)


@pytest.mark.parametrize(
    "options", [{}, {"codes": "random", "n_bits": 30}, {"fit_intercept": False}]
)
def test_classifier_of_many_kept_rows_is_that_of_their_span(
    digits, few_are_many, tmp_path, options
):
    X, y = digits
    feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=1500, random_state=0)
    model = OnePassClassifier(feature_map, alpha=0.01, random_state=0, **options)
    spanned = model.fit(X[:1000], y[:1000]).decision_function(X[1000:])
    certain = model.predict_proba(X[1000:])
    few_are_many()
    model.fit(X[:1000], y[:1000])
    assert model._stream.solution.mean_leverage is not None  # it was iteration
    np.testing.assert_allclose(model.decision_function(X[1000:]), spanned, atol=1e-5)
    assert np.abs(model.predict_proba(X[1000:]) - certain).mean() < 0.01
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").predict(X[1000:]), model.predict(X[1000:])
    )


def test_discriminant_of_many_kept_rows(digits, few_are_many):
    X, y = digits
    feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=1500, random_state=0)
    model = OnePassClassifier(feature_map, alpha=0.01, decoding="discriminant")
    spanned = model.fit(X[:1000], y[:1000]).predict(X[1000:])
    few_are_many()
    same = model.fit(X[:1000], y[:1000]).predict(X[1000:]) == spanned
    assert same.mean() > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("learner", [OnePassClassifier, OnePassRegressor])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_alpha_is_searched_where_rows_left_out_are_predicted_best(
    digits, few_are_many, learner, scale
):
    """Whatever the scale of features, which moves the best alpha by its square."""
    X, y = digits
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.2, 9 - y, y)  # something to overfit
    Z = RandomMaclaurin(Polynomial(degree=4), n_components=1500, random_state=0).fit_transform(X)
    train, test = slice(1000), slice(1000, None)
    few_are_many()
    model = learner().fit(Z[train] * scale, y[train])
    assert model._stream.solution.left_out
    best, place = model.scores_[:, 0].argmin(), model.alphas_.tolist().index(model.alpha_)
    assert best <= place
    assert 0 < place < len(model.alphas_) - 1
    errors = {
        alpha: 1
        - learner(alpha=alpha).fit(Z[train] * scale, y[train]).score(Z[test] * scale, y[test])
        for alpha in (model.alpha_ / 100, model.alpha_, model.alpha_ * 100)
    }
    assert min(errors, key=errors.get) == model.alpha_


def test_rows_without_weight_do_not_judge():
    Z, Y, _ = problem()
    weights = np.zeros(N_ROWS)
    weights[::20] = 1.0
    judges = []
    kept_rows.search(Z, Y, weights, True, lambda judged, predicted: judges.append(judged) or 1.0)
    assert set(weights[judges[0]]) == {1.0}


def test_more_rows_may_follow(digits, few_are_many):
    X, y = digits
    feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=600, random_state=0).fit(X)
    model = OnePassRegressor(FrozenEstimator(feature_map), alpha=0.01)
    whole = model.fit(X[:1000], y[:1000]).predict(X[1000:])
    few_are_many()
    first = model.fit(X[:500], y[:500]).predict(X[1000:])
    model.partial_fit(X[500:1000], y[500:1000])
    np.testing.assert_allclose(model.predict(X[1000:]), whole, atol=1e-6)
    assert np.abs(first - whole).max() > 0.1


def test_products_that_do_not_fit_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 20 * 10**9)
    with pytest.raises(
        MemoryError, match=r"60000 rows of 65536 features need 15\.73 GB.*one alpha"
    ):
        memory.refuse_too_many_rows(60_000, 65_536, 4, spanned=True)
    memory.refuse_too_many_rows(60_000, 65_536, 4, spanned=False)
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 10**9)
    with pytest.raises(MemoryError, match=r"products of them 7\.20 GB.*; use fewer rows\.$"):
        memory.refuse_too_many_rows(15_000, 20_000, 4, spanned=True)
    monkeypatch.setattr(memory, "available_bytes", lambda: 20 * 10**9)
    with pytest.raises(MemoryError, match=r"31\.46 GB.*at most about 41666 features"):
        memory.refuse_too_many_rows(60_000, 65_536, 8, spanned=False)


@pytest.mark.parametrize("weighted", [True, False])
def test_one_vs_rest_targets_lose_exactly_the_dependent_direction(weighted):
    """Rounding leaves another noise in it for every set of rows, as it does on every CPU."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n_classes, n_rows = int(rng.integers(2, 30)), int(rng.integers(50, 2000))
        shares = rng.dirichlet(np.ones(n_classes))
        labels = np.r_[np.arange(n_classes), rng.choice(n_classes, n_rows, p=shares)]
        Y = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
        weights = rng.uniform(0.1, 2, len(Y)) if weighted else np.ones(len(Y))
        mean, basis, back = kept_rows.independent_targets(Y, weights)
        assert basis.shape[1] == n_classes - 1
        gram = basis.T @ (weights[:, None] * basis)
        np.testing.assert_allclose(gram, np.eye(n_classes - 1), atol=1e-8)
        np.testing.assert_allclose(basis @ back + mean, Y, atol=1e-9)


def test_targets_of_any_unit_are_independent_and_constants_are_none():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((300, 4)) * [1e-12, 1.0, 1e12, 0.0] + [0.0, 1e3, 0.0, 0.1]
    mean, basis, back = kept_rows.independent_targets(Y, np.ones(300))
    assert basis.shape[1] == 3
    np.testing.assert_allclose(mean, Y.mean(axis=0))
    np.testing.assert_array_equal(back[:, 3], 0.0)
    for column in range(3):
        expected = Y[:, column] - mean[column]
        error = np.abs(basis @ back[:, column] - expected).max()
        assert error < 1e-9 * np.abs(expected).max()


def system(n=120, condition=1e6):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (Q * np.geomspace(1, condition, n)) @ Q.T, rng.standard_normal((n, 3))


@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-13])
def test_columns_that_depend_on_others_do_not_disturb_them(noise):
    A, right = system()
    rng = np.random.default_rng(1)
    dependent = right @ rng.standard_normal((3, 5)) + noise * rng.standard_normal((120, 5))
    both = np.hstack([right, dependent, np.zeros((120, 1))])
    solved, reached = kept_rows.block_conjugate_gradients(
        lambda V: A @ V, lambda R: R, both, 9, 1e-9
    )
    assert reached
    np.testing.assert_allclose(A @ solved, both, atol=1e-8 * np.abs(both).max())


def test_residuals_that_grow_end_the_iteration_with_the_best_solution(monkeypatch):
    A, right = system()
    skew = np.triu(A, 1) * 30
    calls = []

    def times(V):
        calls.append(0)
        return (A + skew - skew.T) @ V  # not symmetric: conjugate gradients diverge

    solved, reached = kept_rows.block_conjugate_gradients(times, lambda R: R, right, 3, 1e-9)
    assert not reached
    assert len(calls) < kept_rows._MAX_ITERATIONS
    assert np.isfinite(solved).all()
    left = right - (A + skew - skew.T) @ solved
    assert np.linalg.norm(left) < 10 * np.linalg.norm(right)

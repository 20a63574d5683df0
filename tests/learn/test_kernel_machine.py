"""KernelClassifier and KernelRegressor: optima of scikit-learn, blocks, weights, files, ONNX."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LogisticRegression, QuantileRegressor
from sklearn.metrics import log_loss, mean_pinball_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

import craftmaps
from craftmaps import (
    CraftMap,
    FourierFeatures,
    KernelClassifier,
    KernelRegressor,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
)
from craftmaps.learn import rows_again
from craftmaps.learn.codes import Unchanged
from craftmaps.learn.few_pass_fit import Fit
from craftmaps.learn.losses import HuberLoss, QuantileLoss
from craftmaps.learn.progress import Progress
from craftmaps.learn.rows_again import RowsAgain
from craftmaps.learn.solvers.descent import Descent, Preconditioner
from craftmaps.learn.solvers.few_pass import FirstSums, Machine

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 6))
SCORES = X @ RNG.standard_normal((6, 4)) + RNG.standard_normal((400, 4))
FOUR = np.array(["ant", "bee", "cat", "dog"])[SCORES.argmax(axis=1)]
TWO = np.where(SCORES[:, 0] > SCORES[:, 1], "no", "yes")
STATE = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def _same_numbers_in_any_order_of_tests():
    RNG.bit_generator.state = STATE


def expected_failures(estimator):
    """As for scikit-learn's own estimators that hold rows out: repeated rows are other places.

    On the few dense rows of this check, loss="auto" is the squared loss, which holds no rows out.
    """
    if estimator.loss == "squared" or not isinstance(estimator.alpha, str):
        return {}
    reason = "alpha is judged by rows that are held out by their places"
    kinds = ("sparse",) if estimator.loss == "auto" else ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


@parametrize_with_checks(
    [KernelClassifier(None), KernelRegressor(None)], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        KernelClassifier(None, alpha=1.0),
        KernelClassifier(None, loss="squared"),
        KernelRegressor(None, loss="huber"),
        KernelRegressor(None, loss="quantile"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks_of_every_loss(estimator, check):
    check(estimator)


@pytest.mark.delicate
@pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_optimum_is_that_of_logistic_regression(y, fit_intercept, weighted):
    weights = RNG.random(400) if weighted else None
    reference = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000, fit_intercept=fit_intercept)
    model = KernelClassifier(None, alpha=2.0, tol=1e-12, fit_intercept=fit_intercept)
    reference.fit(X, y, weights)
    model.fit(X, y, weights)
    wanted = reference.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), wanted, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-5)
    assert (model.predict(X) == reference.predict(X)).all()


def at_the_minimum(loss, y, alpha, tol):
    """Predictions of the solver itself, for a loss on a scale that is given."""
    stream = RowsAgain(None, X.shape[1], X.dtype, Unchanged())
    stream.add(X, y[:, None], None, Progress(None, shown=False))
    fit = Fit(stream, Unchanged(), 1, fit_intercept=True)
    fit.loss = loss
    machine = fit.machine(max_passes=1000)
    (end,) = machine.descend(alpha, [machine.start()], [None], tol)
    coef, intercept = fit.restored(machine, end.point)
    return X @ coef[:, 0] + intercept[0]


@pytest.mark.delicate
def test_the_optimum_is_that_of_the_huber_regressor():
    y = X[:, 0] + 0.1 * RNG.standard_normal(400)
    y[::10] += 20.0
    reference = HuberRegressor(alpha=1e-3, tol=1e-8).fit(X, y)
    loss = HuberLoss(reference.epsilon * reference.scale_)
    predicted = at_the_minimum(loss, y, 1e-3 * reference.scale_, tol=1e-12)
    np.testing.assert_allclose(predicted, reference.predict(X), atol=1e-4)


@pytest.mark.delicate
def test_the_optimum_is_that_of_the_quantile_regressor():
    y = X[:, 0] + np.abs(RNG.standard_normal(400))
    reference = QuantileRegressor(quantile=0.7, alpha=0.0).fit(X, y)
    predicted = at_the_minimum(QuantileLoss(0.7, 0.3), y, 1e-9, tol=1e-9)
    loss = partial(mean_pinball_loss, y, alpha=0.7)
    assert loss(predicted) < (1 + 1e-4) * loss(reference.predict(X))
    wrong = KernelRegressor(None, loss="quantile", quantile=0.6, alpha=1e-9, tol=1e-9).fit(X, y)
    assert loss(wrong.predict(X)) > (1 + 1e-3) * loss(reference.predict(X))


@pytest.mark.delicate
def test_outliers_do_not_move_a_robust_fit():
    rows = RNG.uniform(-1, 1, (2000, 3))
    clean = rows[:, 0] * rows[:, 1]
    y = clean + 0.1 * RNG.standard_normal(2000)
    y[::20] += 1e4
    feature_map = CraftMap(Polynomial(2), 64, random_state=0)

    def error(loss):
        model = KernelRegressor(feature_map, loss=loss).fit(rows, y)
        return np.abs(model.predict(rows) - clean).mean()

    assert error("huber") < 0.05
    assert error("quantile") < 0.05
    assert error("squared") > 10


@pytest.mark.delicate
def test_quantiles_have_their_share_of_rows_below():
    rows = RNG.uniform(-1, 1, (3000, 2))
    y = np.sin(3 * rows[:, 0]) + np.exp(rows[:, 1]) * RNG.standard_normal(3000)
    feature_map = FourierFeatures("rbf", 64, random_state=0)
    for quantile in (0.1, 0.5, 0.9):
        model = KernelRegressor(feature_map, loss="quantile", quantile=quantile)
        below = (y[2000:] <= model.fit(rows[:2000], y[:2000]).predict(rows[2000:])).mean()
        # 4 standard errors of 1000 rows and some for 64 features: 1 false alarm in 10,000
        assert abs(below - quantile) < 4 * np.sqrt(0.25 / 1000)


@pytest.mark.delicate
@pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])
def test_weights_are_repeated_rows(y):
    counts = RNG.integers(0, 3, 400)
    weighted = KernelClassifier(None, alpha=1.0, tol=1e-12).fit(X, y, counts)
    repeated = KernelClassifier(None, alpha=1.0, tol=1e-12).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


@pytest.mark.delicate
@pytest.mark.parametrize(("cut", "n_rows"), [(1, 60), (7, 200), (100, 400), (400, 400)])
def test_blocks_in_any_cut_give_the_model_of_fit(cut, n_rows):
    feature_map = CraftMap(Polynomial(3), 48, random_state=0)
    rows, labels = X[:n_rows], FOUR[:n_rows]
    blocks = [(rows[i : i + cut], labels[i : i + cut]) for i in range(0, n_rows, cut)]
    whole = KernelClassifier(feature_map, loss="log").fit(rows, labels)
    cutted = KernelClassifier(feature_map, loss="log")
    cutted.fit_blocks(blocks, classes=np.unique(FOUR))
    assert cutted.alpha_ == whole.alpha_
    np.testing.assert_allclose(cutted.decision_function(X), whole.decision_function(X), atol=1e-5)


@pytest.mark.delicate
@pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])
def test_blocks_in_any_order_of_arrival_give_the_model_of_fit(y):
    """Places decide which rows are held out and sampled, but not where the minimum is."""
    starts = np.random.default_rng(5).permutation(np.arange(0, 400, 50))
    blocks = [(X[i : i + 50], y[i : i + 50]) for i in starts]
    whole = KernelClassifier(None, loss="log", alpha=1.0, tol=1e-11).fit(X, y)
    mixed = KernelClassifier(None, loss="log", alpha=1.0, tol=1e-11)
    mixed.fit_blocks(blocks, classes=np.unique(y))
    np.testing.assert_allclose(mixed.decision_function(X), whole.decision_function(X), atol=1e-5)


@pytest.mark.delicate
def test_alpha_is_chosen_where_columns_take_few_values():
    """Many rows are equal then, and the features of separate rows are linearly dependent."""
    rng = np.random.default_rng(7)
    rows = rng.integers(0, 3, (900, 6)).astype(float)
    y = (rows[:, 0] + rows[:, 1] > 2).astype(int) ^ (rng.random(900) < 0.1)
    feature_map = FourierFeatures("rbf", 256, random_state=0)
    model = KernelClassifier(feature_map, loss="log").fit(rows[:600], y[:600])
    # 300 rows: an error of 0.1 at best, with a standard deviation of 0.017
    assert model.score(rows[600:], y[600:]) > 1 - 0.1 - 5 * 0.017
    assert log_loss(y[600:], model.predict_proba(rows[600:])) < 0.5  # 0.33 at best, 0.69 by chance


@pytest.mark.delicate
def test_features_that_memory_does_not_hold_are_made_again(monkeypatch):
    feature_map = CraftMap(Polynomial(3), 48, random_state=0)
    kept = KernelClassifier(feature_map, alpha=1.0).fit(X, FOUR)
    monkeypatch.setattr(rows_again, "available_bytes", lambda: 1000)
    again = KernelClassifier(feature_map, alpha=1.0).fit(X, FOUR)
    blocks = [(X[i : i + 90], FOUR[i : i + 90]) for i in range(0, 400, 90)]
    read = KernelClassifier(feature_map, alpha=1.0).fit_blocks(blocks, classes=np.unique(FOUR))
    for model in (again, read):
        np.testing.assert_allclose(model.decision_function(X), kept.decision_function(X), atol=1e-6)


@pytest.mark.delicate
def test_blocks_that_come_once_are_refused():
    with pytest.raises(ValueError, match=r"can be iterated only once.*loss='squared'"):
        KernelClassifier(None, loss="log").fit_blocks(iter([(X, FOUR)]))


@pytest.mark.delicate
def test_balanced_classes_in_a_stream_too():
    rare = np.where(RNG.random(400) < 0.1, TWO, "no")
    weights = LogisticRegression(C=1.0, class_weight="balanced", tol=1e-10, max_iter=1000)
    weights.fit(X, rare)
    for model in (
        KernelClassifier(None, alpha=1.0, class_weight="balanced", tol=1e-12).fit(X, rare),
        KernelClassifier(None, alpha=1.0, class_weight="balanced", tol=1e-12).fit_blocks(
            [(X[:150], rare[:150]), (X[150:], rare[150:])], classes=["no", "yes"]
        ),
    ):
        np.testing.assert_allclose(
            model.decision_function(X), weights.decision_function(X), atol=1e-4
        )


@pytest.mark.delicate
@pytest.mark.parametrize("n_components", [64, 600])
def test_fewer_rows_than_features(n_components):
    """The span of the rows has the solution of all features."""
    feature_map = FourierFeatures("rbf", n_components, random_state=0)
    model = KernelClassifier(feature_map, alpha=1.0, tol=1e-12).fit(X, FOUR)
    Z = feature_map.fit(X).transform(X)
    reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(Z, FOUR)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(Z), atol=2e-4
    )


@pytest.mark.delicate
def test_a_penalty_of_the_map():
    """Raw columns of landmarks with their own penalty are the whitened ones with a plain one."""
    same = {"landmarks": X[:20], "kernel": "rbf"}
    raw = KernelClassifier(Nystroem(whiten=False, **same), alpha=0.5, tol=1e-12).fit(X, FOUR)
    white = KernelClassifier(Nystroem(whiten=True, **same), alpha=0.5, tol=1e-12).fit(X, FOUR)
    np.testing.assert_allclose(raw.decision_function(X), white.decision_function(X), atol=1e-4)


@pytest.mark.delicate
def test_sparse_rows_and_float32():
    dense = KernelClassifier(None, alpha=1.0, tol=1e-8).fit(X, FOUR)
    for rows in (sparse.csr_array(X), X.astype(np.float32)):
        model = KernelClassifier(None, alpha=1.0, tol=1e-8).fit(rows, FOUR)
        np.testing.assert_allclose(model.predict_proba(rows), dense.predict_proba(X), atol=1e-3)


@pytest.mark.delicate
def test_separable_rows_one_row_per_class_and_constant_columns():
    for rows, y in (
        (np.eye(5), np.arange(5)),
        (np.repeat([[1.0, 0.0], [0.0, 1.0]], 30, axis=0), np.repeat([0, 1], 30)),
        (np.hstack([X, np.ones((400, 2))]), FOUR),
    ):
        model = KernelClassifier(None).fit(rows, y)
        assert np.isfinite(model.predict_proba(rows)).all()
    assert (
        KernelClassifier(None)
        .fit(np.eye(2).repeat(20, 0), np.repeat([0, 1], 20))
        .score(np.eye(2), [0, 1])
    )


@pytest.mark.delicate
def test_many_separable_classes_are_learned_to_the_end():
    """With a share of the first decrease alone, the objective ends 17% above its minimum."""
    y = np.repeat(np.arange(60), 15)
    rows = RNG.standard_normal((60, 40))[y] + RNG.standard_normal((900, 40))
    objectives = []
    for tol in (1e-4, 1e-8):
        model = KernelClassifier(None, alpha=1e-3, tol=tol, max_passes=1000).fit(rows, y)
        weights = model.solution_.coef
        loss = 900 * log_loss(y, softmax(model.decision_function(rows), axis=1))
        objectives.append(loss + 1e-3 / 2 * np.square(weights).sum())
    assert objectives[0] < 1.02 * objectives[1]


@pytest.mark.delicate
def test_a_class_that_no_row_has():
    model = KernelClassifier(None, alpha=1.0).fit_blocks(
        [(X, FOUR)], classes=["ant", "bee", "cat", "dog", "elk"]
    )
    assert "elk" not in model.predict(X)
    assert model.predict_proba(X)[:, 4].max() < 0.05


@pytest.mark.delicate
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_thousands_of_classes_by_codes():
    centers = RNG.standard_normal((5000, 20))
    y = np.repeat(np.arange(5000), 2)
    rows = (centers[y] + 0.05 * RNG.standard_normal((10_000, 20))).astype(np.float32)
    feature_map = FourierFeatures("rbf", 512, random_state=0)
    model = KernelClassifier(feature_map, codes="random", n_bits=64, alpha=1e-2, random_state=0)
    model.fit(rows[::2], y[::2])
    assert model.score(rows[1::2], y[1::2]) > 0.1  # 0.0002 by chance
    P = model.predict_proba(rows[:100])
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.delicate
def test_squared_loss_is_that_of_the_one_pass_learners():
    feature_map = CraftMap(Polynomial(3), 48, random_state=0)
    one = OnePassClassifier(feature_map).fit(X, FOUR)
    same = KernelClassifier(feature_map, loss="squared").fit(X, FOUR)
    assert np.array_equal(one.coef_, same.coef_)
    y = X[:, 0] ** 2
    first = OnePassRegressor(feature_map).fit(X, y)
    assert np.array_equal(first.coef_, KernelRegressor(feature_map).fit(X, y).coef_)
    assert hasattr(same, "partial_fit")
    assert not hasattr(KernelClassifier(None), "partial_fit")
    assert not hasattr(KernelClassifier(None), "merge")


@pytest.mark.delicate
@pytest.mark.parametrize("y", [TWO, FOUR], ids=["two", "four"])
def test_files_and_onnx(y, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    rows = X.astype(np.float32)
    model = KernelClassifier(CraftMap(Polynomial(2), 32, random_state=0)).fit(rows, y)
    model.save(tmp_path / "model.craft")
    loaded = craftmaps.load(tmp_path / "model.craft")
    assert np.array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    craftmaps.export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    labels, probabilities = session.run(None, {"X": rows})
    assert (labels == model.predict(rows)).all()
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), atol=1e-5)


@pytest.mark.delicate
def test_several_targets(tmp_path):
    Y = np.stack([X[:, 0] * X[:, 1], 100 * X[:, 2]], axis=1)
    model = KernelRegressor(CraftMap(Polynomial(2), 64, random_state=0), loss="huber").fit(X, Y)
    assert model.score(X, Y) > 0.95
    model.save(tmp_path / "model.craft")
    assert np.array_equal(craftmaps.load(tmp_path / "model.craft").predict(X), model.predict(X))


@pytest.mark.delicate
def test_alpha_is_judged_by_rows_held_out():
    noise = RNG.standard_normal((400, 300))
    wide = np.hstack([X, noise])
    model = KernelClassifier(None).fit(wide, FOUR)
    assert len(model.alphas_) == len(model.scores_) >= 3
    lower, higher = model.alphas_[0], model.alphas_[-1]
    assert lower <= model.alpha_ <= higher
    given = KernelClassifier(None, alpha=[lower, model.alpha_, higher]).fit(wide, FOUR)
    assert given.alpha_ == model.alpha_


@pytest.mark.delicate
def test_passes_that_are_too_few_are_told():
    with pytest.warns(ConvergenceWarning, match="2 passes did not minimize the loss"):
        model = KernelClassifier(None, alpha=1e-3, max_passes=2).fit(X, FOUR)
    assert model.n_passes_ == 2


def test_a_budget_of_seconds_ends_the_passes():
    """The budget is over before the first pass, so that one alpha is tried, in few passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=600) > 0
    hurried = KernelClassifier(budget="0.001s", loss="log", random_state=0).fit(X, y)
    assert hurried.n_passes_ <= 40  # 20 to judge alpha, 20 for all rows
    assert len(hurried.alphas_) == 1
    assert hurried.score(X, y) > 0.7
    calm = KernelClassifier(budget="10min", loss="log", random_state=0).fit(X, y)
    assert len(calm.alphas_) > 1
    assert calm.score(X, y) > 0.8


@pytest.mark.delicate
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of 'auto', 'log', 'squared', got 'hinge'"),
        ({"tol": 0}, "tol must be a number above 0, got 0"),
        ({"max_passes": 0}, "max_passes must be an integer of at least 1, got 0"),
        ({"alpha": "gcv"}, "alpha='gcv' is for loss='squared'"),
        (
            {"loss": "log", "decoding": "discriminant"},
            "decoding='discriminant' is for loss='squared'",
        ),
    ],
)
def test_bad_parameters_are_told(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelClassifier(**parameters).fit(X, FOUR)


@pytest.mark.delicate
def test_a_preconditioner_changes_nothing_of_its_argument():
    """A gradient that is overwritten by its solve spoils the steps after it."""
    P = Preconditioner.of(np.asfortranarray(np.eye(3)), 1.0, 1.0, None)
    gradient = np.ones((4, 1))
    np.testing.assert_allclose(P(gradient)[:3], 0.5)
    assert (gradient == 1).all()


@pytest.mark.delicate
def test_a_descent_reaches_the_minimum_of_a_quadratic():
    A = np.diag([1.0, 10.0, 100.0])
    wanted = np.array([[1.0], [2.0], [3.0]])
    P = Preconditioner.of(np.asfortranarray(np.eye(3)), 1.0, 0.0, None)
    descent = Descent(np.zeros((4, 1)))
    for _ in range(60):
        gradient = np.vstack([A @ (descent.trial[:3] - wanted), np.zeros((1, 1))])
        difference = descent.trial[:3] - wanted
        value = float(np.vdot(difference, A @ difference)) / 2
        descent.receive(value, gradient, P(gradient))
    np.testing.assert_allclose(descent.point[:3], wanted, atol=1e-6)


@pytest.mark.delicate
@pytest.mark.parametrize("penalty", [None, np.diag([1.0, 2.0, 3.0])])
def test_a_descent_goes_on_at_another_alpha_as_if_evaluated_there(penalty):
    """Only the penalty differs, so that no pass is needed for what the descent knows."""
    A, Q = np.diag([1.0, 10.0, 100.0]), np.eye(3) if penalty is None else penalty
    wanted = np.array([[1.0], [2.0], [3.0]])

    def evaluated(theta, alpha):
        coef, difference = theta[:3], theta[:3] - wanted
        squares = np.vdot(difference, A @ difference) + (theta[3, 0] - 1) ** 2
        value = float(squares + alpha * np.vdot(coef, Q @ coef)) / 2
        return value, np.vstack([A @ difference + alpha * Q @ coef, theta[3:] - 1])

    def precondition(alpha):
        return Preconditioner.of(np.asfortranarray(np.eye(3)), 1.0, alpha, penalty)

    machine = Machine(FirstSums(np.eye(3), np.zeros(3), 1.0), None, penalty, 1)
    descent, P = Descent(np.zeros((4, 1)), alpha=2.0), precondition(2.0)
    for _ in range(8):
        value, gradient = evaluated(descent.trial, 2.0)
        descent.receive(value, gradient, P(gradient))
    moved, P = descent.at(0.5, precondition(0.5), machine._penalized), precondition(0.5)
    value, gradient = evaluated(descent.point, 0.5)
    assert moved.value == pytest.approx(value)
    np.testing.assert_allclose(moved.gradient, gradient, atol=1e-12)
    assert len(moved._pairs) == len(descent._pairs) > 1
    for pair in moved._pairs:  # the changes of the gradient of a quadratic
        change = np.vstack([(A + 0.5 * Q) @ pair.step[:3], pair.step[3:]])
        np.testing.assert_allclose(pair.change, change, atol=1e-9)
        np.testing.assert_allclose(pair.preconditioned, P(pair.change), atol=1e-9)
    for _ in range(60):
        value, gradient = evaluated(moved.trial, 0.5)
        moved.receive(value, gradient, P(gradient))
    minimum = np.linalg.solve(A + 0.5 * Q, A @ wanted)
    np.testing.assert_allclose(moved.point[:3], minimum, atol=1e-6)


@pytest.mark.delicate
def test_the_fit_of_no_weight_is_refused():
    with pytest.raises(ValueError, match="the weights of all rows are zero"):
        KernelClassifier(None, alpha=1.0).fit(X, FOUR, np.zeros(400))


def test_only_sums_can_be_resumed(tmp_path):
    model = KernelClassifier(None, alpha=1.0).fit(X, FOUR)
    with pytest.raises(ValueError, match="the loss 'log' has none; save it without"):
        model.save(tmp_path / "model.craft", resumable=True)
    KernelClassifier(None, loss="squared").fit(X, FOUR).save(
        tmp_path / "model.craft", resumable=True
    )
    assert craftmaps.load(tmp_path / "model.craft").partial_fit(X, FOUR).n_samples_seen_ == 800


def test_few_separable_rows_do_not_make_the_log_loss_certain():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1030, 3))
    y = X[:, 0] + 0.7 * rng.standard_normal(1030) > 0
    right = np.flatnonzero(y == (X[:, 0] > 0))[:12]  # by chance, these rows are easy to separate
    model = KernelClassifier(None, loss="log").fit(X[right], y[right])
    assert model.temperature_ < 0.5
    certain = np.column_stack([np.zeros(1000), model.decision_function(X[30:])])
    tempered = log_loss(y[30:], model.predict_proba(X[30:]))
    assert tempered < 0.5 * log_loss(y[30:], softmax(certain, axis=1))
    many = KernelClassifier(None, loss="log").fit(X, y)
    assert 0.9 < many.temperature_ <= 1

"""feature_map="local": an exact kernel in each leaf of a tree of rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import craftmaps
from craftmaps import KernelClassifier, KernelRegressor
from craftmaps.learn import kernel_classifier, kernel_regressor
from craftmaps.learn.local import local_rival
from craftmaps.search import budget, local_map
from craftmaps.search.report import Search

REASON = "the search for a kernel does not weigh rows"
N, N_NEW = 1500, 2000
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, (N + N_NEW, 3)).astype(np.float32)
# The frequency rises from place to place.
NUMBERS = np.sin(4 * np.pi * ROWS[:, 0] ** 2) + ROWS[:, 1] + 0.2 * RNG.standard_normal(len(ROWS))
LABELS = np.array(["low", "middle", "high"])[np.digitize(NUMBERS, [-0.5, 0.5])]
X, X_NEW = ROWS[:N], ROWS[N:]


def regressor(**options):
    return KernelRegressor("local", **{"budget": 300, "random_state": 0} | options)


def classifier(**options):
    return KernelClassifier("local", **{"budget": 300, "random_state": 0} | options)


@pytest.fixture(scope="module")
def numbers():
    return regressor().fit(X, NUMBERS[:N])


@pytest.fixture(scope="module")
def labels():
    return classifier().fit(X, LABELS[:N])


@pytest.mark.slow
@parametrize_with_checks(
    [classifier(), regressor()],
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": REASON},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_leaves_have_at_most_as_many_rows_as_the_budget_says(numbers):
    machines = numbers.feature_map_.machines_
    assert 5 <= machines.tree_.n_leaves <= 8
    assert np.diff(machines.starts_).max() <= 300
    assert "exact kernel in each of" in numbers.summary()


def test_the_expected_error_and_intervals_hold_on_new_rows(numbers, labels):
    """With 2,000 new rows, a standard error of a coverage of 0.9 is 0.007."""
    errors = (numbers.predict(X_NEW) - NUMBERS[N:]) / NUMBERS[N:].std()
    low, high = numbers.report_.interval
    assert 0.9 * low < np.sqrt(np.mean(errors**2)) < 1.1 * high
    ends = numbers.predict_interval(X_NEW, 0.9)
    inside = (ends[:, 0] <= NUMBERS[N:]) & (NUMBERS[N:] <= ends[:, 1])
    assert 0.86 < inside.mean() < 0.94
    places = np.searchsorted(labels.classes_, LABELS[N:])
    assert 0.86 < labels.predict_set(X_NEW, 0.9)[np.arange(N_NEW), places].mean() < 0.97
    probabilities = labels.predict_proba(X_NEW)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    loss = -np.log(probabilities[np.arange(N_NEW), places]).mean()
    assert loss < 0.6 < np.log(3)
    assert abs(labels.report_.error - np.mean(labels.predict(X_NEW) != LABELS[N:])) < 0.05


@pytest.mark.parametrize("model", ["numbers", "labels"])
def test_a_saved_model_predicts_the_same(model, tmp_path, request):
    fitted = request.getfixturevalue(model)
    fitted.save(tmp_path / "model.craft")
    again = craftmaps.load(tmp_path / "model.craft")
    np.testing.assert_array_equal(again.predict(X_NEW), fitted.predict(X_NEW))
    assert again.summary() == fitted.summary()
    if model == "labels":
        np.testing.assert_array_equal(again.predict_proba(X_NEW), fitted.predict_proba(X_NEW))
        np.testing.assert_array_equal(again.predict_set(X_NEW), fitted.predict_set(X_NEW))
    else:
        found = again.predict_interval(X_NEW)
        np.testing.assert_array_equal(found, fitted.predict_interval(X_NEW))


@pytest.mark.parametrize("model", ["numbers", "labels"])
@pytest.mark.parametrize("n", [0, 1, N_NEW])
def test_onnx_predicts_the_same(model, n, tmp_path, request):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted = request.getfixturevalue(model)
    craftmaps.export_onnx(fitted, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    found = session.run(None, {"X": X_NEW[:n]})
    if n == 0:
        assert len(found[0]) == 0
    elif model == "labels":
        assert np.mean(found[0] == fitted.predict(X_NEW[:n])) > 0.999
        np.testing.assert_allclose(found[1], fitted.predict_proba(X_NEW[:n]), atol=1e-4)
    else:
        np.testing.assert_allclose(found[0][:, 0], fitted.predict(X_NEW[:n]), atol=1e-3)


def test_one_leaf_is_exported_too(tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted = regressor(budget=1000).fit(X[:200], NUMBERS[:200])
    craftmaps.export_onnx(fitted, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    found = session.run(None, {"X": X_NEW})[0][:, 0]
    np.testing.assert_allclose(found, fitted.predict(X_NEW), atol=1e-3)


def test_the_same_seed_gives_the_same_model():
    one, other = (regressor(budget=100).fit(X[:300], NUMBERS[:300]) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X_NEW), other.predict(X_NEW))


def test_classes_that_are_missing_in_a_leaf():
    """A class that no row of a leaf has gets a small probability there."""
    places = (ROWS[:, 0] * 10 > 0).astype(int)  # the first column decides the first split
    rows = ROWS * np.float32([10, 1, 1])
    y = 2 * places + (ROWS[:, 1] > 0)
    fitted = classifier(budget=300).fit(rows[:500], y[:500])
    assert np.mean(fitted.predict(rows[N:]) != y[N:]) < 0.05
    far = rows[N:][rows[N:, 0] > 5]
    assert fitted.predict_proba(far)[:, :2].max() < 0.2


def test_tables_with_text(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["sign"] = np.where(X[:, 1] > 0, "plus", "minus")
    frame.loc[::7, "a"] = np.nan
    frame = frame[:400]
    fitted = classifier(budget=150).fit(frame, LABELS[:400])
    assert fitted.score(frame, LABELS[:400]) > 0.8
    fitted.save(tmp_path / "model.craft")
    again = craftmaps.load(tmp_path / "model.craft")
    np.testing.assert_array_equal(again.predict(frame), fitted.predict(frame))


def test_rows_of_weight_zero_do_not_count():
    weights = np.ones(400)
    weights[300:] = 0
    X_other, y_other = X[:400].copy(), NUMBERS[:400].copy()
    X_other[300:], y_other[300:] = 1e3, -1e6
    first = regressor(budget=100).fit(X[:400], NUMBERS[:400], weights).predict(X_NEW)
    second = regressor(budget=100).fit(X_other, y_other, weights).predict(X_NEW)
    np.testing.assert_array_equal(first, second)


def test_heavy_rows_pull_predictions():
    few, y = X[:300], NUMBERS[:300]
    weights = np.where(y > 0, 20.0, 1.0)
    pulled = regressor(budget=100, alpha=5.0).fit(few, y, weights).predict(X_NEW)
    plain = regressor(budget=100, alpha=5.0).fit(few, y).predict(X_NEW)
    assert pulled.mean() > plain.mean() + 0.1


def test_several_targets():
    both = np.stack([NUMBERS[:300], -2 * NUMBERS[:300]], axis=1)
    predicted = regressor(budget=100).fit(X[:300], both).predict(X_NEW)
    np.testing.assert_allclose(predicted[:, 1], -2 * predicted[:, 0], atol=1e-3)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_few_rows(n):
    y = np.arange(n) % 2
    assert classifier().fit(X[:n], y).predict(X_NEW).shape == (N_NEW,)
    assert np.isfinite(regressor().fit(X[:n], NUMBERS[:n]).predict(X_NEW)).all()


def test_constant_targets_and_equal_rows():
    assert np.allclose(regressor().fit(X, np.full(N, 3.0)).predict(X_NEW), 3.0)
    fitted = regressor().fit(np.ones((500, 2)), NUMBERS[:500])
    assert np.allclose(fitted.predict(np.ones((3, 2))), NUMBERS[:500].mean(), atol=0.2)


def test_predictions_far_away_are_sane(numbers):
    far = numbers.predict(np.full((3, 3), 1e6, np.float32))
    assert np.abs(far).max() < 10 * NUMBERS.std()


@pytest.mark.parametrize("given", ["2s", "100MB", "1ms/row", "unlimited", None])
def test_every_kind_of_budget(given):
    fitted = regressor(budget=given).fit(X[:250], NUMBERS[:250])
    assert fitted.score(X_NEW, NUMBERS[N:]) > 0.5


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss": "huber"}, "minimizes squared errors"),
        ({"alpha": [0.1, 1.0]}, "'auto' or a number"),
        ({"alpha": "gcv"}, "'auto' or a number"),
    ],
)
def test_parameters_that_local_machines_do_not_have(options, match):
    with pytest.raises(ValueError, match=match):
        regressor(**options).fit(X[:50], NUMBERS[:50])


def test_a_loss_and_a_decoding_that_local_machines_do_not_have():
    with pytest.raises(ValueError, match="minimizes squared errors"):
        classifier(loss="log").fit(X[:50], LABELS[:50])
    with pytest.raises(ValueError, match="discriminant"):
        classifier(decoding="discriminant").fit(X[:50], LABELS[:50])


def test_streams_and_sparse_rows_are_refused(numbers):
    assert not hasattr(numbers, "partial_fit")
    with pytest.raises(ValueError, match="all rows in memory"):
        regressor().fit_blocks([(X[:50], NUMBERS[:50])])
    with pytest.raises(ValueError, match="all rows in memory"):
        regressor().begin(X[:50], NUMBERS[:50])
    with pytest.raises((ValueError, TypeError), match=r"dense|[Ss]parse"):
        regressor().fit(sparse.csr_matrix(X[:50]), NUMBERS[:50])


@pytest.fixture
def small_limits(monkeypatch):
    """Makes leaves and features few enough for a quick comparison of both."""
    monkeypatch.setattr(local_map, "_LEAST_LEAF_ROWS", 500)
    monkeypatch.setattr(local_map, "_OPERATIONS", 1e9)
    monkeypatch.setattr(budget, "DEFAULT_COMPONENTS", 96)
    monkeypatch.setattr(budget, "EXACT_ROWS", 96)


@pytest.mark.slow
def test_auto_takes_local_machines_if_they_are_clearly_better(small_limits, monkeypatch, tmp_path):
    """The first classes change from place to place, and the second ones do not."""
    monkeypatch.setattr(kernel_classifier, "EXACT_ROWS", 2499)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (4000, 2))
    rough = np.sin(25 * rows[:, 0]) * np.sin(25 * rows[:, 1]) > 0
    smooth = rows[:, 0] + rows[:, 1] > rng.standard_normal(4000)
    for y, is_local in ((rough, True), (smooth, False)):
        fitted = KernelClassifier(random_state=0).fit(rows[:2500], y[:2500])
        assert isinstance(fitted.feature_map_, local_map.LocalMap) == is_local
        assert fitted.feature_map == "auto"
        error = np.mean(fitted.predict(rows[2500:]) != y[2500:])
        low, high = fitted.report_.interval
        assert 0.7 * low < error < 1.3 * high
        fitted.save(tmp_path / "model.craft")
        again = craftmaps.load(tmp_path / "model.craft")
        np.testing.assert_array_equal(again.predict_proba(rows), fitted.predict_proba(rows))
    assert error > 0.1


@pytest.mark.slow
def test_auto_takes_local_machines_for_many_numbers(small_limits, monkeypatch):
    monkeypatch.setattr(kernel_regressor, "MANY_NUMBERS", 2499)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (4000, 2))
    rough = np.sin(20 * rows[:, 0]) * np.sin(20 * rows[:, 1])
    smooth = rows.sum(axis=1) + rng.standard_normal(4000)
    for y, is_local in ((rough, True), (smooth, False)):
        fitted = KernelRegressor(random_state=0).fit(rows[:2500], y[:2500])
        assert isinstance(fitted.feature_map_, local_map.LocalMap) == is_local
        low, high = fitted.predict_interval(rows[2500:]).T
        assert np.mean((low <= y[2500:]) & (y[2500:] <= high)) > 0.85
        if is_local:
            with pytest.raises(ValueError, match="'auto' may choose without a budget"):
                fitted.predict(rows, return_std=True)
            with pytest.raises(ValueError, match="sums"):
                fitted.partial_fit(rows, y)
    kept = KernelRegressor(budget=96, random_state=0).fit(rows[:2500], rough[:2500])
    assert kept.predict(rows, return_std=True)[1].shape == (4000,)


def test_what_needs_sums_is_refused_in_one_sentence(numbers, tmp_path):
    with pytest.raises(ValueError, match="no sums of its rows"):
        numbers.leave_one_out()
    with pytest.raises(ValueError, match="without a budget, has none; save it without"):
        numbers.save(tmp_path / "model.craft", resumable=True)
    with pytest.raises(ValueError, match="not with feature_map='local'"):
        numbers.predict(X_NEW, return_std=True)


def test_a_wide_table_is_not_compared_with_local_machines():
    """The text has more components than columns for which rows in a leaf are close."""
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    for name in ("c", "d"):
        frame[name] = [f"{name} {value:.7f}" for value in RNG.uniform(size=N)]
    machine = KernelClassifier(random_state=0)
    table, y = machine._first_rows(frame, LABELS[:N], whole=True)
    machine.fit_encoder(table)
    assert local_rival(machine, table, y, None, Search([], [], 0.0)) is None
    assert machine.encoder_.n_encoded_ > 100

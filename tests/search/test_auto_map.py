"""The map that chooses itself, and the learners that use it by default."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import craftmaps
from craftmaps import AutoMap, KernelClassifier, KernelRegressor
from craftmaps.search import rounds
from craftmaps.search.candidates import Candidate
from craftmaps.search.clock import Clock
from craftmaps.search.preparation import Gradients, Lesson, Scaling, preparations
from craftmaps.search.trials import Rows

rng = np.random.default_rng(0)


def regression(n=300, d=6, seed=0):
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * draws.normal(size=n)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def classifier(wine):
    return KernelClassifier(random_state=0).fit(wine[0][::2], wine[1][::2])


@pytest.mark.slow
@parametrize_with_checks([AutoMap(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_wine_is_learned(wine, classifier):
    X, y = wine
    assert classifier.score(X[1::2], y[1::2]) > 0.92
    report = classifier.report_
    assert report.interval[0] <= report.error <= report.interval[1]
    assert report.n_trials > 30


def test_a_seed_repeats_the_model(wine, classifier):
    X, y = wine
    again = clone(classifier).fit(X[::2], y[::2])
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))


def test_the_summary_names_what_was_chosen(classifier):
    text = classifier.summary()
    assert "3 classes learned from 89 rows" in text
    assert "expected error" in text
    assert "Nyström features of" in text


def test_a_file_keeps_the_model_and_its_summary(wine, classifier, tmp_path):
    classifier.save(tmp_path / "model.craft")
    loaded = craftmaps.load(tmp_path / "model.craft")
    np.testing.assert_array_equal(loaded.predict_proba(wine[0]), classifier.predict_proba(wine[0]))
    assert loaded.summary() == classifier.summary()


def test_onnx_predicts_the_same(wine, classifier, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    craftmaps.export_onnx(classifier, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    X = wine[0].astype(np.float32)
    labels, probabilities = session.run(None, {session.get_inputs()[0].name: X})[:2]
    np.testing.assert_array_equal(labels, classifier.predict(X))
    np.testing.assert_allclose(probabilities, classifier.predict_proba(X), atol=1e-4)


def test_blocks_are_learned_like_one_array():
    X, y = regression()
    whole = KernelRegressor(random_state=0).fit(X, y)
    blocks = [(X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)]
    streamed = KernelRegressor(random_state=0).fit_blocks(blocks)
    np.testing.assert_allclose(streamed.predict(X), whole.predict(X), atol=1e-3)


def test_a_budget_of_components_is_kept():
    X, y = regression(600)
    model = KernelRegressor(budget=64, random_state=0).fit(X, y)
    assert model.feature_map_._n_features_out == 64
    assert model.score(X, y) > 0.7


def test_few_columns_of_many_are_found():
    """Two of 20 columns matter: weights find them, and the error is far less than without."""
    X, y = regression(500, 20)
    y = np.sin(2 * X[:, 3]) * X[:, 11]
    found = AutoMap(random_state=0).fit(X, y)
    weights = np.abs(found.feature_map_.weights)
    assert set(np.argsort(weights)[-2:]) == {3, 11}
    plain = Rows(X, y, False, np.random.default_rng(0))
    first = plain.judged([rounds.halving(plain, Clock())[-2][0].candidate], 500)
    assert found.report_.error < 0.6 * first[0].error


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (lambda X, y: (np.where(rng.random(X.shape) < 0.001, 1e6, X), y), 0.7),
        (lambda X, y: (np.repeat(X[:100], 3, axis=0), np.repeat(y[:100], 3)), 0.7),
        (lambda X, y: (np.hstack([X, X, np.ones((300, 2))]), y), 0.7),
        (lambda X, y: (X[:30], y[:30]), 0.2),
        (lambda X, y: (X, 1e12 * y + 1e14), 0.7),
        (lambda X, y: (X, np.where(np.arange(300) < 3, 1.0, 0.0)), 0.0),
    ],
    ids=["outliers", "repeated rows", "repeated columns", "30 rows", "large", "rare"],
)
def test_awkward_tables_give_sane_models(change, least):
    X, y = change(*regression())
    model = KernelRegressor(random_state=0).fit(X, y)
    assert model.score(X, y) > least
    spread = y.std()
    far = model.predict(1000 * np.vstack([X, -X]))
    assert np.abs(far - y.mean()).max() < 10 * spread


def test_predictions_off_the_training_rows_are_limited_also_in_files_and_onnx(tmp_path):
    """A product of columns is learned by kernels that rise like polynomials beyond the rows."""
    runtime = pytest.importorskip("onnxruntime")
    draws = np.random.default_rng(0)
    X = draws.normal(size=(300, 4)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + 0.1 * draws.normal(size=300)
    model = KernelRegressor(budget=100, random_state=0).fit(X, y)
    least, most = y.mean() - 10 * y.std(), y.mean() + 10 * y.std()
    far = np.vstack([1000 * X[:50], 10 * X[50:100]])
    model.save(tmp_path / "m.craft")
    craftmaps.export_onnx(model, tmp_path / "m.onnx")
    with pytest.warns(UserWarning, match="of 100 rows were limited to ten standard") as caught:
        predicted = model.predict(far)
    assert len(caught) == 1
    assert predicted.min() == pytest.approx(least, rel=1e-3)
    assert predicted.max() == pytest.approx(most, rel=1e-3)
    with pytest.warns(UserWarning, match="were limited"):
        np.testing.assert_array_equal(craftmaps.load(tmp_path / "m.craft").predict(far), predicted)
    session = runtime.InferenceSession(tmp_path / "m.onnx")
    (exported,) = session.run(None, {session.get_inputs()[0].name: far})
    np.testing.assert_allclose(exported[:, 0], predicted, rtol=1e-3, atol=1e-3)


def test_rare_large_targets_may_be_predicted():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    y = np.where(np.abs(X[:, 0]) > 3.3, 100.0, 0.0)
    model = KernelRegressor(budget=50, random_state=0).fit(X, y)
    assert (y.max() - y.mean()) / y.std() > 20
    least, most = model._limits()
    assert (least, most) == pytest.approx((y.mean() - 10 * y.std(), 100), rel=1e-6)


@pytest.mark.parametrize("n_columns", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_sparse_and_wide_rows(n_columns):
    draws = np.random.default_rng(0)
    is_more = draws.random(200) < 0.5
    X = draws.normal(np.where(is_more, 0.5, -0.5)[:, None], 1.0, size=(200, n_columns))
    X *= draws.random(X.shape) < 0.2
    y = np.where(is_more, "more", "less")
    dense = KernelClassifier(random_state=0).fit(X, y)
    stored = KernelClassifier(random_state=0).fit(sparse.csr_array(X), y)
    assert min(dense.score(X, y), stored.score(sparse.csr_array(X), y)) > 0.85
    np.testing.assert_array_equal(stored.predict(X), stored.predict(sparse.csr_array(X)))


def test_one_target_value_and_few_rows_fall_back_to_a_plain_map():
    X, _ = regression(50)
    found = AutoMap(task="regression", random_state=0).fit(X, np.ones(50))
    assert found.report_ is None
    assert found.transform(X).shape == (50, 50)
    assert AutoMap(random_state=0).fit(X[:4], [0, 1, 0, 1]).transform(X).shape == (50, 4)


def test_rows_that_are_all_the_same_fall_back_too():
    y = np.arange(30) % 2
    for X in (np.ones((30, 3)), sparse.csr_array(np.ones((30, 3)))):
        assert AutoMap(random_state=0).fit(X, y).report_ is None


def test_a_learner_draws_its_search_and_says_if_there_was_none(wine, classifier, tmp_path):
    figure = classifier.plot(tmp_path / "search.png")
    assert (tmp_path / "search.png").stat().st_size > 10_000
    report = classifier.feature_map_.report_
    dots, bars = figure.axes
    assert len(dots.get_yticklabels()) == len(report.rounds)
    names = [text.get_text().replace("\n", "").split() for text in bars.texts]
    assert names == [name.split() for name, _ in report.rounds[-1][:10]]
    assert bars.patches[0].get_width() == pytest.approx(100 * report.error)
    given = KernelClassifier(craftmaps.Nystroem(n_components=8)).fit(*wine)
    with pytest.raises(ValueError, match="there is no search to plot"):
        given.plot()
    with pytest.raises(NotFittedError):
        KernelClassifier().plot()


@pytest.mark.parametrize("seen_through_weights", [False, True])
def test_gradients_are_prepared_as_the_map_prepares_them(seen_through_weights):
    X = np.random.default_rng(0).random((20, 48))
    gradients = Gradients((6, 8))
    if seen_through_weights:
        gradients = gradients.weighted(np.linspace(0, 2, 200), Lesson(10))
    wrapped = gradients.around(craftmaps.TensorSketch(n_components=16, random_state=0))
    inner = craftmaps.TensorSketch(n_components=16, random_state=0)
    expected = wrapped.fit(X).transform(X)
    prepared = gradients.applied(X)
    np.testing.assert_allclose(inner.fit(prepared).transform(prepared), expected, rtol=1e-5)
    assert str(gradients).endswith("weights") == seen_through_weights


def test_preparations_suit_the_rows():
    X = np.random.default_rng(0).normal(size=(50, 4))
    pixels, flags = np.abs(X), (X > 1).astype(float)
    tried = (X, pixels, pixels * [1, 1, 1, 1000], flags)
    texts = [[str(one) for one in preparations(rows)] for rows in tried]
    raw, quantiles = "plain columns, unit norm", "quantile columns"
    assert [raw in text for text in texts] == [False, True, False, True]
    assert [quantiles in text for text in texts] == [True, True, True, False]
    assert all(one.applied(sparse.csr_array(X)).nnz for one in preparations(sparse.csr_array(X)))
    design = np.random.default_rng(0).integers(5, size=(50, 4)).astype(float)
    design[:, :2] += X[:, :2]
    assert ["standard columns, levels" in map(str, preparations(rows)) for rows in (X, design)] == [
        False,
        True,
    ]


def test_values_with_effects_of_their_own_are_told_apart():
    draws = np.random.default_rng(0)
    X = draws.integers(10, size=(400, 3)).astype(float)
    y = draws.normal(size=(3, 10))[np.arange(3), X.astype(int)].sum(axis=1)
    found = AutoMap(random_state=0).fit(X, y)
    assert "levels" in found.report_.preparation
    assert found.report_.error < 0.05


def test_a_linear_model_is_named_and_taken_if_nothing_else_is_as_good():
    draws = np.random.default_rng(0)
    X = draws.normal(size=(60, 40))
    y = X.sum(axis=1)
    model = KernelRegressor(random_state=0).fit(X, y)
    assert model.report_.kernel == "Polynomial(degree=1)"
    assert model.feature_map_._n_features_out <= 41
    assert "a linear model (0.0" in model.summary()
    wavy = KernelRegressor(random_state=0).fit(X[:, :2], np.sin(3 * X[:, 0]))
    assert "is not as good as the best kernel" in wavy.summary()


def test_sums_and_learned_weights_are_named_on_one_line():
    kernel = craftmaps.Sum([craftmaps.Gaussian(gamma=0.5), craftmaps.Laplacian(gamma=2.0)])
    candidate = Candidate(Scaling("standard", weights=(1.0, 0.5)), kernel)
    named = "Gaussian(gamma=0.5) + Laplacian(gamma=2.0) on standard columns"
    assert str(candidate) == named
    learned = Candidate(candidate.preparation.weighted(np.array([2.0, 2.0]), Lesson(10)), kernel)
    assert str(learned) == f"{named}, learned weights"
    assert learned.preparation.weights == (2.0, 1.0)
    turned = candidate.preparation.weighted(np.array([[0.0, 1.0], [2.0, 0.0]]), Lesson(10))
    assert str(turned) == "standard columns, learned directions"
    assert turned.weights == ((0.0, 1.0), (1.0, 0.0))
    again = turned.weighted(np.array([1.0, 3.0]), Lesson(10))
    assert again.weights == ((0.0, 3.0), (1.0, 0.0))


def test_errors_name_what_was_wrong():
    X, y = regression(50)
    with pytest.raises(ValueError, match="requires y to be passed"):
        AutoMap().fit(X)
    with pytest.raises(ValueError, match="task must be"):
        AutoMap(task="ranking").fit(X, y)
    with pytest.raises(ValueError, match="budget must be"):
        KernelRegressor(budget="fast").fit(X, y)
    with pytest.raises(ValueError, match="feature_map must be 'auto'"):
        KernelRegressor("best").fit(X, y)

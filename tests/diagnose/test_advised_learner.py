"""What is recommended can be saved, streamed, merged, sent to a cluster and exported."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.frozen import FrozenEstimator

from craftmaps import KernelRegressor, export_onnx, load
from craftmaps.diagnose import recommend

pytestmark = pytest.mark.slow  # a search takes a few seconds


@pytest.fixture(scope="module", params=["scaled", "images", "regression"])
def advised(request):
    """What was recommended, with rows and targets for it: both learners, and both wrappers."""
    X, y = load_digits(return_X_y=True)
    if request.param == "scaled":
        return recommend(X[:300], y[:300], budget=64).estimator, X[:300], y[:300]
    if request.param == "images":
        return recommend(X[:300], y[:300], budget=32, images=True).estimator, X[:300], y[:300]
    X, y = load_diabetes(return_X_y=True)
    return recommend(X, y, budget=32, task="regression").estimator, X, y


def outputs(model, X):
    """Scores of the classes, or predictions."""
    return getattr(model, "decision_function", model.predict)(X)


def assert_same_model(model, other, X):
    expected = outputs(other, X)
    np.testing.assert_allclose(outputs(model, X), expected, atol=1e-6 * np.abs(expected).max())


def on_a_fixed_map(estimator, X, y):
    """The estimator with its map fitted beforehand, one alpha, and a loss that has sums."""
    fitted = FrozenEstimator(clone(estimator.feature_map).fit(X, y))
    return clone(estimator).set_params(feature_map=fitted, alpha=1e-2, loss="squared")


def test_advice_is_saved_and_loaded(advised, tmp_path):
    estimator, X, y = advised
    model = clone(estimator).fit(X, y)
    model.save(tmp_path / "advised.craft")
    np.testing.assert_array_equal(outputs(load(tmp_path / "advised.craft"), X), outputs(model, X))


def test_advice_is_learned_block_by_block(advised):
    estimator, X, y = advised
    blocks = [(X[start : start + 150], y[start : start + 150]) for start in range(0, len(X), 150)]
    classes = () if isinstance(estimator, KernelRegressor) else (np.unique(y),)
    fixed = on_a_fixed_map(estimator, X, y)
    whole = clone(fixed).fit(X, y)
    assert_same_model(clone(fixed).fit_blocks(blocks, *classes), whole, X)
    stream = clone(fixed)
    for block in blocks:
        stream.partial_fit(*block, *classes)
    assert_same_model(stream, whole, X)
    free = clone(estimator).fit_blocks(blocks, *classes)  # fits the map, too
    assert free.n_samples_seen_ == len(X)
    assert free.score(X, y) > 0.9 * clone(estimator).fit(X, y).score(X, y)


def test_advice_is_merged(advised):
    estimator, X, y = advised
    classes = () if isinstance(estimator, KernelRegressor) else (np.unique(y),)
    fixed = on_a_fixed_map(estimator, X, y)
    left, right = (
        clone(fixed).partial_fit(X[half], y[half], *classes)
        for half in (slice(None, 200), slice(200, None))
    )
    assert_same_model(left.merge(right), clone(fixed).fit(X, y), X)


def test_advice_goes_to_dask(advised):
    pytest.importorskip("distributed", reason="Dask is missing: pip install 'craftmaps[dask]'")
    import dask
    import dask.array as da

    from craftmaps.scale.dask import fit

    estimator, X, y = advised
    fixed = on_a_fixed_map(estimator, X, y)
    rows, targets = da.from_array(X, chunks=(150, -1)), da.from_array(y, chunks=150)
    with dask.config.set(scheduler="threads"):
        assert_same_model(fit(clone(fixed), rows, targets), clone(fixed).fit(X, y), X)
        free = fit(clone(estimator), rows, targets)  # fits the map, too
    assert free.n_samples_seen_ == len(X)
    assert free.score(X, y) > 0.9 * clone(estimator).fit(X, y).score(X, y)


def test_advice_is_exported(advised, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    estimator, X, y = advised
    X = X.astype(np.float32)
    model = clone(estimator).fit(X, y)
    export_onnx(model, tmp_path / "advised.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "advised.onnx")
    predicted = np.ravel(session.run(None, {"X": X})[0])
    if isinstance(estimator, KernelRegressor):
        expected = model.predict(X)
        np.testing.assert_allclose(predicted, expected, rtol=1e-3)
    else:
        assert np.mean(predicted == model.predict(X)) > 0.99


def test_missing_values_are_encoded_by_the_learner():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    X[::7, 20] = np.nan
    model = recommend(X, y, budget=32).estimator.fit(X, y)
    assert model.encoder_ is not None
    assert model.score(X, y) > 0.9

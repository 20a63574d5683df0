"""Tables on Dask: encoded as a local table is, to the last bit."""

import numpy as np
import pytest

import tables_of
from craftmaps import FourierFeatures, Gaussian, KernelClassifier, KernelRegressor

N = 300
MAP = FourierFeatures(Gaussian(gamma=0.05), 40, random_state=0)
LEARNER = KernelClassifier(MAP, loss="squared", alpha=1.0, map_rows=100)


@pytest.fixture(autouse=True)
def objects_stay_objects():
    """Dask would turn decimal numbers and dates of pandas into text."""
    dask = pytest.importorskip("dask")
    with dask.config.set({"dataframe.convert-string": False}):
        yield


@pytest.fixture(scope="module")
def data():
    return tables_of.columns(N)


@pytest.fixture(scope="module")
def labels(data):
    return np.array(["old" if (age or 0) > 45 else "young" for age in data["age"]])


@pytest.fixture(scope="module")
def local(data, labels):
    return LEARNER.fit(data, labels)


def check_same(model, local, data):
    assert model.encoder_.is_like(local.encoder_)
    np.testing.assert_allclose(
        model.predict_proba(data), local.predict_proba(data), rtol=0, atol=1e-5
    )


def test_a_frame_of_dask_is_encoded_as_a_local_one(data, labels, local):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    from craftmaps.scale.dask import fit, predict

    frame = tables_of.as_pandas(data)
    X = dd.from_pandas(frame, npartitions=4)
    y = dd.from_pandas(pd.Series(labels, name="y"), npartitions=4)
    model = fit(LEARNER, X, y)
    check_same(model, local, data)
    shuffled = X[list(frame.columns[::-1])].assign(more=1)
    predicted = predict(model, shuffled, "predict_proba").compute()
    np.testing.assert_allclose(predicted, local.predict_proba(data), rtol=0, atol=1e-5)
    assert (predict(model, X).compute() == local.predict(data)).all()


def test_delayed_blocks_of_any_library_are_encoded(data, labels, local):
    dask = pytest.importorskip("dask")
    from craftmaps.scale.dask import fit

    for form in ("arrow", "dict"):
        make = tables_of.FORMS[form]
        blocks = [
            dask.delayed((make({k: c[i : i + 75] for k, c in data.items()}), labels[i : i + 75]))
            for i in range(0, N, 75)
        ]
        check_same(fit(LEARNER, blocks), local, data)


@pytest.mark.slow
def test_the_log_loss_of_a_frame_of_dask_is_that_of_a_local_one(data, labels):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    from craftmaps.scale.dask import fit

    learner = KernelClassifier(MAP, alpha=1.0, map_rows=100)
    X = dd.from_pandas(tables_of.as_pandas(data), npartitions=4)
    y = dd.from_pandas(pd.Series(labels, name="y"), npartitions=4)
    model, expected = fit(learner, X, y), learner.fit(data, labels)
    assert model.encoder_.is_like(expected.encoder_)
    np.testing.assert_allclose(
        model.predict_proba(data), expected.predict_proba(data), rtol=0, atol=1e-3
    )


def test_a_regressor_without_a_map_on_dask(data, labels):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    from craftmaps.scale.dask import fit

    learner = KernelRegressor(None, alpha=1.0, map_rows=80)
    y = (labels == "old").astype(float)
    X = dd.from_pandas(tables_of.as_pandas(data), npartitions=3)
    model = fit(learner, X, dd.from_pandas(pd.Series(y), npartitions=3))
    expected = learner.fit(data, y)
    assert model.encoder_.is_like(expected.encoder_)
    np.testing.assert_allclose(model.predict(data), expected.predict(data), rtol=0, atol=1e-4)

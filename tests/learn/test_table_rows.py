"""Learners of tables: encoding, sampling, blocks, saving and merging."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import craftmaps
import tables_of
from craftmaps import (
    FourierFeatures,
    Gaussian,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    OnePassClassifier,
    OnePassRegressor,
    TableEncoder,
)
from craftmaps.learn.map_rows import sample_places

N = 400
MAP = FourierFeatures(Gaussian(gamma=0.05), 128, random_state=0)


def classifier(**options):
    return KernelClassifier(MAP, **{"alpha": 1.0} | options)


@pytest.fixture(scope="module")
def data():
    return tables_of.columns(N)


@pytest.fixture(scope="module")
def labels(data):
    old = np.array([(age or 0) > 45 for age in data["age"]])
    sent = np.array(["nurse" in (title or "") for title in data["title"]])
    return np.where(old, "old", np.where(sent, "nurse", "other"))


def part(data, rows):
    return {name: column[rows] for name, column in data.items()}


def blocks_of(data, y, n_rows, form="pandas"):
    starts = range(0, N, n_rows)
    make = tables_of.FORMS[form]
    return [(make(part(data, slice(i, i + n_rows))), y[i : i + n_rows]) for i in starts]


@pytest.mark.parametrize("form", tables_of.FORMS)
def test_every_library_gives_the_same_model(form, data, labels):
    expected = classifier().fit(data, labels)
    table = tables_of.FORMS[form](data)
    model = classifier().fit(table, labels)
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(data))
    assert expected.score(data, labels) > 0.75


def test_it_is_the_encoder_in_front_of_the_learner(data, labels):
    model = classifier().fit(data, labels)
    encoder = TableEncoder().fit(data)
    by_hand = classifier().fit(encoder.transform(data), labels)
    assert by_hand.encoder_ is None
    np.testing.assert_array_equal(model.coef_, by_hand.coef_)
    np.testing.assert_array_equal(
        model.predict_proba(data), by_hand.predict_proba(encoder.transform(data))
    )
    assert model.encoder_.summary() == encoder.summary()
    assert model.feature_names_in_.tolist() == list(data)
    assert model.n_features_in_ == len(data)


def test_the_encoder_is_fitted_on_the_rows_of_the_map(data, labels):
    model = classifier(map_rows=300).fit(data, labels)
    places = sample_places(N, 300)
    some = {name: [column[i] for i in places] for name, column in data.items()}
    assert model.encoder_.is_like(TableEncoder().fit(some))
    assert not model.encoder_.is_like(TableEncoder().fit(part(data, slice(100))))


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("form", ["pandas", "arrow", "dict"])
def test_blocks_of_tables_are_the_whole_table(form, loss, data, labels):
    """Also if all values of a column are missing in a block, and its types differ."""
    expected = classifier(loss=loss, map_rows=300).fit(data, labels)
    blocks = blocks_of(data, labels, 37, form)
    model = classifier(loss=loss, map_rows=300).fit_blocks(blocks, classes=np.unique(labels))
    assert model.encoder_.is_like(expected.encoder_)
    np.testing.assert_allclose(
        model.predict_proba(data), expected.predict_proba(data), rtol=0, atol=2e-5
    )


def test_a_stream_that_can_be_read_once_is_encoded_as_its_first_rows(data, labels):
    blocks = blocks_of(data, labels, 50)
    model = classifier(loss="squared", map_rows=300)
    model.fit_blocks(iter(blocks), classes=np.unique(labels))
    assert model.encoder_.is_like(TableEncoder().fit(part(data, slice(300))))
    assert model.n_samples_seen_ == N


def test_tables_without_a_map_and_in_parts(data, labels):
    classes = np.unique(labels)
    encoder = FrozenEstimator(TableEncoder().fit(data))
    whole = KernelClassifier(None, loss="squared", alpha=1.0, encoder=encoder).fit(data, labels)
    assert whole.encoder_ is encoder.estimator
    parts = clone(whole)
    for X, y in blocks_of(data, labels, 100, "polars"):
        parts.partial_fit(X, y, classes=classes)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=0, atol=1e-4)
    blocks = KernelClassifier(None, loss="squared", alpha=1.0, encoder=encoder)
    blocks.fit_blocks(blocks_of(data, labels, 100), classes=classes)
    np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=0, atol=1e-4)


def test_blocks_without_a_map_are_encoded_by_a_sample_of_all_rows(data, labels):
    model = KernelClassifier(None, loss="squared", alpha=1.0, map_rows=60)
    model.fit_blocks(blocks_of(data, labels, 100), classes=np.unique(labels))
    some = {name: [column[i] for i in sample_places(N, 60)] for name, column in data.items()}
    assert model.encoder_.is_like(TableEncoder().fit(some))


def test_learners_merge_if_their_encoders_agree(data, labels):
    encoder = FrozenEstimator(TableEncoder().fit(data))
    halves = [slice(200), slice(200, None)]
    one, two = (
        KernelRegressor(None, alpha=1.0, encoder=encoder).fit(
            part(data, rows), labels[rows] == "old"
        )
        for rows in halves
    )
    whole = KernelRegressor(None, alpha=1.0, encoder=encoder).fit(data, labels == "old")
    np.testing.assert_allclose(one.merge(two).coef_, whole.coef_, rtol=0, atol=1e-4)
    other = KernelRegressor(None, alpha=1.0).fit(part(data, slice(200)), labels[:200] == "old")
    with pytest.raises(ValueError, match="different feature maps"):
        whole.merge(other)


def test_rows_of_tables_can_be_forgotten(data, labels):
    encoder = FrozenEstimator(TableEncoder().fit(data))
    y = (labels == "old").astype(float)
    model = KernelRegressor(None, alpha=1.0, encoder=encoder).fit(data, y)
    model.forget(part(data, slice(100)), y[:100])
    rest = KernelRegressor(None, alpha=1.0, encoder=encoder).fit(
        part(data, slice(100, None)), y[100:]
    )
    np.testing.assert_allclose(model.coef_, rest.coef_, rtol=0, atol=1e-3)


def test_a_model_of_a_table_can_be_saved(data, labels, tmp_path):
    model = classifier(encoder=TableEncoder({"price": "drop"})).fit(data, labels)
    model.save(tmp_path / "model.craft")
    again = craftmaps.load(tmp_path / "model.craft")
    np.testing.assert_array_equal(again.predict_proba(data), model.predict_proba(data))
    assert again.encoder_.dropped_["price"] == "dropped on request"


def test_a_fit_to_tables_goes_on_from_a_checkpoint(data, labels, tmp_path):
    blocks = blocks_of(data, labels, 100, "dict")
    model = classifier(loss="squared")
    options = {"classes": np.unique(labels), "checkpoint": tmp_path, "checkpoint_every": 0.0}
    expected = clone(model).fit_blocks(blocks, **options)
    for path in sorted(tmp_path.glob("*.craft"))[-1:]:
        path.unlink()
    again = clone(model).fit_blocks(blocks, **options)
    np.testing.assert_array_equal(again.predict_proba(data), expected.predict_proba(data))
    changed = [(part(blocks[0][0], slice(None)) | {"age": [1] * 100}, blocks[0][1]), *blocks[1:]]
    with pytest.raises(ValueError, match="have other values, targets or weights"):
        clone(model).fit_blocks(changed, **options)


def test_arrays_with_missing_numbers_are_encoded_and_others_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X[:, 0] > 0
    assert classifier().fit(X, y).encoder_ is None
    assert classifier().fit(sparse.csr_array(X), y).encoder_ is None
    assert classifier().fit(pd.DataFrame(X), y).encoder_ is None  # has no names
    holes = X.copy()
    holes[::9, 1] = np.nan
    model = classifier().fit(holes, y)
    assert model.encoder_.get_feature_names_out().tolist() == ["x0", "x1", "x1 is missing", "x2"]
    assert model.score(holes, y) > 0.8
    assert not hasattr(model, "feature_names_in_")
    assert classifier().fit(X.astype(object), y).encoder_ is not None
    assert classifier(encoder=TableEncoder()).fit(X, y).encoder_ is not None
    with pytest.raises(ValueError, match="NaN"):
        classifier(encoder=None).fit(holes, y)


def test_sparse_rows_pass_an_encoder():
    X = sparse.random(60, 5, 0.5, format="csr", random_state=0)
    y = np.asarray(X.sum(axis=1)).ravel() > 1.2
    model = KernelClassifier(None, alpha=1.0, encoder=TableEncoder()).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(X.toarray()), atol=1e-6)


def test_regressors_of_several_targets_take_tables(data, labels):
    y = np.column_stack([labels == "old", labels == "nurse"]).astype(float)
    model = KernelRegressor(MAP).fit(data, y)
    assert model.predict(data).shape == (N, 2)
    assert model.score(data, y) > 0.3


def test_columns_in_another_order_and_unknown_levels_predict(data, labels):
    frame = tables_of.as_pandas(data)
    model = classifier().fit(frame, labels)
    other = frame[frame.columns[::-1]].assign(more="x")
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(frame))
    row = {name: [None] for name in data} | {"city": ["Atlantis"], "title": ["deep sea diver"]}
    assert model.predict(row).shape == (1,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": ["old"]}, "column 'age' should hold numbers, but holds the text 'old'"),
        ({"title": None}, "the table has no column 'title'"),
    ],
)
def test_a_table_that_changed_is_one_sentence(change, message, data, labels):
    model = classifier().fit(data, labels)
    row = part(data, slice(1)) | change
    row = {name: column for name, column in row.items() if column is not None}
    with pytest.raises(ValueError, match=message):
        model.predict(row)


def test_learners_of_numbers_point_to_those_of_tables(data, labels):
    frame = tables_of.as_pandas(data)
    with pytest.raises(ValueError, match="column 'city' holds text or dates; use KernelClassifier"):
        OnePassClassifier().fit(frame, labels)
    with pytest.raises(ValueError, match="column 'city' holds text or dates; use KernelRegressor"):
        OnePassRegressor().fit(data, labels == "old")
    with pytest.raises(ValueError, match="column 'city' holds text or dates; set encoder='auto'"):
        classifier(encoder=None).fit(frame, labels)


@pytest.mark.parametrize("encoder", ["table", 3, FrozenEstimator(MAP), MAP])
def test_another_encoder_is_refused(encoder, data, labels):
    with pytest.raises(ValueError, match="encoder must be 'auto', None or a TableEncoder, got"):
        classifier(encoder=encoder).fit(data, labels)


def test_as_many_targets_as_rows(data, labels):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier().fit(data, labels[:-1])


def test_a_table_without_rows_is_named(data, labels):
    model = classifier().fit(data, labels)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.predict(part(data, slice(0)))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_label_is_named(missing, data, labels):
    labels = labels.astype(object)
    labels[3] = missing
    with pytest.raises(ValueError, match="the target of row 3 is missing"):
        classifier().fit(data, labels)


@pytest.mark.parametrize("learner", [KernelClassifier(MAP), KernelRegressor(MAP)])
def test_a_table_without_targets_is_refused(learner, data):
    with pytest.raises(ValueError, match="requires y to be passed"):
        learner.fit(data, None)


@pytest.mark.parametrize("X", [{"a": ["x", "y"]}, np.eye(2)], ids=["table", "array"])
def test_dates_are_no_numbers_to_predict(X):
    with pytest.raises(ValueError, match="takes numbers as targets, got datetime64"):
        KernelRegressor(MAP).fit(X, np.array(["2024-01-01", "2024-01-02"], "M8[s]"))


def test_principal_components_of_text_point_to_the_encoder():
    with pytest.raises(ValueError, match=r"KernelPCA takes numbers, .* with TableEncoder first"):
        KernelPCA(MAP).fit(pd.DataFrame({"a": ["x", "y"]}))


def test_regressors_point_to_classifiers_if_targets_are_text(data, labels):
    with pytest.raises(ValueError, match=r"numbers as targets, got the text .* KernelClassifier"):
        KernelRegressor(MAP).fit(data, labels)
    with pytest.raises(ValueError, match="OnePassRegressor takes numbers as targets"):
        OnePassRegressor().fit(np.eye(3), ["a", "b", "c"])

"""What a cluster or another room asks of a learner: begin, add, sums, copies; and its warnings."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score

from craftmaps import OnePassClassifier, OnePassRegressor, Polynomial, RandomMaclaurin, load

MAP = RandomMaclaurin(Polynomial(2), n_components=30, random_state=0)


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).standard_normal((400, 5))
    return X, np.array(["a", "b", "c"])[(X[:, 0] > 0) + 1 * (X[:, 1] > 0)]


def test_begin_fits_the_map_and_adds_no_row(rows):
    X, y = rows
    model = OnePassClassifier(MAP).begin(X[:50], y[:50], classes=["a", "b", "c", "d"])
    assert model.n_samples_seen_ == 0
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="nothing to learn from"):
        model.predict(X)
    model.add(X[:100], y[:100]).add(X[100:], y[100:])
    same = FrozenEstimator(model.feature_map_)
    whole = OnePassClassifier(same).partial_fit(X, y, classes=["a", "b", "c", "d"])
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    assert model.solve().n_samples_seen_ == 400


def test_begin_says_what_it_cannot_do(rows):
    X, y = rows
    with pytest.raises(NotFittedError, match="call fit, partial_fit or fit_blocks first"):
        OnePassClassifier(MAP).add(X, y)
    with pytest.raises(ValueError, match="needs all labels at once"):
        OnePassClassifier(MAP, class_weight="balanced").begin(X, y)
    with pytest.raises(ValueError, match="a regressor has no classes"):
        OnePassRegressor(MAP).begin(X, X[:, 0], classes=[0, 1])


def test_sums_of_parts_are_those_of_all_rows(rows):
    X, y = rows
    begun = OnePassClassifier(MAP, alpha=[0.1, 1.0]).begin(X, y)
    parts = [
        begun.emptied(first_row=start).add(X[start : start + 150], y[start : start + 150]).sums()
        for start in (0, 150, 300)
    ]
    assert begun.n_samples_seen_ == 0
    total = begun.with_sums(parts[0]).add_sums(parts[1]).add_sums(parts[2]).solve()
    whole = OnePassClassifier(MAP, alpha=[0.1, 1.0]).fit(X, y)
    np.testing.assert_allclose(total.scores_, whole.scores_, rtol=1e-9)
    np.testing.assert_allclose(total.predict_proba(X), whole.predict_proba(X), atol=1e-9)


def test_a_copy_for_prediction_has_no_sums_and_no_row_of_the_data(rows):
    X, y = rows
    model = OnePassClassifier(MAP).fit(X, y)
    light = model.for_prediction()
    np.testing.assert_array_equal(light.predict_proba(X), model.predict_proba(X))
    assert len(pickle.dumps(light)) < len(pickle.dumps(model)) / 3
    assert light._probe is None
    with pytest.raises(ValueError, match="no sums of its rows"):
        light.partial_fit(X, y)
    assert model.partial_fit(X, y).n_samples_seen_ == 800


def test_saving_calibrates_by_itself(rows, tmp_path):
    X, y = rows
    for resumable in (False, True):
        model = OnePassClassifier(MAP).fit(X, y)
        assert model._stream.temperature is None
        model.save(tmp_path / "model", resumable=resumable)
        assert load(tmp_path / "model").temperature_ == model.temperature_


def test_a_learner_of_an_older_file_has_the_parameters_of_today():
    state = {"feature_map": None, "alpha": "gcv", "n_folds": 5}
    assert OnePassRegressor._upgraded(state) == state | {"alpha": "auto", "map_rows": 10_000}
    kept = {"alpha": "gcv", "map_rows": None}
    assert OnePassRegressor._upgraded(kept) == kept
    numbers = OnePassClassifier._upgraded({"alpha": [0.1, 1.0]})
    assert numbers["alpha"] == [0.1, 1.0]


class Doubled(TransformerMixin, BaseEstimator):
    """Every column twice, so that a system without a penalty is singular."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return np.hstack([X, X])


def test_warnings_point_at_the_line_of_the_caller(rows):
    X, y = rows
    model = OnePassClassifier(Doubled(), alpha=0.0)
    fitted = OnePassClassifier(Doubled(), alpha=0.0).partial_fit(X, y)
    for call in (
        lambda: model.fit(X, y),
        lambda: fitted.predict(X),
        lambda: cross_val_score(model, X, y, cv=2),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        singular = [one for one in caught if issubclass(one.category, LinAlgWarning)]
        assert singular
        assert {one.filename for one in singular} == {__file__}


def test_the_old_name_of_checkpoint_every_works_with_a_warning(rows, tmp_path):
    X, y = rows
    for model in (OnePassClassifier(), OnePassRegressor()):
        folder = tmp_path / type(model).__name__
        targets = y if isinstance(model, OnePassClassifier) else X[:, 0]
        with pytest.warns(FutureWarning, match="checkpoint_every=") as caught:
            model.fit_blocks([(X, targets)], checkpoint=folder, every=0)
        assert caught[0].filename == __file__
        assert len(list(folder.iterdir())) == 2

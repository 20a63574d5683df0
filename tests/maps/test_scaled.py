"""ScaledMap: the scalers of scikit-learn inside a map."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)

from craftmaps import CraftMap, Polynomial, ScaledMap, TensorSketch, load

INNER = TensorSketch(Polynomial(degree=2), 64, random_state=0)
SCALERS = {
    "none": FunctionTransformer(),
    "center": StandardScaler(with_std=False),
    "standard": StandardScaler(),
    "std": StandardScaler(with_mean=False),
    "minmax": MinMaxScaler(),
    "maxabs": MaxAbsScaler(),
}
RENAMED = {"centre": "center", "deviation": "std", "range": "minmax", "maximum": "maxabs"}


def rows(n=60, seed=0):
    """Columns of different scales and means; one is constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 10, 0.01, 3, 1] + [0, 5, 1, -2, 0]
    X[:, 4] = 2.0
    return X


@pytest.mark.parametrize("columns", SCALERS)
@pytest.mark.parametrize("unit_norm", [True, False])
def test_a_pipeline_of_scikit_learn_gives_the_same_features(columns, unit_norm):
    X, new = rows(), rows(seed=1)
    steps = [SCALERS[columns], *([Normalizer()] if unit_norm else []), INNER]
    expected = make_pipeline(*steps).fit(X).transform(new)
    feature_map = ScaledMap(INNER, columns=columns, unit_norm=unit_norm).fit(X)
    np.testing.assert_allclose(feature_map.transform(new), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("columns", ["none", "std", "maxabs"])
def test_sparse_rows_stay_sparse(columns):
    X = sparse.random(50, 8, density=0.3, format="csr", random_state=0)
    dense = ScaledMap(INNER, columns=columns).fit(X.toarray())
    same = ScaledMap(INNER, columns=columns).fit(X)
    np.testing.assert_allclose(same.transform(X), dense.transform(X.toarray()), atol=1e-10)


@pytest.mark.parametrize("columns", ["center", "standard", "minmax"])
def test_scalings_that_would_fill_zeros_are_refused(columns):
    X = sparse.random(50, 8, density=0.3, format="csr", random_state=0)
    with pytest.raises(ValueError, match=rf"{columns!r} would fill the zeros .* 'std', 'maxabs'"):
        ScaledMap(INNER, columns=columns).fit(X)


@pytest.mark.parametrize("old", RENAMED)
def test_old_words_work_with_a_warning(old):
    X = rows()
    with pytest.warns(FutureWarning, match=f"{old!r} is now called {RENAMED[old]!r}") as record:
        Z = ScaledMap(INNER, columns=old).fit_transform(X)
    assert record[0].filename == __file__  # although scikit-learn's fit_transform called fit
    np.testing.assert_array_equal(Z, ScaledMap(INNER, columns=RENAMED[old]).fit_transform(X))


def test_the_old_name_of_scale_works_with_a_warning():
    feature_map = ScaledMap(INNER, columns="std").fit(rows())
    with pytest.warns(FutureWarning, match="is now called scale_") as record:
        factor = feature_map.factor_
    assert record[0].filename == __file__
    assert factor is feature_map.scale_


def test_an_unknown_word_is_named():
    with pytest.raises(ValueError, match=r"columns must be one of 'none', .* got 'standardize'"):
        ScaledMap(INNER, columns="standardize").fit(rows())


@pytest.mark.parametrize("columns", SCALERS)
def test_a_file_keeps_the_scaling(columns, tmp_path):
    feature_map = ScaledMap(CraftMap(n_components=32, random_state=0), columns=columns).fit(rows())
    feature_map.save(tmp_path / "map.craft")
    again = load(tmp_path / "map.craft")
    np.testing.assert_array_equal(again.transform(rows()), feature_map.transform(rows()))
    assert again.columns == columns


@pytest.mark.parametrize("unit_norm", [True, False])
@pytest.mark.parametrize("shape", [(5,), (5, 5)])
def test_weights_multiply_scaled_rows(shape, unit_norm):
    X, new, weights = rows(), rows(seed=1), np.random.default_rng(2).normal(size=shape)
    weighted = FunctionTransformer(lambda S: S * weights if len(shape) == 1 else S @ weights)
    steps = [StandardScaler(), weighted, *([Normalizer()] if unit_norm else []), INNER]
    expected = make_pipeline(*steps).fit(X).transform(new)
    feature_map = ScaledMap(INNER, columns="standard", weights=weights, unit_norm=unit_norm).fit(X)
    np.testing.assert_allclose(feature_map.transform(new), expected, rtol=1e-9, atol=1e-9)


def test_a_matrix_of_weights_takes_sparse_rows():
    X = sparse.random(50, 8, density=0.3, format="csr", random_state=0)
    scaled = ScaledMap(INNER, columns="std", weights=np.random.default_rng(2).normal(size=(8, 8)))
    expected = scaled.fit(X.toarray()).transform(X.toarray())
    np.testing.assert_allclose(scaled.fit(X).transform(X), expected, atol=1e-10)


@pytest.mark.parametrize("weights", [np.ones(4), np.ones((5, 4)), np.full(5, np.nan)])
def test_weights_that_do_not_fit_are_named(weights):
    with pytest.raises(ValueError, match=r"weights must be 5 finite numbers, .* matrix of 5 x 5"):
        ScaledMap(INNER, weights=weights).fit(rows())

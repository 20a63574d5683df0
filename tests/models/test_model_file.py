"""Models come back from their files as they were; what is no model of ours is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import normalize

import craftmaps
from cases import every_map, more_maps, rows
from craftmaps import (
    CompositionalMap,
    CraftMap,
    FourierFeatures,
    Gaussian,
    ImageMap,
    MetricMap,
    NormalEquations,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
)
from craftmaps.kernels import ShiftInvariant
from craftmaps.storage import array_file, packing

DATA = Path(__file__).parents[1] / "data"
X = rows(n=60)
LABELS = np.array(["ape", "bee", "cat"])[np.arange(60) % 3]


@pytest.fixture
def again(tmp_path):
    def through_file(estimator, **options):
        path = tmp_path / "model.craft"
        estimator.save(path, **options)
        return craftmaps.load(path)

    return through_file


def digits():
    X, y = load_digits(return_X_y=True)
    return normalize(X), y


NOT_FOR_ONNX = {
    "nystroem-name": Nystroem("sigmoid", 10, kernel_params={"gamma": 0.1}, random_state=0),
    "generator": TensorSketch(n_components=16, random_state=np.random.default_rng(0)),
}


@every_map
def test_every_map_comes_back(case, again):
    assert_same_features(case.estimator.fit(X), again)


@more_maps
def test_more_maps_come_back(feature_map, again):
    assert_same_features(feature_map.fit(X), again)


@pytest.mark.parametrize("name", NOT_FOR_ONNX)
def test_maps_that_onnx_does_not_take_come_back(name, again):
    assert_same_features(NOT_FOR_ONNX[name].fit(X), again)


@pytest.mark.parametrize("power", [0, 0.25])
def test_a_learnt_metric_comes_back(power, again):
    feature_map = MetricMap(CraftMap(n_components=20, random_state=0), power=power)
    assert_same_features(feature_map.fit(X, LABELS), again)


def test_a_map_of_images_comes_back(again):
    inner = CraftMap(n_components=20, random_state=0)
    images, _ = digits()
    for shape in (None, (4, 16)):
        feature_map = ImageMap(inner, cells=3, shape=shape).fit(images)
        loaded = again(feature_map)
        assert loaded.get_params()["shape"] == shape
        assert np.array_equal(loaded.transform(images), feature_map.transform(images))
    feature_map.cells = 4  # which the map inside does not fit
    with pytest.raises(ValueError, match="arrays of ImageMap do not fit together"):
        again(feature_map)


def assert_same_features(feature_map, again):
    loaded = again(feature_map)
    assert type(loaded) is type(feature_map)
    for rows_of in (X, X.astype(np.float32)):
        assert np.array_equal(loaded.transform(rows_of), feature_map.transform(rows_of))
    wanted = {k: v for k, v in feature_map.get_params(deep=False).items() if k != "random_state"}
    found = loaded.get_params(deep=False)
    for name, value in wanted.items():
        if not isinstance(value, BaseEstimator) or hasattr(type(value), "__eq__"):
            assert np.array_equal(repr(found[name]), repr(value)), name
    assert list(loaded.get_feature_names_out()) == list(feature_map.get_feature_names_out())


def test_sparse_landmarks(again):
    feature_map = Nystroem(Gaussian(0.5), 10, random_state=0).fit(sparse.csr_array(X))
    assert np.array_equal(again(feature_map).transform(X), feature_map.transform(X))


def test_precomputed_kernels(again):
    gram = Polynomial(2)(X)
    feature_map = Nystroem("precomputed", 10, random_state=0).fit(gram)
    assert np.array_equal(again(feature_map).transform(gram), feature_map.transform(gram))


CLASSIFIERS = {
    "plain": {},
    "no-map": {"feature_map": None},
    "folds": {"alpha": [0.1, 1.0], "alpha_per_target": True},
    "random-code": {"codes": "random", "n_bits": 6, "random_state": 0, "decoding": "hamming"},
    "own-code": {"codes": np.eye(3), "decoding": "pseudo-inverse"},
    "discriminant": {"decoding": "discriminant"},
    "weights": {"class_weight": {"ape": 2.0}, "fit_intercept": False},
}


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_come_back(name, resumable, again):
    options = {"feature_map": TensorSketch(n_components=32, random_state=0)} | CLASSIFIERS[name]
    model = OnePassClassifier(**options).fit(X, LABELS)
    loaded = again(model, resumable=resumable)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.predict(X).dtype == model.predict(X).dtype
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.coef_, model.coef_)
    assert np.array_equal(loaded.alpha_, model.alpha_)
    assert loaded.n_samples_seen_ == 60


@pytest.mark.parametrize("y", [X[:, 0], X[:, :2]], ids=["one", "two"])
def test_regressors_come_back(y, again):
    model = OnePassRegressor(FourierFeatures(Gaussian(0.5), 20, random_state=0)).fit(X, y)
    assert np.array_equal(again(model).predict(X), model.predict(X))


def test_names_of_columns_come_back(again):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    model = OnePassClassifier(TensorSketch(n_components=8, random_state=0)).fit(frame, LABELS)
    loaded = again(model)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize("labels", [np.array(["b", "a"], dtype=object), np.array([False, True])])
def test_labels_of_other_types(labels, again):
    y = labels[np.arange(60) % 2]
    model = OnePassClassifier().fit(X, y)
    assert again(model).predict(X).tolist() == model.predict(X).tolist()
    assert again(model).classes_.dtype == model.classes_.dtype


@pytest.mark.parametrize("rows_before", [10, 40])  # some in the buffer, or all in the sums
def test_resumable_models_learn_on_as_if_never_saved(rows_before, again):
    feature_map = FrozenEstimator(TensorSketch(n_components=16, random_state=0).fit(X))
    model = OnePassClassifier(feature_map, block_rows=25)
    model.partial_fit(X[:rows_before], LABELS[:rows_before], classes=np.unique(LABELS))
    loaded = again(model, resumable=True)
    for learner in (model, loaded):
        learner.partial_fit(X[rows_before:50], LABELS[rows_before:50])
        learner.merge(OnePassClassifier(feature_map).fit(X[50:], LABELS[50:]))
    assert np.array_equal(loaded.coef_, model.coef_)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_resumable_regressors_learn_on(again):
    y = X @ np.arange(13.0)
    model = OnePassRegressor(alpha=0.1).partial_fit(X[:30], y[:30])
    loaded = again(model, resumable=True).partial_fit(X[30:], y[30:])
    assert np.array_equal(loaded.coef_, model.partial_fit(X[30:], y[30:]).coef_)


def test_models_without_sums_say_so(again):
    frozen = FrozenEstimator(TensorSketch(n_components=16, random_state=0).fit(X))
    model = OnePassClassifier(frozen).fit(X, LABELS)
    loaded = again(model)
    for learn in (
        lambda: loaded.partial_fit(X, LABELS),
        lambda: loaded.partial_fit(X, LABELS, classes=["ape", "bee", "cat", "dog"]),
        lambda: loaded.merge(model),
        lambda: model.merge(loaded),
    ):
        with pytest.raises(ValueError, match="saved without resumable=True"):
            learn()
    assert np.array_equal(loaded.predict(X), model.predict(X))  # it is as it was
    assert np.array_equal(again(loaded).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="no sums of its rows"):
        again(loaded, resumable=True)
    assert loaded.fit(X[:30], LABELS[:30]).n_samples_seen_ == 30


def test_models_without_sums_hold_no_rows(tmp_path):
    model = OnePassClassifier(TensorSketch(n_components=16, random_state=0)).fit(X, LABELS)
    model.save(tmp_path / "model.craft")
    _, arrays = array_file.read(tmp_path / "model.craft", "model")
    assert not any(
        array.shape[-1:] == (13,) and array.dtype.kind == "f" for array in arrays.values()
    )


def test_a_compact_model_is_small(tmp_path):
    X, y = digits()
    model = OnePassClassifier(CraftMap(Polynomial(7), 300, random_state=0)).fit(X, y)
    model.save(tmp_path / "model.craft")
    assert (tmp_path / "model.craft").stat().st_size < 64 * 1024


def test_a_compact_model_of_wide_rows_is_small(tmp_path):
    X = np.random.default_rng(0).random((400, 784)) / 28
    model = OnePassClassifier(CraftMap(Polynomial(7), 300, n_up=19_200, random_state=0))
    model.fit(X, np.arange(400) % 10).save(tmp_path / "model.craft")
    assert (tmp_path / "model.craft").stat().st_size < 64 * 1024


def own_kernel(X, Y):
    return X @ Y.T


def own_draw(n, d, rng):
    return rng.standard_normal((n, d))


class OwnMap(TensorSketch):
    pass


@pytest.mark.parametrize(
    ("estimator", "complaint"),
    [
        (Nystroem(own_kernel, 5), r"Nystroem\.kernel is the function 'own_kernel'.*joblib"),
        (
            FourierFeatures(ShiftInvariant(own_draw), 5),
            r"FourierFeatures\.kernel\.draw is the function 'own_draw'.*joblib",
        ),
        (
            OnePassClassifier(RBFSampler(n_components=5)),
            r"feature_map is a sklearn\.kernel_approximation\.RBFSampler.*joblib",
        ),
        (OnePassClassifier(OwnMap(n_components=5)), r"feature_map is a .*OwnMap, and"),
    ],
    ids=["kernel", "draw", "foreign", "subclass"],
)
def test_what_a_file_cannot_hold_is_refused_by_name(tmp_path, estimator, complaint):
    estimator.fit(X, LABELS)
    with pytest.raises(TypeError, match=complaint):
        estimator.save(tmp_path / "model.craft")
    assert not list(tmp_path.iterdir())


def test_only_fitted_models_are_saved(tmp_path):
    for estimator in (TensorSketch(), OnePassClassifier(), OnePassRegressor()):
        with pytest.raises(ValueError, match="not fitted"):
            estimator.save(tmp_path / "model.craft")
    with pytest.raises(TypeError, match=r"OwnMap is a .*OwnMap, and a model file can contain only"):
        OwnMap(n_components=5).fit(X).save(tmp_path / "model.craft")


@pytest.mark.parametrize(
    "tree",
    [
        None,
        3,
        {"class": "Polynomial", "state": {}},
        {"class": "os.system", "state": {}},
        {"class": "system", "state": {}},
        {"function": "load"},
        {"method": "fit", "of": {"class": "TensorSketch", "state": {}}},
        {"same": 0},
        {"array": "none", "dtype": "float64", "fortran": False},
        {"array": "x", "dtype": "O", "fortran": False},
        {"class": "TensorSketch", "state": {"a": {"csr": [1, 2, 3, 4]}}},
        {"class": ["TensorSketch"], "state": {}},
        {"class": "TensorSketch", "state": 5},
        {"list": 3},
    ],
)
def test_files_that_make_no_model_are_refused(tmp_path, tree):
    path = tmp_path / "model.craft"
    array_file.write(path, "model", {"model": tree}, {"x": np.zeros(3)})
    with pytest.raises(ValueError, match=r"model\.craft is refused: its parts do not make a model"):
        craftmaps.load(path)


FORGED = {
    "gather": (CraftMap(Polynomial(3), 20, random_state=0), "_products.gather"),
    "offset": (CraftMap(Polynomial(3), 20, random_state=0), "_products.offset"),
    "column": (RandomMaclaurin(Polynomial(3), 20, random_state=0), "_products.column"),
    "length": (RandomMaclaurin(Polynomial(3), 20, random_state=0), "_products.length"),
    "degree": (RandomMaclaurin(Polynomial(3), 20, random_state=0), "_products.degree"),
    "blocks": (RandomMaclaurin(Polynomial(3), 20, random_state=0), "_products.blocks"),
    "rotations": (RandomMaclaurin(Polynomial(3), 20, random_state=0), "_products.rotations"),
    "complex": (
        RandomMaclaurin(Polynomial(3), 20, complex_to_real=True, random_state=0),
        "_products.offset",
    ),
    "buckets": (TensorSketch(n_components=16, random_state=0), "buckets_"),
    "sparse": (
        CraftMap(Polynomial(3), 20, n_up=50, down="sparse", random_state=0),
        "down_.buckets",
    ),
    "permutations": (
        FourierFeatures(Gaussian(0.5), 200, sampling="structured", random_state=0),
        "_frequencies.permutations",
    ),
    "inner": (CompositionalMap(n_components=20, random_state=0), "_products.gather"),
}


@pytest.mark.parametrize("value", [100_000, -1])
@pytest.mark.parametrize("name", FORGED)
def test_indices_that_leave_their_arrays_are_refused(tmp_path, name, value):
    feature_map, place = FORGED[name]
    path = tmp_path / "model.craft"
    feature_map.fit(X).save(path)
    header, arrays = array_file.read(path, "model")
    forged = arrays[place].astype(np.int32)
    forged.flat[-1] = value
    array_file.write(path, "model", header, arrays | {place: forged})
    with pytest.raises(ValueError, match="do not fit together"):
        craftmaps.load(path)


@pytest.mark.parametrize("name", ["gather", "offset"])
def test_arrays_of_a_loop_in_columns_are_refused(tmp_path, name):
    path = tmp_path / "model.craft"
    CraftMap(Polynomial(5), 60, n_up=200, h01="none", random_state=0).fit(X).save(path)
    header, arrays = array_file.read(path, "model")
    header["model"]["state"]["_products"]["state"][name]["fortran"] = True
    place = f"_products.{name}"
    array_file.write(path, "model", header, arrays | {place: arrays[place].T})
    with pytest.raises(ValueError, match="do not fit together"):
        craftmaps.load(path)


@pytest.mark.parametrize(("factor", "place"), [(0, 1279), (1, 0)])
def test_signs_of_a_fold_that_are_none_are_refused(tmp_path, factor, place):
    """A sign that begins in the rotations, and a factor among the signs."""
    path = tmp_path / "model.craft"
    CraftMap(Polynomial(5), 60, n_up=200, h01="none", random_state=0).fit(X).save(path)
    craftmaps.load(path)
    header, arrays = array_file.read(path, "model")
    forged = arrays["_products.offset"].astype(np.int64)
    forged[-1, factor] = place
    array_file.write(path, "model", header, arrays | {"_products.offset": forged})
    with pytest.raises(ValueError, match="do not fit together"):
        craftmaps.load(path)


def test_short_signs_of_a_fold_are_refused(tmp_path):
    path = tmp_path / "model.craft"
    feature_map = CraftMap(n_components=20, up=RandomMaclaurin("exp", 50), random_state=0)
    feature_map.fit(X).save(path)
    header, arrays = array_file.read(path, "model")
    array_file.write(path, "model", header, arrays | {"down_.signs": arrays["down_.signs"][:20]})
    with pytest.raises(ValueError, match="do not fit together"):
        craftmaps.load(path)


def test_deep_files_are_refused(tmp_path):
    path = tmp_path / "model.craft"
    tree: object = 1
    for _ in range(400):
        tree = {"list": [tree]}
    text = json.dumps(tree)
    assert json.loads(text) == tree
    array_file.write(path, "model", {"model": tree}, {})
    with pytest.raises(ValueError, match=r"model\.craft is refused"):
        craftmaps.load(path)


def test_checkpoints_are_no_models(tmp_path):
    array_file.write(tmp_path / "x", "checkpoint", {}, {})
    with pytest.raises(ValueError, match="it is a checkpoint, but a model was expected"):
        craftmaps.load(tmp_path / "x")


def test_two_parts_of_one_name_are_refused():
    class Fold:
        pass

    with pytest.raises(ValueError, match="another storable class is called 'Fold'"):
        packing.storable(Fold)


@pytest.mark.parametrize(
    "values",
    [
        [0.0, -0.0],
        [np.nan, 1.0],
        [np.inf, -1.0],
        [0.1, 0.5],
        [65504.0, 0.5],
        [3e5, -2.0],
        [2**40, -1],
        [300, 0],
        [],
    ],
)
def test_shrinking_is_exact(values):
    for dtype in (np.float64, np.float32, np.int64):
        with np.errstate(all="ignore"):
            array = np.array(values).astype(dtype)
        back = packing._shrunk(array).astype(dtype)
        assert back.tobytes() == array.tobytes()


def test_sums_of_an_estimator_are_normal_equations(again):
    model = OnePassRegressor(alpha=1.0).fit(X, X[:, 0])
    (sums,) = again(model, resumable=True)._stream.folds
    assert isinstance(sums, NormalEquations)
    assert np.array_equal(sums.hessian, model._stream.folds[0].hessian)


def test_models_of_the_first_version_predict_what_they_did():
    expected = np.load(DATA / "model-1.npz")
    model = craftmaps.load(DATA / "model-1.craft")
    X, _ = digits()
    X = X[: len(expected["labels"])]
    assert np.array_equal(model.predict(X), expected["labels"])
    assert np.allclose(model.predict_proba(X), expected["probabilities"], rtol=0, atol=1e-10)
    assert model.feature_map.kernel == Polynomial(degree=5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda sums: -sums,
        lambda sums: sums * np.nan,
        lambda sums: sums + np.inf,
        lambda sums: np.where(np.arange(len(sums)) == len(sums) - 1, -1.0, sums),
    ],
)
def test_sums_of_squares_that_are_none_are_refused(wrong, tmp_path):
    path = tmp_path / "model.craft"
    OnePassRegressor(alpha=1.0).fit(X, X[:, 0]).save(path, resumable=True)
    header, arrays = array_file.read(path, "model")
    (name,) = (name for name in arrays if "hessian" in name)
    arrays[name] = wrong(arrays[name].astype(np.float64))
    array_file.write(path, "model", header, arrays)
    with pytest.raises(ValueError, match=r"hessian|squares of features"):
        craftmaps.load(path)

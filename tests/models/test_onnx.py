"""ONNX models, run by onnxruntime, give what the library gives."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler, normalize

from cases import MORE_MAPS, every_map, more_maps, rows
from craftmaps import (
    Cauchy,
    Composed,
    CompositionalMap,
    CraftMap,
    DotProduct,
    Exponential,
    FourierFeatures,
    Gaussian,
    ImageMap,
    Laplacian,
    Matern,
    MetricMap,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
    VovkInfinite,
    VovkReal,
    export_onnx,
)
from craftmaps.models.onnx import register_converters

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

X = rows(n=60).astype(np.float32)
WIDE = rows(n=60, d=100).astype(np.float32)
DIGITS, DIGIT = load_digits(return_X_y=True)
DIGITS = normalize(DIGITS).astype(np.float32)
TRAIN, TEST = slice(0, 1200), slice(1200, None)


@pytest.fixture
def run(tmp_path):
    """What the exported model gives for rows."""

    def run_exported(estimator, X, **options):
        path = tmp_path / "model.onnx"
        export_onnx(estimator, path, **options)
        domains = {node.domain for node in onnx.load(path).graph.node}
        assert domains == {""}, "operators that are not standard"
        return onnxruntime.InferenceSession(path).run(None, {"X": X})

    return run_exported


def assert_close(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-5 * max(1.0, np.abs(expected).max())


KERNELS = [
    Polynomial(1),
    Polynomial(5, gamma=0.5),
    Exponential(),
    VovkReal(4),
    VovkInfinite(gamma=0.3),
    DotProduct([1.0, 0.0, 0.5]),
    DotProduct([0.0, 2.0]),
    DotProduct([3.0]),
    Gaussian(),
    Laplacian(),
    Cauchy(),
    Matern(0.5),
    Matern(1.5),
    Matern(2.5),
    Composed(Polynomial(2), Gaussian()),
    Composed("exp", "poly"),
]


@every_map
def test_every_map(case, run):
    expected = case.estimator.fit(X).transform(X.astype(np.float64))
    assert_close(run(case.estimator, X)[0], expected)


@more_maps
def test_more_maps(feature_map, run):
    feature_map.fit(X)
    assert_close(run(feature_map, X)[0], feature_map.transform(X.astype(np.float64)))


@pytest.mark.parametrize("power", [0, 0.25])
def test_a_learnt_metric(power, run):
    inner = CraftMap(Polynomial(3), 50, random_state=0)
    feature_map = MetricMap(inner, power=power).fit(X, X[:, 0] * X[:, 1])
    assert (feature_map.metric_root_ is None) == (power == 0)
    assert_close(run(feature_map, X)[0], feature_map.transform(X.astype(np.float64)))


@pytest.mark.parametrize("options", [{}, {"cells": 2, "directions": 9, "shape": (4, 16)}])
def test_images(options, run):
    images = DIGITS[:50].copy()
    images[7] = 0  # has no gradients
    feature_map = ImageMap(CraftMap(Polynomial(3), 50, random_state=0), **options).fit(images)
    assert_close(run(feature_map, images)[0], feature_map.transform(images.astype(np.float64)))


@pytest.mark.parametrize("name", ["craft-tall", "craft-append", "complex-many", "composed"])
def test_rows_long_enough_for_vectors(name, run):
    feature_map = clone(MORE_MAPS[name]).fit(WIDE)
    assert_close(run(feature_map, WIDE)[0], feature_map.transform(WIDE.astype(np.float64)))


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.parametrize("n_components", [7, 20, 64])
def test_rows_too_short_for_runs_of_memory(n_columns, n_components, run):
    few = np.ascontiguousarray(X[:, :n_columns])
    options = {"n_components": n_components, "random_state": 0}
    for feature_map in (
        RandomMaclaurin(Polynomial(3), **options),
        RandomMaclaurin(Polynomial(3), complex_to_real=True, **options),
        CraftMap(Polynomial(3), h01="up", **options),
        CraftMap(Polynomial(3), h01="none", **options),
    ):
        feature_map.fit(few)
        assert_close(run(feature_map, few)[0], feature_map.transform(few.astype(np.float64)))


def test_landmarks_of_which_some_repeat(run):
    feature_map = Nystroem(Gaussian(), landmarks=X[[*range(8), 0, 3]]).fit(X)
    assert feature_map.rank_ == 8
    assert_close(run(feature_map, X)[0], feature_map.transform(X.astype(np.float64)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_nystroem_of_every_kernel(kernel, run):
    for whiten in (True, False):
        feature_map = Nystroem(kernel, 15, whiten=whiten, random_state=0).fit(X)
        assert_close(run(feature_map, X)[0], feature_map.transform(X.astype(np.float64)))


def test_nystroem_of_dependent_landmarks_and_given_columns(run):
    twice = Nystroem(Gaussian(0.5), landmarks=np.concatenate([X[:5], X[:5]])).fit(X)
    assert twice.rank_ == 5
    assert_close(run(twice, X)[0], twice.transform(X.astype(np.float64)))
    gram = Polynomial(2)(X)
    columns = Nystroem("precomputed", 10, random_state=0).fit(gram)
    assert_close(run(columns, gram)[0], columns.transform(gram.astype(np.float64)))


def test_rows_far_from_the_origin(run):
    far = X + np.float32(100)
    for kernel in (Gaussian(0.5), Matern(0.5, gamma=1.0)):
        feature_map = Nystroem(kernel, 15, random_state=0).fit(far)
        assert_close(run(feature_map, far)[0], feature_map.transform(far.astype(np.float64)))


def test_any_number_of_rows(tmp_path):
    model = OnePassClassifier(CraftMap(Polynomial(3), 30, random_state=0)).fit(DIGITS, DIGIT)
    export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for n in (1, 2, 17):
        label, probabilities = session.run(None, {"X": DIGITS[:n]})
        assert np.array_equal(label, model.predict(DIGITS[:n]))
        assert probabilities.shape == (n, 10)


LEARNERS = {
    "craft": {"feature_map": CraftMap(Polynomial(5), 300, random_state=0)},
    "sketch": {"feature_map": TensorSketch(Polynomial(3), 256, random_state=0)},
    "maclaurin": {"feature_map": RandomMaclaurin(Polynomial(3), 256, random_state=0)},
    "fourier": {"feature_map": FourierFeatures(Gaussian(2.0), 256, random_state=0)},
    "structured": {
        "feature_map": FourierFeatures(Gaussian(2.0), 256, sampling="structured", random_state=0)
    },
    "nystroem": {"feature_map": Nystroem(Gaussian(2.0), 100, random_state=0)},
    "nystroem-raw": {"feature_map": Nystroem(Gaussian(2.0), 100, whiten=False, random_state=0)},
    "compositional": {"feature_map": CompositionalMap(n_components=256, random_state=0)},
    "rows": {"feature_map": None},
}


@pytest.mark.parametrize("name", LEARNERS)
def test_classifiers_agree_on_a_test_set(name, run):
    model = OnePassClassifier(**LEARNERS[name]).fit(DIGITS[TRAIN], DIGIT[TRAIN])
    label, probabilities = run(model, DIGITS[TEST])
    assert np.array_equal(label, model.predict(DIGITS[TEST]))
    assert np.abs(probabilities - model.predict_proba(DIGITS[TEST])).max() < 1e-4


@pytest.mark.parametrize("name", LEARNERS)
def test_regressors_agree_on_a_test_set(name, run):
    model = OnePassRegressor(**LEARNERS[name])
    for y in (DIGIT / 9, np.stack([DIGIT / 9, DIGITS[:, 20]], axis=1)):
        model.fit(DIGITS[TRAIN], y[TRAIN])
        (found,) = run(model, DIGITS[TEST])
        expected = model.predict(DIGITS[TEST]).reshape(len(found), -1)
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize(
    "options",
    [
        {"codes": "random", "n_bits": 30},
        {"codes": "random", "n_bits": 30, "decoding": "hamming"},
        {"codes": "random", "n_bits": 30, "decoding": "loss"},
        {"codes": "hadamard", "decoding": "pseudo-inverse"},
        {"codes": np.eye(10)[:, :9] * 3},
        {"decoding": "discriminant"},
    ],
    ids=["l2", "hamming", "loss", "pseudo-inverse", "own", "discriminant"],
)
def test_codes(options, run):
    model = OnePassClassifier(TensorSketch(n_components=200, random_state=0), random_state=0)
    model.set_params(**options).fit(DIGITS[TRAIN], DIGIT[TRAIN])
    label, probabilities = run(model, DIGITS[TEST])
    assert np.array_equal(label, model.predict(DIGITS[TEST]))
    assert np.abs(probabilities - model.predict_proba(DIGITS[TEST])).max() < 1e-4


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["ape", "bee"]),
        np.array(["ape", "bee"], object),
        np.array([False, True]),
        np.array([-5, 1000], np.int16),
        np.array([-1.0, 1.0]),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_labels_of_all_types(classes, run):
    y = classes[np.arange(60) % 2]
    model = OnePassClassifier(FrozenEstimator(TensorSketch(n_components=32).fit(X))).fit(X, y)
    label, _ = run(model, X)
    assert label.tolist() == model.predict(X).tolist()


CONVERTED = {
    "craft": CraftMap(Polynomial(5), 300, random_state=0),
    "sketch": TensorSketch(Polynomial(3), 128, random_state=0),
    "fourier": FourierFeatures(Gaussian(2.0), 128, sampling="fastfood", random_state=0),
    "nystroem": Nystroem(Gaussian(2.0), 50, random_state=0),
}


@pytest.mark.parametrize(
    ("name", "target_opset"),
    [*((name, 18) for name in CONVERTED), ("sketch", 17), ("sketch", 20), ("sketch", 21)],
)
def test_pipelines_are_converted_by_skl2onnx(name, target_opset):
    skl2onnx = pytest.importorskip("skl2onnx")
    register_converters()
    names = np.array([f"digit {digit}" for digit in DIGIT])
    for last, y in ((LogisticRegression(tol=0.01), names), (Ridge(), DIGIT / 9)):
        pipeline = make_pipeline(
            StandardScaler(with_std=False), Normalizer(), CONVERTED[name], last
        )
        pipeline.fit(DIGITS[:300], y[:300])
        is_classifier = hasattr(pipeline, "predict_proba")
        options = {"zipmap": False} if is_classifier else None
        model = skl2onnx.to_onnx(pipeline, DIGITS[:1], target_opset=target_opset, options=options)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        found = session.run(None, {"X": DIGITS[TEST]})
        if is_classifier:
            assert np.array_equal(found[0], pipeline.predict(DIGITS[TEST]))
            assert np.abs(found[1] - pipeline.predict_proba(DIGITS[TEST])).max() < 1e-4
        else:
            assert np.abs(found[0][:, 0] - pipeline.predict(DIGITS[TEST])).max() < 1e-4


@pytest.mark.filterwarnings("ignore:predictions lie up to")  # of rows that are outliers
def test_learners_with_maps_are_converted_by_skl2onnx():
    skl2onnx = pytest.importorskip("skl2onnx")
    register_converters()
    register_converters()
    X64 = DIGITS.astype(np.float64)
    model = OnePassClassifier(TensorSketch(n_components=200, random_state=0))
    pipeline = make_pipeline(StandardScaler(), model).fit(X64[TRAIN], DIGIT[TRAIN].astype(str))
    session = onnxruntime.InferenceSession(skl2onnx.to_onnx(pipeline, X64[:1]).SerializeToString())
    label, maps = session.run(None, {"X": X64[TEST]})
    assert np.array_equal(label, pipeline.predict(X64[TEST]))
    found = np.array([[row[name] for name in model.classes_] for row in maps])
    assert np.abs(found - pipeline.predict_proba(X64[TEST])).max() < 1e-4
    regressor = OnePassRegressor(TensorSketch(n_components=200, random_state=0))
    pipeline = make_pipeline(StandardScaler(), regressor).fit(X64[TRAIN], DIGIT[TRAIN] / 9)
    session = onnxruntime.InferenceSession(skl2onnx.to_onnx(pipeline, X64[:1]).SerializeToString())
    (found,) = session.run(None, {"X": X64[TEST]})
    assert np.abs(found[:, 0] - pipeline.predict(X64[TEST])).max() < 1e-4


@pytest.mark.parametrize("options", [{}, {"decoding": "discriminant"}, {"codes": "hadamard"}])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_scores_are_converted_where_skl2onnx_asks_for_them(n_classes, options):
    """As for a calibrated classifier, whose sigmoids are of scores."""
    skl2onnx = pytest.importorskip("skl2onnx")
    register_converters()
    model = OnePassClassifier(CraftMap(Polynomial(2), 64, random_state=0), random_state=0)
    y = DIGIT % n_classes
    calibrated = CalibratedClassifierCV(model.set_params(**options), cv=2).fit(DIGITS, y)
    model.fit(DIGITS, y)
    expected = model.decision_function(DIGITS)
    expected = expected if n_classes > 2 else np.stack([-expected, expected], axis=1)
    for given in (DIGITS, DIGITS.astype(np.float64)):
        wanted = {id(model): {"zipmap": False, "raw_scores": True}}
        converted = skl2onnx.to_onnx(model, given[:1], options=wanted)
        session = onnxruntime.InferenceSession(converted.SerializeToString())
        label, scores = session.run(None, {"X": given})
        assert np.array_equal(label, model.predict(DIGITS))
        assert np.abs(scores - expected).max() < 1e-4
        wanted = {id(calibrated): {"zipmap": False}}
        converted = skl2onnx.to_onnx(calibrated, given[:1], options=wanted)
        session = onnxruntime.InferenceSession(converted.SerializeToString())
        label, probabilities = session.run(None, {"X": given})
        assert np.array_equal(label, calibrated.predict(DIGITS))
        assert np.abs(probabilities - calibrated.predict_proba(DIGITS)).max() < 1e-4


def test_old_opsets_are_refused():
    skl2onnx = pytest.importorskip("skl2onnx")
    register_converters()
    feature_map = TensorSketch(n_components=8).fit(X)
    with pytest.raises(ValueError, match="target_opset >= 17, got 15"):
        skl2onnx.to_onnx(feature_map, X[:1], target_opset=15)


def own_kernel(X, Y):
    return X @ Y.T


@pytest.mark.parametrize(
    ("estimator", "complaint"),
    [
        (Nystroem(own_kernel, 5), "cannot be written with ONNX operators"),
        (Nystroem("sigmoid", 5), "cannot be written with ONNX operators"),
        (Nystroem(Matern(nu=0.7), 5), r"Matern\(.*nu=0.7.* cannot be written with ONNX"),
        (OnePassClassifier(RBFSampler()), "got a RBFSampler; put it into a Pipeline"),
        (LogisticRegression(), "got a LogisticRegression"),
        (CompositionalMap(inner_map=RBFSampler(n_components=30)), "got a RBFSampler"),
        (CraftMap(n_components=20, up=RBFSampler(n_components=30)), "got a RBFSampler"),
    ],
    ids=["kernel", "name", "matern", "foreign", "learner", "inner", "up"],
)
def test_what_cannot_be_exported_is_refused_by_name(tmp_path, estimator, complaint):
    estimator.fit(X, np.arange(60) % 2)
    with pytest.raises(ValueError, match=complaint):
        export_onnx(estimator, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_only_fitted_estimators_are_exported(tmp_path):
    for estimator in (TensorSketch(), OnePassClassifier(), OnePassRegressor(TensorSketch())):
        with pytest.raises(ValueError, match="not fitted"):
            export_onnx(estimator, tmp_path / "model.onnx")


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    for name in [name for name in sys.modules if name.startswith("craftmaps.models.onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"needs the package onnx; .*craftmaps\[onnx\]"):
        export_onnx(TensorSketch().fit(X), tmp_path / "model.onnx")


@pytest.mark.parametrize("n_components", [100, 600])  # fewer and more than rows
def test_standard_deviations(n_components, run):
    feature_map = FourierFeatures(Gaussian(0.5), n_components, random_state=0)
    rng = np.random.default_rng(0)
    rows_of = rng.standard_normal((300, 13)).astype(np.float32)
    y = np.column_stack([rows_of[:, 0] ** 2, rows_of[:, 1]]) + rng.standard_normal((300, 2))
    model = OnePassRegressor(feature_map, alpha=0.1).fit(rows_of, y)
    expected = model.predict(X.astype(np.float64), return_std=True)
    for found, wanted in zip(run(model, X, return_std=True), expected, strict=True):
        assert_close(found, wanted)
    with pytest.raises(ValueError, match="return_std is for regressors, got a FourierFeatures"):
        run(model.feature_map_, X, return_std=True)

"""Sums per class: exact class weights in streams that are read once."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

import craftmaps
from craftmaps import (
    CraftMap,
    KernelClassifier,
    OnePassClassifier,
    Polynomial,
    RandomMaclaurin,
    Window,
)
from craftmaps.learn import class_sums
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.solvers import memory
from craftmaps.learn.solvers.memory import equations_bytes

E = 96
SAME = 1e-6  # in scores


def _rows() -> tuple[np.ndarray, np.ndarray]:
    """Digits of which 0, 1 and 2 are rare, and the labels have no order in the rows."""
    X, y = load_digits(return_X_y=True)
    rare = np.flatnonzero(y <= 2)
    rows = np.sort(np.concatenate([np.flatnonzero(y > 2), rare[::8]]))
    return X[rows] / 64, y[rows]


X, y = _rows()
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, len(X))
MAP = FrozenEstimator(RandomMaclaurin(Polynomial(degree=4), n_components=E, random_state=0).fit(X))


def learner(**options: object) -> OnePassClassifier:
    options = {"class_weight": "balanced", "class_sums": True, "block_rows": 200} | options
    return OnePassClassifier(MAP, **options)


def in_memory(**options: object) -> OnePassClassifier:
    return learner(class_sums=False, **options)


def difference(model: OnePassClassifier, other: OnePassClassifier) -> float:
    return float(np.abs(model.decision_function(X) - other.decision_function(X)).max())


def fed(model: OnePassClassifier, cuts: list[int], rows: slice = slice(None)) -> OnePassClassifier:
    data = X[rows], y[rows], WEIGHTS[rows]
    for block in zip(*(np.split(part, cuts) for part in data), strict=True):
        model.partial_fit(block[0], block[1], classes=range(10), sample_weight=block[2])
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0.3},
        {"alpha": "gcv"},
        {"alpha_per_target": True},
        {"fit_intercept": False},
        {"decoding": "discriminant"},
        {"codes": "random", "n_bits": 15, "random_state": 0},
        {"decay": 0.999},
        {"class_weight": {0: 7.0, 3: 0.2}},
        {"class_weight": None},
    ],
    ids=str,
)
def test_a_stream_gives_the_model_of_fit(options: dict[str, object]) -> None:
    whole = in_memory(**options).fit(X, y, WEIGHTS)
    stream = fed(learner(**options), [130, 500, 1000])
    assert difference(stream, whole) < SAME
    assert stream.temperature_ == pytest.approx(whole.temperature_, rel=1e-6)
    assert difference(learner(**options).fit(X, y, WEIGHTS), whole) < SAME


def test_balanced_weights_matter_here() -> None:
    whole = in_memory().fit(X, y)
    assert difference(in_memory(class_weight=None).fit(X, y), whole) > 0.1


def test_weights_that_are_not_of_the_classes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong total, which forgets the factors, would fail the comparison above."""

    def unweighted(folds: list[NormalEquations], factors: np.ndarray) -> NormalEquations:
        total = NormalEquations()
        for fold in folds:
            total.merge(fold)
        return total

    monkeypatch.setattr(class_sums, "weighted_total", unweighted)
    stream = fed(learner(), [130])
    assert difference(stream, in_memory().fit(X, y, WEIGHTS)) > 0.1


@pytest.mark.parametrize("cuts", [[], [1], [7, 8, 200, 201, 1100], list(range(90, 1300, 90))])
def test_any_cut_of_blocks(cuts: list[int]) -> None:
    assert difference(fed(learner(), cuts), in_memory().fit(X, y, WEIGHTS)) < SAME


def test_fewer_rows_than_features() -> None:
    few = slice(0, E - 20)
    stream = fed(learner(), [30], few)
    whole = in_memory().fit(X[few], y[few], WEIGHTS[few])
    assert stream._stream.n_kept == E - 20
    classes = np.searchsorted(stream.classes_, whole.classes_)
    scores = stream.decision_function(X)[:, classes]
    assert np.abs(scores - whole.decision_function(X)).max() < SAME


def test_float32_products() -> None:
    """Above 2,048 features products are float32, whose sums are float64."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((6000, 2049)).astype(np.float32)
    labels = (Z[:, 0] + 0.3 * rng.standard_normal(6000) > 1).astype(int)
    whole = OnePassClassifier(class_weight="balanced", alpha=100.0).fit(Z, labels)
    stream = OnePassClassifier(class_weight="balanced", class_sums=True, alpha=100.0)
    for rows in np.array_split(np.arange(6000), 3):
        stream.partial_fit(Z[rows], labels[rows])
    assert stream._stream.folds[0].precision == np.float32
    scores = whole.decision_function(Z[:100])
    np.testing.assert_allclose(stream.decision_function(Z[:100]), scores, atol=1e-5)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_merge_in_any_order(order: tuple[int, ...]) -> None:
    # alpha is given, because the sample that chooses it depends on places in the stream
    parts = [fed(learner(alpha=0.1), [], slice(start, start + 450)) for start in (0, 450, 900)]
    merged = parts[order[0]]
    for number in order[1:]:
        merged.merge(parts[number])
    assert merged.n_samples_seen_ == len(X)
    assert difference(merged, in_memory(alpha=0.1).fit(X, y, WEIGHTS)) < SAME


def test_merge_of_parts_with_other_classes() -> None:
    low, high = y < 5, y >= 5
    merged = learner(alpha=0.1).fit(X[high], y[high])
    merged.merge(learner(alpha=0.1).fit(X[low], y[low]))
    assert merged.classes_.tolist() == list(range(10))
    assert difference(merged, in_memory(alpha=0.1).fit(X, y)) < SAME


def test_merge_with_other_sums_is_refused() -> None:
    plain = in_memory(class_weight=None).fit(X, y)
    with pytest.raises(ValueError, match="give both the same class_sums"):
        learner().fit(X, y).merge(plain)
    with pytest.raises(ValueError, match="give both the same class_sums"):
        plain.merge(learner().fit(X, y))


def test_a_class_first_seen_in_a_later_block() -> None:
    known = (y != 4) & (y != 9)
    stream = learner(alpha=0.1).partial_fit(X[known], y[known])
    assert len(stream._stream.folds) == 8
    stream.partial_fit(X[~known], y[~known], classes=range(10))
    assert difference(stream, in_memory(alpha=0.1).fit(X, y)) < SAME


def test_a_class_without_rows_does_not_count() -> None:
    stream = learner(alpha=0.1).partial_fit(X, y, classes=range(11))
    scores = stream.decision_function(X)[:, :10]
    assert np.abs(scores - in_memory(alpha=0.1).fit(X, y).decision_function(X)).max() < SAME


def test_an_iterator_that_can_be_read_once_with_checkpoints(tmp_path: Path) -> None:
    def blocks(stop: int = len(X)):
        for start in range(0, stop, 100):
            yield X[start : start + 100], y[start : start + 100], WEIGHTS[start : start + 100]
        if stop < len(X):
            raise KeyboardInterrupt

    options = {"classes": range(10), "checkpoint": tmp_path, "checkpoint_every": 0.0}
    with pytest.raises(KeyboardInterrupt):
        learner().fit_blocks(blocks(700), **options)
    resumed = learner().fit_blocks(blocks(), **options)
    assert resumed.n_samples_seen_ == len(X)
    assert difference(resumed, in_memory().fit(X, y, WEIGHTS)) < SAME


def test_save_load_and_resume(tmp_path: Path) -> None:
    feature_map = CraftMap(Polynomial(degree=3), E, n_up=2 * E, random_state=0)
    options = {"class_weight": "balanced", "map_rows": None, "block_rows": 200}
    half = OnePassClassifier(feature_map, class_sums=True, **options)
    half.partial_fit(X[:600], y[:600], classes=range(10))
    half.save(tmp_path / "half.craft", resumable=True)
    loaded = craftmaps.load(tmp_path / "half.craft")
    np.testing.assert_array_equal(loaded.decision_function(X), half.decision_function(X))
    assert loaded.class_sums is True
    for model in (loaded, half):
        model.partial_fit(X[600:], y[600:])
    np.testing.assert_allclose(loaded.decision_function(X), half.decision_function(X), atol=1e-9)
    frozen = FrozenEstimator(loaded.feature_map_)
    assert difference(loaded, OnePassClassifier(frozen, **options).fit(X, y)) < SAME
    loaded.save(tmp_path / "light.craft")
    light = craftmaps.load(tmp_path / "light.craft")
    np.testing.assert_array_equal(light.predict_proba(X), loaded.predict_proba(X))


def test_forget_and_window() -> None:
    stream = learner(alpha=0.1).fit(X, y).forget(X[:300], y[:300])
    rest = in_memory(alpha=0.1).fit(X[300:], y[300:])
    assert difference(stream, rest) < SAME
    window = Window(learner(alpha=0.1), n_blocks=2)
    for start in (0, 300, 800):
        stop = {0: 300, 300: 800, 800: len(X)}[start]
        window.partial_fit(X[start:stop], y[start:stop], classes=range(10))
    assert difference(window.model(), rest) < SAME


def test_rows_of_another_class_are_not_forgotten() -> None:
    stream = learner(alpha=0.1).fit(X, y)
    before = stream.decision_function(X)
    with pytest.raises(ValueError, match="Nothing was changed"):
        stream.forget(X[:200], np.where(y[:200] == 3, 4, 3))
    np.testing.assert_array_equal(stream.decision_function(X), before)


def test_memory_is_refused_before_any_row(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = equations_bytes(E, 10, 8, 10)
    monkeypatch.setattr(memory, "available_bytes", lambda: needed - 1)
    assert in_memory(class_weight=None).partial_fit(X, y) is not None  # one set of sums fits
    stream = learner()
    with pytest.raises(MemoryError, match=f"each of 10 classes, which needs .*{needed:,} bytes"):
        stream.partial_fit(X, y)
    assert not hasattr(stream, "_stream")
    monkeypatch.setattr(memory, "available_bytes", lambda: needed)
    assert stream.partial_fit(X, y).n_samples_seen_ == len(X)


def test_sequences_of_alphas_and_other_values_are_refused() -> None:
    with pytest.raises(ValueError, match="instead of a sequence"):
        learner(alpha=[0.1, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match="class_sums must be True or False"):
        learner(class_sums=2).fit(X, y)


def test_without_class_sums_a_stream_cannot_balance() -> None:
    for model in (in_memory(), KernelClassifier(MAP, loss="squared", class_weight="balanced")):
        with pytest.raises(ValueError, match=r"class_sums=True"):
            model.partial_fit(X, y)


@parametrize_with_checks(
    [
        OnePassClassifier(class_sums=True),
        OnePassClassifier(class_sums=True, class_weight="own-class"),
    ]
)
def test_scikit_learn_accepts_it(estimator, check) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


OWN = {"class_weight": "own-class", "alpha": 0.1}


def own_class_by_hand(weight: float, rows: np.ndarray, alpha: float = 0.1) -> list[Ridge]:
    """One ridge regression per class, whose own rows have a weight."""
    Z = MAP.transform(X[rows])
    return [
        Ridge(alpha=alpha).fit(
            Z, np.where(y[rows] == c, 1, -1), np.where(y[rows] == c, weight, 1) * WEIGHTS[rows]
        )
        for c in range(10)
    ]


def test_own_class_is_one_regression_per_class() -> None:
    stream = fed(learner(**OWN), [130, 700])
    weight = stream.own_class_weight_
    assert weight == pytest.approx(10.0)
    models = own_class_by_hand(weight, np.arange(len(X)))
    expected = np.column_stack([model.predict(MAP.transform(X)) for model in models])
    np.testing.assert_allclose(stream.decision_function(X), expected, atol=SAME)


def test_own_class_leaves_out_whole_rows() -> None:
    """A row with all its weight in its own target, which is not a part of several equal rows."""
    model = learner(**OWN).fit(X, y)
    scores, labels, _ = model.leave_one_out()
    sample = model._stream.sample
    Z = MAP.transform(X)
    for place in (0, 100, 1000):
        row = int(np.abs(Z - sample.Z[place]).sum(axis=1).argmin())
        assert y[row] == labels[place]
        weights = np.where(y == labels[place], model.own_class_weight_, 1.0)
        weights[row] = 0
        target = np.where(y == labels[place], 1, -1)
        without = Ridge(alpha=0.1).fit(Z, target, weights).predict(Z[[row]])
        assert scores[place, labels[place]] == pytest.approx(float(without[0]), abs=SAME)


def test_own_class_makes_fewer_errors_with_few_features() -> None:
    train, test = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
    feature_map = RandomMaclaurin(Polynomial(degree=4), n_components=40, random_state=0)
    plain = OnePassClassifier(feature_map).fit(X[train], y[train])
    own = OnePassClassifier(feature_map, class_sums=True, class_weight="own-class")
    own.fit(X[train], y[train])
    wrong = [np.sum(model.predict(X[test]) != y[test]) for model in (plain, own)]
    assert wrong[1] < 0.8 * wrong[0]


def test_own_class_does_not_depend_on_blocks(tmp_path: Path) -> None:
    whole = learner(class_weight="own-class").fit(X, y, WEIGHTS)
    stream = fed(learner(class_weight="own-class"), [7, 8, 300])
    assert stream.alpha_ == whole.alpha_
    assert difference(stream, whole) < SAME
    assert stream.temperature_ == pytest.approx(whole.temperature_, rel=1e-6)
    parts = [fed(learner(**OWN), [], slice(start, start + 700)) for start in (700, 0)]
    assert difference(parts[0].merge(parts[1]), learner(**OWN).fit(X, y, WEIGHTS)) < SAME


def test_own_class_with_fewer_rows_than_features() -> None:
    few = np.arange(E - 16)
    stream = fed(learner(**OWN), [30], slice(0, len(few)))
    weight = stream.own_class_weight_
    assert stream._stream.n_kept == len(few)
    assert weight > 1
    models = own_class_by_hand(weight, few)
    expected = np.column_stack([model.predict(MAP.transform(X)) for model in models])
    np.testing.assert_allclose(stream.decision_function(X), expected, atol=SAME)


def test_own_class_of_two_classes_is_plain() -> None:
    two = y % 2
    own = learner(**OWN).fit(X, two)
    assert own.own_class_weight_ == 1
    assert difference(own, in_memory(class_weight=None, alpha=0.1).fit(X, two)) < SAME


def test_own_class_needs_class_sums_and_targets_of_classes() -> None:
    for model in (in_memory(**OWN), KernelClassifier(MAP, class_weight="own-class")):
        with pytest.raises(ValueError, match="OnePassClassifier with class_sums=True"):
            model.fit(X, y)
    for options in ({"codes": "random"}, {"decoding": "discriminant"}):
        with pytest.raises(ValueError, match="needs codes='one-vs-rest'"):
            learner(**OWN, **options).fit(X, y)

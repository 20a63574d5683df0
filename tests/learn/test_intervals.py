"""Conformal bounds and sets of classes: against their definition, and what they promise."""

import os
from pathlib import Path

import numpy as np
import pytest

import craftmaps
from craftmaps import (
    CraftMap,
    FourierFeatures,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Matern,
    Nystroem,
    OnePassClassifier,
    Polynomial,
    ScaledMap,
)
from craftmaps.learn.intervals import Conformal
from craftmaps.scale.cluster import fold

DATA = os.environ.get("CRAFTMAPS_DATA")
MAP = CraftMap(Polynomial(degree=3), 128, random_state=0)


@pytest.mark.parametrize("n_rows", [1, 9, 10, 99])
@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
def test_a_bound_is_the_score_of_its_rank(n_rows, coverage):
    scores = np.random.default_rng(0).standard_normal((n_rows, 2))
    rank = int(np.ceil(round(coverage * (n_rows + 1), 9)))
    for target, bound in enumerate(Conformal(scores, np.ones(n_rows)).bound(coverage)):
        ordered = np.sort(np.abs(scores[:, target]))
        assert bound == (ordered[rank - 1] if rank <= n_rows else np.inf)


def test_weights_are_repetitions():
    scores = np.arange(1.0, 41.0)[:, None]
    weights = np.tile([0.0, 1.0, 2.0, 3.0], 10)
    repeated = np.repeat(scores, weights.astype(int), axis=0)
    for coverage in (0.1, 0.5, 0.8, 0.9):
        found = Conformal(scores, weights).bound(coverage)
        # the new row counts as a mean row, 2 here, instead of as one
        assert found[0] == repeated[int(np.ceil(round(coverage * 62, 9))) - 1]
    assert np.isinf(Conformal(np.zeros((0, 1)), np.zeros(0)).bound(0.5)).all()


@pytest.fixture(scope="module")
def split(digits):
    X, y = digits
    order = np.random.default_rng(0).permutation(len(y))
    y = np.array([f"digit {label}" for label in y])[order]
    return X[order[:900]], y[:900], X[order[900:]], y[900:]


@pytest.mark.parametrize("kind", [OnePassClassifier, KernelClassifier])
@pytest.mark.parametrize("codes", ["one-vs-rest", "random"])
def test_sets_contain_the_class(kind, codes, split):
    """Coverage of 897 rows by 900, of which 900 or 90 tell the bound: 4 binomial errors of both."""
    X, y, new, truth = split
    noise = 0.25 * np.random.default_rng(1).standard_normal((2, 900, 64))
    n_bits = 40 if codes == "random" else None
    feature_map = CraftMap(Polynomial(3), 128, random_state=0)
    model = kind(feature_map, codes=codes, n_bits=n_bits, random_state=0)
    model.fit(X + noise[0], y)
    new = new + noise[1, : len(new)]
    right = np.searchsorted(model.classes_, truth)
    for coverage in (0.8, 0.95):
        chosen = model.predict_set(new, coverage)
        assert chosen.shape == (len(new), 10)
        assert chosen.dtype == bool
        assert chosen.any(axis=1).all()
        covered = chosen[np.arange(len(new)), right].mean()
        told = 900 if kind is OnePassClassifier else 90
        error = np.sqrt(coverage * (1 - coverage) * (1 / len(new) + 1 / told))
        assert coverage - 4 * error < covered
        if (model.predict(new) == truth).mean() < coverage:  # the likeliest class is always in
            assert covered < coverage + 4 * error
    wide, narrow = model.predict_set(new, 0.99), model.predict_set(new, 0.5)
    assert (wide >= narrow).all()
    assert (narrow[np.arange(len(new)), model.predict_proba(new).argmax(axis=1)]).all()
    with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
        model.predict_set(new, 1.0)


@pytest.mark.parametrize("kind", [OnePassClassifier, KernelClassifier])
def test_sets_come_back_from_files(kind, split, tmp_path):
    X, y, new, _ = split
    model = kind(MAP).fit(X, y)
    expected = model.predict_set(new, 0.95)
    for options in ({}, {"resumable": True}) if kind is OnePassClassifier else ({},):
        model.save(tmp_path / "model.craft", **options)
        again = craftmaps.load(tmp_path / "model.craft")
        assert np.array_equal(again.predict_set(new, 0.95), expected)
    assert fold.no_predictions(model, "predict_set", np.dtype(float)).shape == (0, 10)
    light = fold.for_prediction(model, "predict_set")
    assert np.array_equal(light.predict_set(new, 0.95), expected)


def test_scores_of_a_classifier_are_those_of_rows_left_out(split):
    X, y, _, _ = split
    model = OnePassClassifier(MAP, alpha=0.01).fit(X[:200], y[:200])
    model.predict_set(X[:1], 0.9)
    scores, labels, _ = model.leave_one_out()
    exponentials = np.exp(model.temperature_ * scores)
    right = exponentials[np.arange(len(labels)), labels] / exponentials.sum(axis=1)
    np.testing.assert_allclose(model._stream.conformal.scores[:, 0], 1 - right, atol=1e-12)


def noisy(rng, n_rows):
    rows = rng.uniform(-2, 2, (n_rows, 2))
    return rows, np.sin(2 * rows[:, 0]) * rows[:, 1] + rng.standard_t(3, n_rows) * 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"feature_map": FourierFeatures(Gaussian(0.5), 60, random_state=0)},
        {"feature_map": FourierFeatures(Gaussian(0.5), 300, random_state=0)},
        {"feature_map": Nystroem(Gaussian(0.5), 50, whiten=False, random_state=0)},
        {"feature_map": FourierFeatures(Gaussian(0.5), 60, random_state=0), "loss": "huber"},
    ],
    ids=["more rows", "fewer rows", "penalty", "huber"],
)
def test_intervals_cover_what_they_promise(options):
    """Averaged over 60 fits to 200 rows: coverage is within 4 standard errors, plus what a finite
    sample of residuals adds at most; intervals of training residuals are caught.
    """
    rng = np.random.default_rng(7)
    covered, naive = {0.6: [], 0.9: []}, {0.6: [], 0.9: []}
    for _ in range(60):
        rows, y = noisy(rng, 200)
        new, truth = noisy(rng, 500)
        model = KernelRegressor(**options).fit(rows, y)
        in_training, out = np.abs(y - model.predict(rows)), np.abs(truth - model.predict(new))
        for coverage in covered:
            low, high = model.predict_interval(new, coverage).T
            covered[coverage].append(((low <= truth) & (truth <= high)).mean())
            naive[coverage].append((out <= np.quantile(in_training, coverage)).mean())
    for coverage, shares in covered.items():
        error = np.std(shares) / np.sqrt(len(shares))
        spare = 0.05 if options.get("loss") == "huber" else 0.01  # of only 20 rows held out
        assert coverage - 4 * error - 0.005 < np.mean(shares) < coverage + 4 * error + spare
        if "loss" not in options:
            assert np.mean(naive[coverage]) < coverage - 4 * error - 0.005


def regression(name):
    file = np.load(Path(DATA) / f"{name}.npz", allow_pickle=False)
    X, y = file["X"].astype(np.float64), file["y"].astype(np.float64).ravel()
    return X, y


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="CRAFTMAPS_DATA is not set")
@pytest.mark.parametrize(
    "name",
    [
        "airfoil",
        "concrete",
        "wine",
        "elevators",
        "uci_kin8nm",
        "uci_protein",
        "california_housing_raw",
    ],
)
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_intervals_of_real_tables_cover_what_they_promise(name, loss):
    """Within 4 standard errors of the rows that are tested and of those that tell the bound."""
    X, y = regression(name)
    order = np.random.default_rng(0).permutation(len(y))[:8000]
    train, test = order[: len(order) * 2 // 3], order[len(order) * 2 // 3 :]
    feature_map = ScaledMap(
        FourierFeatures(Matern(1.5), 512, random_state=0), columns="std", unit_norm=False
    )
    model = KernelRegressor(feature_map, loss=loss).fit(X[train], y[train])
    told = min(1024, len(train)) if loss == "squared" else len(train) / 10
    for coverage in (0.7, 0.9):
        low, high = model.predict_interval(X[test], coverage).T
        covered = ((low <= y[test]) & (y[test] <= high)).mean()
        error = np.sqrt(coverage * (1 - coverage) * (1 / len(test) + 1 / told))
        assert abs(covered - coverage) < 4 * error


@pytest.mark.parametrize("n_rows", [0, 3])
def test_noise_of_rows_without_weight_is_not_known(n_rows):
    with pytest.raises(ValueError, match="noise of the targets is not known"):
        Conformal(np.ones((n_rows, 1)), np.zeros(n_rows)).deviation()

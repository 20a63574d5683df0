"""Standard deviations, intervals and draws: against dense inverses and refits without a row."""

import numpy as np
import pytest
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge

import craftmaps
from craftmaps import FourierFeatures, Gaussian, KernelRegressor, Nystroem, OnePassRegressor
from craftmaps.learn.solvers import choose
from unbiased import COMPARISONS, SUITE, check_unbiased

pytestmark = pytest.mark.delicate

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(300)
BOTH = np.column_stack([Y, X[:, 2] ** 2 + 0.5 * RNG.standard_normal(300)])
NEW = RNG.standard_normal((50, 3)) * 2
WEIGHTS = RNG.integers(1, 3, 300).astype(float)


class PartlyFree(FourierFeatures):
    """A map with a penalty that leaves five of its features alone."""

    def penalty(self):
        return np.diag(np.arange(self.n_components) >= 5).astype(float)


MAPS = {
    "fourier": FourierFeatures(Gaussian(0.3), 40, random_state=0),
    "more features than rows": FourierFeatures(Gaussian(0.3), 400, random_state=0),
    "penalty": Nystroem(Gaussian(0.3), 40, whiten=False, random_state=0),
    "free directions": PartlyFree(Gaussian(0.3), 40, random_state=0),
    "none": None,
}


def dense(model, rows, weights, fit_intercept, alpha):
    """A^-1, the features about their mean, and 1 / n: as their definitions say."""
    feature_map = model.feature_map_
    Z, new = (a if feature_map is None else feature_map.transform(a) for a in (rows, NEW))
    P = feature_map.penalty() if hasattr(feature_map, "penalty") else np.eye(Z.shape[1])
    mean = np.average(Z, axis=0, weights=weights) if fit_intercept else 0.0
    A = (Z - mean).T @ (weights[:, None] * (Z - mean)) + alpha * P
    return np.linalg.pinv(A, hermitian=True), new - mean, fit_intercept / weights.sum(), Z - mean


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_standard_deviation_is_that_of_the_formula(name, fit_intercept, weighted):
    weights = WEIGHTS if weighted else np.ones(300)
    model = OnePassRegressor(MAPS[name], alpha=0.1, fit_intercept=fit_intercept)
    model.fit(X, BOTH, weights if weighted else None)
    predicted, std = model.predict(NEW, return_std=True)
    inverse, new, base, Z = dense(model, X, weights, fit_intercept, 0.1)
    h = base + np.einsum("ij,jk,ik->i", Z, inverse, Z)
    residuals = BOTH - model.predict(X)
    # a row of weight 2 counts as two rows, one of which stays: leave-one-out takes one copy away
    errors = residuals / (1 - h)[:, None]
    noise = np.sqrt(np.average(errors**2 * (1 - h)[:, None], axis=0, weights=weights))
    leverage = base + np.einsum("ij,jk,ik->i", new, inverse, new)
    np.testing.assert_allclose(std, noise * np.sqrt(1 + leverage)[:, None], rtol=1e-7)
    assert np.array_equal(predicted, model.predict(NEW))


@pytest.mark.parametrize("name", ["fourier", "more features than rows"])
def test_the_noise_comes_from_refits_without_a_row(name):
    model = OnePassRegressor(MAPS[name], alpha=0.5).fit(X[:60], Y[:60])
    Z = model.feature_map_.transform(X[:60])
    scores = []
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        ridge = Ridge(alpha=0.5).fit(Z[rest], Y[rest])
        centred = Z[rest] - Z[rest].mean(axis=0)
        A = centred.T @ centred + 0.5 * np.eye(Z.shape[1])
        row = Z[i] - Z[rest].mean(axis=0)
        h = 1 / 59 + row @ np.linalg.solve(A, row)
        scores.append((Y[i] - ridge.predict(Z[[i]])[0]) / np.sqrt(1 + h))
    _, conformal = model._uncertainty()
    np.testing.assert_allclose(np.sort(conformal.scores[:, 0]), np.sort(scores), rtol=1e-7)


def test_blocks_merging_and_float32_make_no_difference():
    whole = OnePassRegressor(MAPS["fourier"], alpha=0.1).fit(X, Y)
    fixed = FrozenEstimator(whole.feature_map_)
    parts = [
        OnePassRegressor(fixed, alpha=0.1, block_rows=32).partial_fit(X[i::2], Y[i::2])
        for i in (0, 1)
    ]
    merged = parts[0].merge(parts[1])
    for found in (whole.predict(NEW, return_std=True), merged.predict(NEW, return_std=True)):
        np.testing.assert_allclose(found[1], whole.predict(NEW, True)[1], rtol=1e-8)
    single = OnePassRegressor(MAPS["fourier"], alpha=0.1).fit(X.astype(np.float32), Y)
    predicted, std = single.predict(NEW.astype(np.float32), return_std=True)
    assert predicted.dtype == std.dtype == np.float32
    np.testing.assert_allclose(std, whole.predict(NEW, True)[1], rtol=1e-4)
    before = whole.predict(NEW, True)[1]
    whole.partial_fit(X, Y)  # knows more
    assert (whole.predict(NEW, True)[1] < before).mean() > 0.9


@pytest.mark.parametrize("name", ["fourier", "more features than rows", "penalty"])
def test_draws_have_the_covariance_of_the_posterior(name):
    """False alarms are as rare as in tests/unbiased.py; draws with noise are caught."""
    model = OnePassRegressor(MAPS[name], alpha=0.1).fit(X, Y)
    inverse, new, base, _ = dense(model, X, np.ones(300), True, 0.1)
    noise = model._uncertainty()[1].deviation()[0]
    covariance = noise**2 * (base + new @ inverse @ new.T)
    drawn = model.sample_y(NEW, 20_000, random_state=3) - model.predict(NEW)[:, None]
    pairs = drawn[:5, None] * drawn[None, :5]
    check_unbiased(pairs.reshape(25, -1).T[:, ::6], covariance[:5, :5].ravel()[::6], 0.2)
    chi2 = (drawn**2).sum(axis=1) / covariance.diagonal()
    low, high = stats.chi2.ppf([SUITE / COMPARISONS, 1 - SUITE / COMPARISONS], 20_000)
    assert ((chi2 > low) & (chi2 < high)).all()
    noisy = ((drawn + noise * RNG.standard_normal(drawn.shape)) ** 2).sum(axis=1)
    assert (noisy / covariance.diagonal() > high).mean() > 0.5


def test_draws_are_functions():
    model = OnePassRegressor(MAPS["fourier"], alpha=0.1).fit(X, BOTH)
    drawn = model.sample_y(NEW, 3, random_state=5)
    assert drawn.shape == (50, 2, 3)
    np.testing.assert_allclose(model.sample_y(NEW[10:20], 3, random_state=5), drawn[10:20])
    assert not np.allclose(model.sample_y(NEW, 3, random_state=6), drawn)
    assert OnePassRegressor(alpha=1.0).fit(X, Y).sample_y(NEW).shape == (50, 1)
    for wrong in (0, 1.5, "one"):
        with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
            model.sample_y(NEW, wrong)


def test_intervals_are_nested_and_as_wide_as_their_rows_are_strange():
    model = OnePassRegressor(MAPS["fourier"], alpha=0.1).fit(X, BOTH)
    narrow, wide = model.predict_interval(NEW, 0.5), model.predict_interval(NEW, 0.95)
    assert narrow.shape == (50, 2, 2)
    assert (wide[..., 0] < narrow[..., 0]).all()
    assert (narrow[..., 1] < wide[..., 1]).all()
    single = OnePassRegressor(alpha=1.0).fit(X, Y)
    widths = np.diff(single.predict_interval([[0.0, 0.0, 0.0], [50.0, 50.0, 50.0]]))
    assert widths[1] > 2 * widths[0]
    few = OnePassRegressor(alpha=1.0).fit(X[:8], Y[:8])
    assert np.isinf(few.predict_interval(X[:3], 0.95)).all()  # 8 rows cannot tell
    assert np.isfinite(few.predict_interval(X[:3], 0.8)).all()
    for wrong in (0, 1, 90, "all"):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            single.predict_interval(X, wrong)


@pytest.mark.parametrize("alpha", [0.0, 1e-14])
def test_interpolation_has_intervals_too(alpha):
    model = OnePassRegressor(MAPS["more features than rows"], alpha=alpha)
    with np.errstate(all="raise"):
        model.fit(X[:100], Y[:100])
        _, std = model.predict(NEW, return_std=True)
        low, high = model.predict_interval(NEW, 0.9).T
    assert np.isfinite(std).all()
    assert (std > 0.1).all()
    assert (low < high).all()


@pytest.mark.parametrize("name", ["fourier", "more features than rows", "penalty"])
def test_files_keep_what_is_asked_for(name, tmp_path):
    path = tmp_path / "model.craft"
    model = KernelRegressor(MAPS[name], alpha=0.1).fit(X, Y)
    model.save(path)
    light = craftmaps.load(path)
    for ask in ("predict_interval", "sample_y"):
        with pytest.raises(ValueError, match="save it with uncertainty=True"):
            getattr(light, ask)(NEW)
    with pytest.raises(ValueError, match="save it with uncertainty=True"):
        light.predict(NEW, return_std=True)
    for options in ({"uncertainty": True}, {"resumable": True}):
        model.save(path, **options)
        again = craftmaps.load(path)
        for _ in range(2):
            np.testing.assert_allclose(
                again.predict(NEW, True)[1], model.predict(NEW, True)[1], rtol=1e-5
            )
            np.testing.assert_allclose(
                again.predict_interval(NEW), model.predict_interval(NEW), rtol=1e-5, atol=1e-5
            )
            again.save(path, uncertainty=True)  # and on
            again = craftmaps.load(path)
    robust = KernelRegressor(MAPS[name], loss="huber", alpha=0.1).fit(X, Y)
    robust.save(path)
    again = craftmaps.load(path)
    assert np.array_equal(again.predict_interval(NEW), robust.predict_interval(NEW))


def test_the_size_of_a_file_is_what_is_said(tmp_path):
    model = OnePassRegressor(FourierFeatures(Gaussian(0.3), 256, random_state=0)).fit(X, Y)
    sizes = []
    for uncertainty in (False, True):
        model.save(tmp_path / "model.craft", uncertainty=uncertainty)
        sizes.append((tmp_path / "model.craft").stat().st_size)
    assert 4 * 256**2 < sizes[1] - sizes[0] < 4 * 256**2 + 12_000


def test_what_has_no_standard_deviation_says_so(monkeypatch):
    robust = KernelRegressor(MAPS["fourier"], loss="huber", alpha=0.1).fit(X, Y)
    with pytest.raises(ValueError, match=r"for the squared loss.*use predict_interval"):
        robust.predict(NEW, return_std=True)
    with pytest.raises(ValueError, match="for the squared loss"):
        robust.sample_y(NEW)
    several = OnePassRegressor(MAPS["fourier"], alpha_per_target=True).fit(X, BOTH)
    with pytest.raises(ValueError, match="alpha_per_target=False"):
        several.predict_interval(NEW)
    monkeypatch.setattr(choose, "MANY_ROWS", 100)  # beyond which rows are solved by iteration
    iterated = OnePassRegressor(MAPS["more features than rows"], alpha=0.1).fit(X, Y)
    assert iterated.solution_.mean_leverage is not None
    with pytest.raises(ValueError, match="solved by iteration"):
        iterated.predict(NEW, return_std=True)
    low, high = iterated.predict_interval(NEW).T
    assert (low < high).all()

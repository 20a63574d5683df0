"""Errors of Gram matrices, spectra and weights, against slow and obvious versions."""

import numpy as np
import pytest
from scipy import stats
from sklearn.kernel_approximation import RBFSampler

from cases import rows
from craftmaps import (
    CraftMap,
    FourierFeatures,
    Gaussian,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
)
from craftmaps.diagnose import effective_rank, gram_error, scree, weight_histogram
from craftmaps.diagnose.errors import METRICS, measure

KERNEL = Polynomial(degree=3)


def slow_error(approximate, exact, metric):
    n = len(exact)
    pairs = [(i, j) for i in range(n) for j in range(n)]
    squares = sum((approximate[i, j] - exact[i, j]) ** 2 for i, j in pairs)
    rmse = (squares / n**2) ** 0.5
    values = [exact[i, j] for i, j in pairs]
    if metric == "nrmse":
        return rmse / (sum(values) / n**2)
    if metric == "nrmse-range":
        return rmse / (max(values) - min(values))
    if metric == "frobenius":
        return squares**0.5 / sum(v * v for v in values) ** 0.5
    if metric == "max":
        return max(abs(approximate[i, j] - exact[i, j]) for i, j in pairs)
    if metric == "spectral":
        largest = [np.abs(np.linalg.eigvals(A)).max() for A in (approximate - exact, exact)]
        return largest[0] / largest[1]
    return sum(abs(approximate[i, j] / exact[i, j] - 1) for i, j in pairs) / n**2


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_against_its_definition(metric):
    X = rows(12, 5)
    Z = RandomMaclaurin(KERNEL, 40, random_state=3).fit_transform(X)
    expected = slow_error(Z @ Z.T, KERNEL(X), metric)
    assert measure(Z @ Z.T, KERNEL(X), metric) == pytest.approx(expected)
    found = gram_error(RandomMaclaurin(KERNEL, 40), X, metric, seeds=[3])
    assert float(found) == pytest.approx(expected)
    assert measure(KERNEL(X), KERNEL(X), metric) == 0


def test_interval_over_seeds():
    X = rows()
    found = gram_error(CraftMap(KERNEL, 64), X, "frobenius", seeds=6)
    assert len(found.values) == 6
    low, high = stats.t.interval(0.95, 5, found.values.mean(), stats.sem(found.values))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.low < found.value < found.high
    assert np.isnan(gram_error(CraftMap(KERNEL, 64), X, seeds=1).low)


def test_a_fitted_map_is_taken_as_it_is_and_a_sample_is_drawn():
    X = rows(60)
    fitted = CraftMap(KERNEL, 64, random_state=5).fit(X)
    assert float(gram_error(fitted, X, seeds=None)) == float(
        gram_error(CraftMap(KERNEL, 64), X, seeds=[5])
    )
    assert len(gram_error(fitted, X, seeds=None, n_rows=10).exact) == 100


def test_maps_of_others_need_a_kernel():
    X = rows()
    theirs = RBFSampler(gamma=0.5, n_components=2000)
    assert float(gram_error(theirs, X, "max", kernel=Gaussian(0.5))) < 0.2
    with pytest.raises(ValueError, match="give it as kernel="):
        gram_error(theirs, X)
    with pytest.raises(ValueError, match="metric must be one of"):
        gram_error(CraftMap(KERNEL, 64), X, "rms")


def test_scree_has_the_eigenvalues_of_both_matrices():
    X = rows(30)
    feature_map = CraftMap(KERNEL, 12, h01="none", random_state=0)
    found = scree({"small": feature_map}, X)
    Z = feature_map.fit_transform(X)
    assert found.exact == pytest.approx(np.linalg.eigvalsh(KERNEL(X))[::-1], abs=1e-10)
    assert found.approximate["small"] == pytest.approx(np.linalg.eigvalsh(Z @ Z.T)[::-1], abs=1e-10)
    assert not found.approximate["small"][12:].any()
    with pytest.raises(ValueError, match="maps is empty"):
        scree({}, X)


def test_craft_raises_the_rank_of_random_features():
    """CRAFT Figure 2a, on rows without negative entries."""
    X = np.abs(rows(300, 60))
    maps = {
        "plain": RandomMaclaurin(Polynomial(7), 256, allocation="geometric", random_state=0),
        "craft": CraftMap(Polynomial(7), 256, random_state=0),
    }
    ranks = scree(maps, X).effective_ranks()
    assert ranks["plain"] < 0.7 * ranks["craft"]
    assert abs(ranks["craft"] - ranks["exact"]) < abs(ranks["plain"] - ranks["exact"])


def test_effective_rank():
    assert effective_rank([2.0, 2.0, 2.0, 2.0]) == pytest.approx(4)
    assert effective_rank([5.0, 0.0]) == pytest.approx(1)
    p = np.array([0.5, 0.25, 0.25])
    assert effective_rank(3 * p) == pytest.approx(np.exp(-(p * np.log(p)).sum()))
    for wrong in ([-1.0, 1.0], [0.0, 0.0], [[1.0]]):
        with pytest.raises(ValueError, match="needs eigenvalues"):
            effective_rank(wrong)


def test_weight_histogram_counts_every_weight():
    X = rows(200)
    y = (X[:, 1] * X[:, 2] > 0).astype(int)
    models = {
        "plain": OnePassClassifier(
            RandomMaclaurin(Polynomial(7), 200, allocation="geometric", random_state=0)
        ).fit(X, y),
        "craft": OnePassClassifier(CraftMap(Polynomial(7), 200, random_state=0)).fit(X, y),
    }
    found = weight_histogram(models)
    for name, model in models.items():
        weights = model.coef_.ravel() / np.sqrt(np.mean(model.coef_**2))
        assert found.shares[name].sum() == pytest.approx(1)
        assert found.idle[name] == np.mean(np.abs(weights) < 0.1)
        middle = found.edges[50], found.edges[51]
        inside = np.mean((weights >= middle[0]) & (weights < middle[1]))
        assert found.shares[name][50] == pytest.approx(inside)
    assert found.idle["plain"] > 2 * found.idle["craft"]  # CRAFT Figure 2b and c
    with pytest.raises(ValueError, match="has no coef_"):
        weight_histogram(CraftMap())


def test_plots_render_to_files(tmp_path):
    X = rows(80)
    model = OnePassRegressor(CraftMap(KERNEL, 50, random_state=0)).fit(X, X[:, 1])
    results = {
        "error": gram_error(FourierFeatures(Gaussian(1.0), 64), X),
        "scree": scree(CraftMap(KERNEL, 50), X),
        "weights": weight_histogram(model),
    }
    for name, result in results.items():
        path = tmp_path / f"{name}.png"
        figure = result.plot(path)
        assert path.stat().st_size > 5000
        axes = figure.axes[0]
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert str(result)

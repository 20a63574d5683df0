"""Scales of numbers: standard, and the curve by quantiles."""

import numpy as np
import pytest
from scipy.stats import norm

from craftmaps import TableEncoder
from craftmaps.tables.scaling import LinearScale, QuantileCurve, scale_for

RNG = np.random.default_rng(0)
COLUMNS = {
    "lognormal": np.exp(2 * RNG.normal(size=2000)),
    "cauchy": RNG.standard_cauchy(2000),
    "mostly zero": np.where(RNG.random(2000) < 0.95, 0.0, RNG.exponential(size=2000)),
    "two values": (RNG.random(2000) < 0.01).astype(float),
    "near": np.array([0.0, 1e-300, 1.0, 1e300]),
    "few": np.array([1.0, 2.0]),
    "outlier": np.append(RNG.normal(size=500), 1e9),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_curve_rises_everywhere_and_has_bounded_slopes(name):
    x = COLUMNS[name]
    curve = QuantileCurve.of(x)
    width = x.max() - x.min()
    outside = np.array([x.min() - width, x.max() + width])
    grid = np.unique(np.concatenate([np.linspace(*outside, 5000), x, outside]))
    y = curve(grid)
    assert np.isfinite(y).all()
    assert (np.diff(y) >= -1e-12).all()
    assert y[-1] > y[0]
    mean_slope = (curve(x.max()[None]) - curve(x.min()[None]))[0] / width
    below = (curve(x.min()[None]) - y[:1])[0]
    above = (y[-1:] - curve(x.max()[None]))[0]
    for rise in (below, above):  # a straight line, no steeper than the curve is on average
        assert 0 < rise <= mean_slope * width * (1 + 1e-9)


def test_the_curve_leads_to_a_normal_distribution():
    x = np.exp(3 * np.random.default_rng(1).normal(size=20_000))
    z = np.sort(QuantileCurve.of(x)(x))
    expected = norm.ppf((np.arange(len(z)) + 0.5) / len(z))
    middle = slice(200, -200)
    assert np.abs(z - expected)[middle].max() < 0.05


def test_the_curve_is_smooth():
    """Its derivative is continuous at the knots, where that of straight pieces would jump."""
    curve = QuantileCurve.of(np.exp(np.random.default_rng(0).normal(size=1000)))
    inner, h = curve.knots[1:-1], 1e-7 * np.diff(curve.knots).min()
    before = (curve(inner) - curve(inner - h)) / h
    after = (curve(inner + h) - curve(inner)) / h
    np.testing.assert_allclose(before, after, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "kind"), [("lognormal", QuantileCurve), ("cauchy", QuantileCurve)]
)
def test_heavy_tails_are_scaled_by_quantiles(name, kind):
    assert isinstance(scale_for(COLUMNS[name], "auto"), kind)
    assert isinstance(scale_for(COLUMNS[name], "standard"), LinearScale)


@pytest.mark.parametrize("draw", ["normal", "uniform", "laplace"])
def test_light_tails_are_standardized(draw):
    x = getattr(np.random.default_rng(0), draw)(size=5000)
    assert isinstance(scale_for(x, "auto"), LinearScale)


def test_huge_numbers_are_standardized():
    scale = LinearScale.standard(np.array([1e300, -1e300, 0.0]))
    np.testing.assert_allclose(scale(np.array([1e300, 0.0])), [np.sqrt(1.5), 0.0])


def test_a_rare_flag_is_not_blown_up():
    x = (np.arange(10_000) == 7).astype(float)
    Z = TableEncoder().fit_transform({"flag": x, "x": np.random.default_rng(0).normal(size=10_000)})
    assert Z[:, 0].max() - Z[:, 0].min() < 5  # standardized it would be 100

"""What it would cost in kernel error if features of several degrees shared their first factors."""

from pathlib import Path

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.harness import DATA, table
from craftmaps import Polynomial
from craftmaps.maps.planning.craft_plan import MaclaurinPlanner, _Sample

E = 1024


def report() -> str:
    rng = np.random.default_rng(0)
    data = {"uniform, 784 columns, unit norm": rng.random((2000, 784))}
    if DATA:
        with np.load(Path(DATA) / "mnist.npz") as stored:
            X = stored["X_train"][:5000].reshape(5000, -1).astype(float)
        data["MNIST, unit norm"] = X
        data["MNIST, centred, unit norm"] = X - X.mean(axis=0)
    rows = []
    for name, X in data.items():
        for degree in (3, 7):
            alone, shared = zip(*(errors(normalize(X), degree, r) for r in (8, 16)), strict=True)
            cells = (alone[0], shared[0], shared[1])
            rows.append([name, degree, *(f"{value:.4f}" for value in cells)])
    return (
        "## Shared factors\n\nA product of n + 1 rotated entries could be made from a product of n "
        "of them. Each degree would stay unbiased, but the errors of degrees would be correlated: "
        "one feature of degree n and one of degree m > n that share n factors have covariance "
        "E[w^2]^n t^(m-n) - t^(n+m), where w = <s,x><s,y> for a row s of signs and t = <x,y>. "
        f"Expected relative errors of `CraftMap`, (1 + t)^degree, E = {E:,}, by the variance "
        "formulas; shared features lie in different columns of the fold.\n\n"
    ) + table(["rows", "degree", "own factors, D = 8E", "shared, D = 8E", "shared, D = 16E"], rows)


def errors(X: np.ndarray, degree: int, ratio: int) -> tuple[float, float]:
    """Expected errors with factors of their own, and with shared ones."""
    planner = MaclaurinPlanner.measure(
        Polynomial(degree), X.astype(np.float32), np.random.default_rng(0)
    )
    plan, sample = planner.plan(E, ratio * E, "auto", "fold"), _Sample(planner, "fold")
    up, down = sample.variances(plan.exact, plan.counts, plan.inside, plan.n_up, E)
    return plan.error, sample.error(up + covariance(planner, plan.counts), down)


def covariance(planner: MaclaurinPlanner, counts: np.ndarray) -> float:
    """Mean over pairs of twice the covariance of the estimates of all pairs of degrees.

    In a run, two features exclude each other (`DegreeStatistics.repulsion`), here too.
    """
    moments, statistics = planner.moments, planner.statistics
    t, length = moments.inner, statistics.length
    (base,) = moments.bases("hadamard", False)
    apart = t**2 - (base - t**2) / (length - 1)
    used, total = np.flatnonzero(counts), 0.0
    for n in used[used > 0]:
        for m in used[used > n]:
            both = min(counts[n], counts[m])
            one = base**n - t ** (2 * n) - min(length, both) * (t ** (2 * n) - apart**n)
            weight = np.prod(statistics.coefficients[[n, m]] / counts[[n, m]])
            total += 2 * both * weight * moments.mean(one * t ** (m - n))
    return total

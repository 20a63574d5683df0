"""`craftmaps bench`: the speed of the maps relative to scikit-learn and BLAS."""

import statistics
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from craftmaps.cli import options


@click.command()
@click.option("--rows", default=2048, show_default=True, type=click.IntRange(16))
@click.option("--columns", default=256, show_default=True, type=click.IntRange(2))
@click.option("--components", default=1024, show_default=True, type=click.IntRange(16))
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1))
@options.as_json
def bench(rows: int, columns: int, components: int, repeats: int, as_json: bool) -> None:
    """Time the maps against scikit-learn's, and against BLAS, on random rows.

    The first ratio compares rows per second with scikit-learn's map of the same kernel and size.
    The second ratio compares the time with the rank-k update of the features, which a learner
    needs anyway. The times are medians, taken in turns.

    \b
    Example:
      craftmaps bench --rows 1024 --components 512
    """
    times = _measured(rows, columns, components, repeats)
    if as_json:
        options.report({"rows": rows, "columns": columns, "components": components} | times, True)
        return
    click.echo(f"{rows:,} rows, {columns:,} columns, {components:,} components, float32\n")
    options.table(times["maps"])
    click.echo(f"\nrank-k update (BLAS): {1e6 * times['update_seconds_per_row']:.2f} us/row")


def _measured(rows: int, columns: int, components: int, repeats: int) -> dict[str, Any]:
    import numpy as np
    from scipy.linalg import blas
    from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler

    from craftmaps import CraftMap, FourierFeatures, Gaussian, Polynomial, TensorSketch

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Polynomial(3)
    seeded: dict[str, Any] = {"n_components": components, "random_state": 0}
    sketch = PolynomialCountSketch(degree=3, coef0=1, **seeded)
    pairs = {
        "CraftMap": (CraftMap(kernel, **seeded), sketch),
        "TensorSketch": (TensorSketch(kernel, **seeded), sketch),
        "FourierFeatures": (
            FourierFeatures(Gaussian(1.0), sampling="structured", **seeded),
            RBFSampler(gamma=1.0, **seeded),
        ),
    }
    fitted = {one.fit(X) for pair in pairs.values() for one in pair}
    Z = np.asfortranarray(next(iter(pairs.values()))[0].transform(X).T)
    work: dict[Any, Callable[[], Any]] = {one: partial(one.transform, X) for one in fitted}
    work["update"] = partial(blas.ssyrk, 1.0, Z)
    turns = [
        {name: timeit.timeit(call, number=1) for name, call in work.items()}
        for _ in range(repeats + 1)
    ][1:]  # the first turn compiles
    seconds = {name: statistics.median(turn[name] for turn in turns) for name in work}
    maps = [
        {
            "map": name,
            "us_per_row": 1e6 * seconds[ours] / rows,
            "against": type(peer).__name__,
            "speed_ratio": seconds[peer] / seconds[ours],
            "share_of_update": seconds[ours] / seconds["update"],
        }
        for name, (ours, peer) in pairs.items()
    ]
    return {"maps": maps, "update_seconds_per_row": seconds["update"] / rows}

"""`craftmaps demo`: kernel classifiers on digits, and a kernel regressor on a table."""

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from craftmaps.cli import options
from craftmaps.plots import finish, new_figure

_SIZES = (64, 128, 256, 512, 1024)
_OUTPUT = Path("demo-output/digits.png")


@click.command()
@options.as_json
def demo(as_json: bool) -> None:
    """Compare the maps with an exact kernel machine on digits, and fit a model to a table.

    A plot of the errors is written to demo-output/digits.png if matplotlib is installed. The table
    describes made-up apartments with text, dates and missing values, and their rents.

    \b
    Example:
      craftmaps demo
    """
    if as_json:
        options.report({"models": list(_measured()), "table": _measured_table()[1]}, True)
        return
    click.echo("1,078 digits of 64 pixels for training, 719 for testing. Each map approximates")
    click.echo("the kernel of the SVM or a similar one, and feeds a one-pass classifier.\n")
    click.echo(f"{'model':<34}{'test error':>11}{'fit time':>11}{'size':>11}")
    rows = []
    for row in _measured():
        rows.append(row)
        size = "" if row["n_components"] is None else f", {row['n_components']} features"
        costs = f"{1000 * row['seconds']:>8.0f} ms{row['size_kb']:>8.0f} kB"
        click.echo(f"{row['model'] + size:<34}{row['error']:>10.2f}%{costs}")
    try:
        _plot(rows)
    except ImportError:
        click.echo("\nFor a plot, install matplotlib: pip install 'craftmaps[plots]'.")
    else:
        click.echo(f"\nThe plot is in {_OUTPUT}.")
    summary, errors = _measured_table()
    click.echo(
        "\nRents from a table with text and dates: 700 rows for training, 300 for testing.\n"
    )
    click.echo(summary)
    click.echo(f"\n{'model':<34}{'test RMSE':>11}")
    for name, error in errors.items():
        click.echo(f"{name:<34}{error:>11.2f}")


def _measured() -> Iterator[dict[str, Any]]:
    """Yield test error in percent, seconds to fit and size of each model, the exact SVM first."""
    from sklearn.base import clone
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import normalize
    from sklearn.svm import SVC
    from threadpoolctl import threadpool_limits

    from craftmaps import Composed, Gaussian, OnePassClassifier, Polynomial
    from craftmaps.cli.names import maps_for

    X, y = load_digits(return_X_y=True)
    data = train_test_split(normalize(X), y, test_size=0.4, random_state=0, stratify=y)
    kernels = (Composed(), Gaussian(gamma="median"), Polynomial(degree=5))
    maps = {name: one for kernel in kernels for name, one in maps_for(kernel).items()}
    models: list[tuple[str, int | None, Any]] = [
        ("exact kernel SVM", None, SVC(kernel="poly", degree=5, gamma=1, coef0=1, C=10)),
        ("linear ridge, no map", None, OnePassClassifier()),
    ]
    for n_components in _SIZES:
        for name, feature_map in maps.items():
            sized = clone(feature_map).set_params(n_components=n_components, random_state=0)
            models.append((name, n_components, OnePassClassifier(sized)))
    for name, size, model in models:
        with threadpool_limits(1):  # one thread, as in SVC
            if size in (None, _SIZES[0]):
                clone(model).fit(data[0], data[2])  # compiles loops, so that it is not timed
            start = time.perf_counter()
            model.fit(data[0], data[2])
            seconds = time.perf_counter() - start
        error = 100 * (1 - model.score(data[1], data[3]))
        light = model.for_prediction() if hasattr(model, "for_prediction") else model
        costs = {"seconds": seconds, "size_kb": len(pickle.dumps(light)) / 1024}
        yield {"model": name, "n_components": size, "error": error} | costs


def _measured_table() -> tuple[str, dict[str, float]]:
    """Return a summary of the model of the table, and the test errors of three models."""
    import numpy as np

    from craftmaps import KernelRegressor
    from craftmaps.cli.demo_table import flats

    (train, y_train), (test, y_test) = flats(700, seed=0), flats(300, seed=1)
    kernel = KernelRegressor(budget=512, random_state=0).fit(train, y_train)
    predicted = {
        "the mean rent": np.full(len(y_test), y_train.mean()),
        "KernelRegressor, no map": KernelRegressor(None).fit(train, y_train).predict(test),
        "KernelRegressor": kernel.predict(test),
    }
    errors = {name: float(np.sqrt(np.mean((y_test - one) ** 2))) for name, one in predicted.items()}
    return kernel.summary(), errors


def _plot(rows: list[dict[str, Any]]) -> None:
    """Plot test error against the number of features."""
    figure, axes = new_figure(8.5, 4.2)
    exact = [row for row in rows if row["n_components"] is None]
    for row, style in zip(exact, ("-", "--"), strict=True):
        axes.axhline(row["error"], color="0.4", linestyle=style, label=row["model"])
    for name in dict.fromkeys(row["model"] for row in rows if row["n_components"]):
        errors = [row["error"] for row in rows if row["model"] == name]
        axes.plot(_SIZES, errors, marker="o", markersize=4, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(_SIZES, [str(size) for size in _SIZES])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("features (output columns)")
    axes.set_ylabel("test error, %")
    axes.set_title("Digits: a linear learner on random features against an exact kernel SVM")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    _OUTPUT.parent.mkdir(exist_ok=True)
    finish(figure, _OUTPUT)


if __name__ == "__main__":
    demo()

"""`craftmaps evaluate`: how good a model is on rows whose targets are known."""

from typing import Any

import click

from craftmaps.cli import options


@click.command()
@options.model
@options.data
@options.target
@options.reading
@options.as_json
def evaluate(
    model: str, data: tuple[str, ...], target: str | None, as_json: bool, **reading: Any
) -> None:
    """Compare predictions with the targets of files, block by block.

    \b
    Example:
      craftmaps evaluate model.craft test.csv --target class
    """
    import numpy as np

    from craftmaps.cli.rows import learner_of, open_rows

    learner, names = learner_of(model)
    n_targets = 1 if hasattr(learner, "classes_") else len(np.atleast_1d(learner.intercept_))
    if n_targets > 1:
        raise click.UsageError(
            f"{model} predicts {n_targets} targets, and evaluate takes models of one."
        )
    rows = open_rows(data, target, names=names, width=learner.n_features_in_, **reading)
    judge = _classified if hasattr(learner, "classes_") else _regressed
    options.report(judge(learner, rows), as_json)


def _classified(learner: Any, rows: Any) -> dict[str, Any]:
    import numpy as np

    n_rows = wrong = unknown = 0
    loss = 0.0
    classes = learner.classes_
    if all(isinstance(label, str) for label in classes.tolist()):
        classes = classes.astype(str)  # those of pandas are objects
    for X, y in rows:
        y = _one_column(y)
        if (y.dtype.kind == "U") != (classes.dtype.kind == "U"):
            raise ValueError(
                f"the target holds {y.dtype}, and the classes of the model are "
                f"{classes[:3].tolist()} ...; name another column with --target."
            )
        probabilities = learner.predict_proba(X)
        n_rows += len(y)
        wrong += int(np.sum(classes[probabilities.argmax(axis=1)] != y))
        place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        known = classes[place] == y
        unknown += int(np.sum(~known))
        loss -= float(np.log(np.maximum(probabilities[known, place[known]], 1e-300)).sum())
    _some(n_rows)
    return {
        "rows": n_rows,
        "error": wrong / n_rows,
        "accuracy": 1 - wrong / n_rows,
        "log_loss": None if unknown else loss / n_rows,
        "rows_of_unknown_classes": unknown,
    }


def _regressed(learner: Any, rows: Any) -> dict[str, Any]:
    import numpy as np

    n_rows, absolute, squared, mean, spread = 0, 0.0, 0.0, 0.0, 0.0
    for X, y in rows:
        if y.dtype.kind not in "fiub":
            raise ValueError(f"the target holds {y.dtype}, and a regressor predicts numbers.")
        y = _one_column(y).astype(np.float64)
        residuals = learner.predict(X).reshape(len(y)) - y
        absolute += float(np.abs(residuals).sum())
        squared += float(np.square(residuals).sum())
        shift = float(y.mean()) - mean  # sums of squares about the mean of all rows so far
        spread += float(np.square(y - y.mean()).sum())
        spread += shift**2 * n_rows * len(y) / (n_rows + len(y))
        mean += shift * len(y) / (n_rows + len(y))
        n_rows += len(y)
    _some(n_rows)
    return {
        "rows": n_rows,
        "rmse": (squared / n_rows) ** 0.5,
        "mean_absolute_error": absolute / n_rows,
        "r2": 1 - squared / spread if spread else None,
    }


def _one_column(y: Any) -> Any:
    if y.size != len(y):
        raise ValueError(f"the target has {y[0].size} columns, and the model predicts one.")
    return y.reshape(len(y))


def _some(n_rows: int) -> None:
    if not n_rows:
        raise ValueError("there are no rows in these files.")

"""`craftmaps evaluate`: measure a model on rows with known targets."""

from typing import Any

import click

from craftmaps.cli import options
from craftmaps.plots import figure_class

_MAX_SHOWN_CLASSES = 20  # classes in a confusion table
_MAX_KEPT_SCORES = 50_000_000  # rows times classes, for the area under the curve


@click.command()
@options.model
@options.data
@options.target
@click.option("--plot", type=click.Path(), help="A .png file of calibration and errors.")
@options.reading
@options.as_json
def evaluate(
    model: str,
    data: tuple[str, ...],
    target: str | None,
    plot: str | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Compare predictions with the targets of files, block by block.

    Each measure has a 95% confidence interval. The AUC of several classes is the mean over the
    classes, each against all others.

    \b
    Example:
      craftmaps evaluate model.craft test.csv --target class
    """
    if plot is not None:
        options.check_output(plot, (".png", ".svg", ".pdf"), "--plot")
        figure_class()  # raises an error before the work if there is none
    import numpy as np

    from craftmaps.cli.rows import model_of, model_rows

    opened = model_of(model)
    learner = opened.learner
    n_targets = 1 if hasattr(learner, "classes_") else len(np.atleast_1d(learner.intercept_))
    if n_targets > 1:
        raise click.UsageError(
            f"{model} predicts {n_targets} targets, but evaluate takes models with one target."
        )
    options.check_target(target, data, reading["format"])
    rows = model_rows(data, opened, target, **reading)
    if hasattr(learner, "classes_"):
        facts, drawn = _classified(learner, rows)
    else:
        facts, drawn = _regressed(learner, rows)
    if plot is not None:
        from craftmaps.cli.evaluation_plot import save

        save(plot, drawn)
        facts["plot"] = plot
    confusion = facts.pop("confusion", None)
    if as_json:
        options.report(facts | ({} if confusion is None else {"confusion": confusion}), True)
        return
    options.report(_told(facts), False)
    if confusion is not None and len(confusion["classes"]) <= _MAX_SHOWN_CLASSES:
        click.echo("\nrows of each class by what was predicted:")
        labels = [str(label) for label in confusion["classes"]]
        lines = zip(labels, confusion["counts"], strict=True)
        options.table(
            [{"class": name, **dict(zip(labels, row, strict=True))} for name, row in lines]
        )


def _classified(learner: Any, rows: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the measures of a classifier, and the data for a plot."""
    import numpy as np

    from craftmaps.cli import measures

    classes = learner.classes_
    if all(isinstance(label, str) for label in classes.tolist()):
        classes = classes.astype(str)  # classes from pandas are objects
    places, losses, predictions, every_score = [], [], [], []
    n_scores = 0
    for X, y in rows:
        y = _one_column(y)
        if (y.dtype.kind == "U") != (classes.dtype.kind == "U"):
            raise ValueError(
                f"the target holds {y.dtype}, and the classes of the model are "
                f"{classes[:3].tolist()} ...; name another column with --target."
            )
        scores = learner.predict_proba(X)
        place = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        place = np.where(classes[place] == y, place, -1)  # -1 is a class that was not in fit
        places.append(place)
        predictions.append(scores.argmax(axis=1))
        losses.append(-np.log(np.maximum(scores[np.arange(len(y)), place], 1e-300)))
        n_scores += scores.size
        if n_scores <= _MAX_KEPT_SCORES:
            every_score.append(scores.astype(np.float32))
    _some(places)
    place, predicted, loss = map(np.concatenate, (places, predictions, losses))
    known = place >= 0
    found: dict[str, Any] = {"error": measures.Measure(*measures.share(predicted != place))}
    found["log_loss"] = measures.mean(loss) if known.all() else None
    scores = np.concatenate(every_score) if n_scores <= _MAX_KEPT_SCORES else None
    found["auc"] = None
    if scores is not None and known.any():
        found["auc"] = measures.area_under_curve(scores[known], place[known])
    counts = measures.confusion(place[known], predicted[known], len(classes))
    method = "95%, Wilson's for the error, otherwise normal"
    facts: dict[str, Any] = {"rows": len(place)} | _values(found, method)
    facts["accuracy"] = 1 - facts["error"]
    facts["rows_of_unknown_classes"] = int(np.sum(~known))
    facts["confusion"] = {"classes": classes.tolist(), "counts": counts.tolist()}
    drawn = {"classes": classes, "confusion": counts, "y": place, "predicted": predicted}
    return facts, drawn | {"scores": scores}


def _regressed(learner: Any, rows: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the measures of a regressor, and the data for a plot."""
    import numpy as np

    from craftmaps.cli import measures

    targets, predictions = [], []
    for X, y in rows:
        if y.dtype.kind not in "fiub":
            raise ValueError(f"the target holds {y.dtype}, and a regressor predicts numbers.")
        targets.append(_one_column(y).astype(np.float64))
        predictions.append(learner.predict(X).reshape(len(y)).astype(np.float64))
    _some(targets)
    y, predicted = np.concatenate(targets), np.concatenate(predictions)
    residuals = predicted - y
    found = {
        "rmse": measures.root_mean_square(residuals),
        "mean_absolute_error": measures.mean(np.abs(residuals)),
        "r2": measures.determination(residuals, y),
    }
    return {"rows": len(y)} | _values(found, "95%, normal"), {"y": y, "predicted": predicted}


def _values(found: dict[str, Any], method: str) -> dict[str, Any]:
    """Return measures as numbers, and their intervals."""
    values = {name: None if one is None else one.value for name, one in found.items()}
    intervals = {name: one.interval for name, one in found.items() if one and one.interval}
    return values | {"intervals": intervals, "interval_method": method}


def _told(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the measures as text, each with its interval."""
    intervals = facts["intervals"]
    words = {name: value for name, value in facts.items() if name != "intervals"}
    for name, (low, high) in intervals.items():
        words[name] = f"{facts[name]:.4g} ({low:.4g} to {high:.4g})"
    return words


def _one_column(y: Any) -> Any:
    if y.size != len(y):
        raise ValueError(f"the target has {y[0].size} columns, and the model predicts one.")
    return y.reshape(len(y))


def _some(blocks: list[Any]) -> None:
    if not blocks:
        raise ValueError("there are no rows in these files.")

"""`craftmaps fit`: files in, a model file out."""

import time
from pathlib import Path
from typing import Any

import click

from craftmaps.cli import options
from craftmaps.cli.names import Name, maps

_SEARCH_ROWS = 26_000  # that --auto searches with


@click.command()
@options.data
@options.target
@options.weight
@options.kernel
@click.option("--map", "map_name", type=Name(maps), help="Default: by the kernel.")
@click.option("--metric", is_flag=True, help="Learn first which columns matter, see MetricMap.")
@click.option("--images", is_flag=True, help="Rows are square gray images, see ImageMap.")
@click.option("--auto", is_flag=True, help="Search for scaling, kernel, map and alpha.")
@click.option("--components", type=click.IntRange(1), help="Number of features; default: 1024.")
@click.option("--budget", help="For --auto instead of --components: 60s, 5min, 200MB, 1ms/row.")
@click.option(
    "--map-rows",
    type=click.IntRange(1),
    help="Rows that the map is fitted on, drawn from all; default: 10000.",
)
@click.option("--alpha", type=float, help="Penalty; default: by rows left out.")
@click.option("--classify/--regress", default=None, help="Default: guessed from the target.")
@options.scaling
@click.option("--checkpoint", type=click.Path(), metavar="FOLDER", help="From which to go on.")
@click.option(
    "--checkpoint-every", default=60.0, show_default=True, help="Seconds between checkpoints."
)
@click.option("--every", type=float, hidden=True)  # the old name of --checkpoint-every
@click.option("--seed", default=0, show_default=True)
@options.reading
@options.output("The model file.")
@options.as_json
def fit(data: tuple[str, ...], output: str, as_json: bool, **given: Any) -> None:
    """Learn a model from files of any size.

    DATA are CSV, Parquet, .npy, .npz or svmlight files, folders or patterns. They are read three
    times: to count rows and classes, to draw a sample for the map, and to learn.

    \b
    Example:
      craftmaps fit train.csv --target class --kernel poly --degree 3 -o model.craft
    """
    every = given.pop("every")
    if every is not None:
        given["checkpoint_every"] = every
    _check(output, **given)
    start = time.perf_counter()
    with options.stoppable(lambda: _way_on(given["checkpoint"])):
        facts = _fit(data, output, **given)
    facts |= {"seconds": time.perf_counter() - start, "peak_memory_MB": _peak_memory()}
    options.report(facts | {"output": output, "bytes": Path(output).stat().st_size}, as_json)


def _check(output: str, auto: bool, budget: str | None, **given: Any) -> None:
    """Complain about options that do not go together, before anything is read."""
    chosen = ("kernel", "degree", "gamma", "coef0", "map_name", "scale", "unit_norm")
    for name in chosen:
        if auto and given[name] is not None:
            option = name.removesuffix("_name").replace("_", "-")
            raise click.UsageError(f"--auto chooses what --{option} gives: leave one of them out.")
    if auto and given["metric"]:
        raise click.UsageError("--auto searches without a metric: leave --auto or --metric out.")
    for name in ("scale", "unit_norm"):
        if given["images"] and given[name] is not None:
            option = name.replace("_", "-")
            raise click.UsageError(
                f"--images scales rows itself, to length 1: leave --images or --{option} out."
            )
    if not given["checkpoint_every"] >= 0:  # nor NaN
        seconds = given["checkpoint_every"]
        raise click.UsageError(f"--checkpoint-every must be at least 0 seconds, got {seconds}.")
    if budget is not None and not auto:
        raise click.UsageError("--budget is for a search: add --auto, or give --components.")
    if budget is not None and given["components"] is not None:
        raise click.UsageError("--budget and --components both give the size: leave one out.")
    if budget is not None and given["checkpoint"] is not None:
        raise click.UsageError(
            "--budget depends on the speed of the moment, so a checkpoint might not fit the next "
            "search; give --components."
        )
    options.check_output(output)
    if given["checkpoint"] is not None:
        Path(given["checkpoint"]).mkdir(parents=True, exist_ok=True)
        options.check_folder(Path(given["checkpoint"]))


def _fit(data: tuple[str, ...], output: str, **given: Any) -> dict[str, Any]:
    import numpy as np

    from craftmaps import OnePassClassifier, OnePassRegressor
    from craftmaps.cli.rows import open_rows, survey
    from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS

    reading = {name: given[name] for name in ("format", "columns", "no_header", "skip_bad_rows")}
    rows = open_rows(data, given["target"], weight=given["weight"], **reading)
    map_rows = given["map_rows"] or DEFAULT_MAP_ROWS
    seen = survey(rows, _SEARCH_ROWS if given["auto"] else map_rows, given["classify"])
    rows.n_rows = seen.n_rows
    feature_map, alpha, facts = _chosen(seen, **given)
    keeping = {name: given[name] for name in ("checkpoint", "checkpoint_every")}
    learner: Any
    if seen.classes is None:
        learner = OnePassRegressor(feature_map, alpha=alpha, map_rows=map_rows)
        learner.fit_blocks(rows, **keeping)
    else:
        learner = OnePassClassifier(feature_map, alpha=alpha, map_rows=map_rows)
        learner.fit_blocks(rows, seen.classes, **keeping)
    facts |= _errors(learner, seen)
    if rows.names is not None:
        learner.feature_names_in_ = np.array(rows.names, dtype=object)
    learner.save(output)
    return facts


def _chosen(seen: Any, **given: Any) -> tuple[Any, Any, dict[str, Any]]:
    """The map, unfitted, alpha, and facts about both."""
    from craftmaps.cli import choice

    advice = None
    if given["auto"]:
        budget = given["budget"] or given["components"] or 1024
        feature_map, alpha, advice = choice.searched(
            seen, budget, given["seed"], images=given["images"]
        )
    else:
        options = {name: given[name] for name in ("degree", "gamma", "coef0")}
        kernel = choice.kernel_of(given["kernel"], **options)
        size = given["components"] or 1024
        inner = choice.named_map(kernel, given["map_name"], size, seen, given["seed"])
        if given["images"]:
            feature_map = choice.of_images(inner, seen.X, metric=given["metric"])
        else:
            scaling = given["scale"], given["unit_norm"]
            feature_map = choice.scaled(inner, *scaling, seen.X, metric=given["metric"])
        alpha = "auto"
    facts = {
        "rows": seen.n_rows,
        "columns": seen.X.shape[1],
        "task": "regression" if seen.classes is None else "classification",
        "classes": None if seen.classes is None else len(seen.classes),
        "map": " ".join(repr(feature_map).split()),
        "expected_error": None if advice is None else advice.best.error,
    }
    return feature_map, alpha if given["alpha"] is None else given["alpha"], facts


def _errors(learner: Any, seen: Any) -> dict[str, Any]:
    """On the sample and, from the sums of the pass, on rows left out."""
    import numpy as np

    predicted = learner.predict(seen.X)
    facts: dict[str, Any] = {"alpha": float(learner.alpha_)}
    if seen.classes is None:
        facts["training_rmse"] = float(np.sqrt(np.mean((predicted - seen.y) ** 2)))
    else:
        scores, labels, _ = learner.leave_one_out()
        facts["training_error"] = float(np.mean(predicted != seen.y))
        facts["leave_one_out_error"] = float(np.mean(scores.argmax(axis=1) != labels))
    if learner.scores_ is not None:
        best = float(learner.scores_[learner.alphas_ == learner.alpha_].mean())
        few = learner.solution_.left_out
        if seen.classes is None:
            facts["leave_one_out_rmse" if few else "gcv_rmse"] = float(np.sqrt(best))
        elif few:
            facts["leave_one_out_brier_score"] = best
        else:
            facts["gcv_rmse_of_codes"] = float(np.sqrt(best))
    return facts


def _way_on(checkpoint: str | None) -> str:
    if checkpoint is None:
        return "stopped; nothing was written. With --checkpoint FOLDER a fit can be resumed."
    if not list(Path(checkpoint).glob("checkpoint-*.craft")):
        return "stopped before the first checkpoint; run the same command again."
    return f"stopped; the checkpoint in {checkpoint} is kept: run the same command again to resume."


def _peak_memory() -> float | None:
    """In MB, where the system tells it."""
    import sys

    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3

"""`craftmaps fit`: learn from files, and write a model file."""

import time
from pathlib import Path
from typing import Any

import click

from craftmaps.cli import options
from craftmaps.cli.names import Name, losses, maps


@click.command()
@options.data
@options.target
@options.weight
@options.kernel
@click.option(
    "--map", "map_name", type=Name(maps), help="The feature map; default: chosen for the kernel."
)
@click.option("--metric", is_flag=True, help="First learn which columns matter (see MetricMap).")
@click.option("--images", is_flag=True, help="Treat rows as square gray images (see ImageMap).")
@click.option(
    "--auto",
    is_flag=True,
    help="Search for the scaling, kernel and map. This is the default unless one is given.",
)
@click.option(
    "--components",
    type=click.IntRange(1),
    help="Number of features; default: 1024, or after a search one per row, up to 4096.",
)
@click.option(
    "--budget", help="Limit of a search instead of --components: 60s, 5min, 200MB or 1ms/row."
)
@click.option(
    "--loss",
    type=Name(losses),
    help="The loss; default: chosen for classes, squared for numbers.",
)
@click.option(
    "--map-rows",
    type=click.IntRange(1),
    help="Number of random rows on which the map is fitted; default: 10000.",
)
@click.option("--alpha", type=float, help="Ridge penalty; default: chosen on left-out rows.")
@click.option("--classify/--regress", default=None, help="Default: guessed from the target.")
@options.scaling
@click.option(
    "--checkpoint", type=click.Path(), metavar="FOLDER", help="Save progress here, and resume."
)
@click.option(
    "--checkpoint-every", default=60.0, show_default=True, help="Seconds between checkpoints."
)
@click.option("--every", type=float, hidden=True)  # old name of --checkpoint-every
@click.option("--seed", default=0, show_default=True)
@options.reading
@click.option("--drop", multiple=True, metavar="A,B,...", help="Columns to leave out.")
@click.option(
    "--as",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    help="What a column is: number, category, text, date, or dayfirst for dates such as 05/06/2024 "
    "with the day first; default: by its values.",
)
@options.output("The model file.")
@options.as_json
def fit(data: tuple[str, ...], output: str, as_json: bool, **given: Any) -> None:
    """Learn a model from files of any size.

    DATA are CSV, Parquet, .npy, .npz or svmlight files, folders or patterns. Columns may hold
    numbers, text, dates and missing values; the report says how each column was encoded.

    \b
    Example:
      craftmaps fit train.csv --target class -o model.craft
    """
    every = given.pop("every")
    if every is not None:
        given["checkpoint_every"] = every
    _check(data, output, **given)
    start = time.perf_counter()
    with options.stoppable(lambda: _way_on(given["checkpoint"])):
        learner, facts = _fit(data, output, **given)
    facts |= {"seconds": time.perf_counter() - start, "peak_memory_MB": _peak_memory()}
    facts |= {"output": output, "bytes": Path(output).stat().st_size}
    if as_json:
        options.report(facts | options.encoding(learner), True)
        return
    click.echo(learner.summary())
    told = ("rows", "task", "classes", "loss", "map", "alpha", "expected_error")
    options.report({name: value for name, value in facts.items() if name not in told}, False)


def _check(
    data: tuple[str, ...], output: str, auto: bool, budget: str | None, **given: Any
) -> None:
    """Raise an error for options that exclude each other, before anything is read."""
    named = [name for name in options.PARTS_OF_A_MAP if given[name] is not None]
    for name in named:
        option = name.removesuffix("_name").replace("_", "-")
        if auto:
            raise click.UsageError(f"--auto chooses what --{option} gives: leave one of them out.")
        if given["images"] and name in ("scale", "unit_norm"):
            raise click.UsageError(
                f"--images scales rows itself, to length 1: leave --images or --{option} out."
            )
        if budget is not None:
            raise click.UsageError(f"--budget limits a search: leave --{option} or --budget out.")
    if auto and given["metric"]:
        raise click.UsageError("--auto searches without a metric: leave --auto or --metric out.")
    if not given["checkpoint_every"] >= 0:  # also true for NaN
        seconds = given["checkpoint_every"]
        raise click.UsageError(f"--checkpoint-every must be at least 0 seconds, got {seconds}.")
    if budget is not None and given["components"] is not None:
        raise click.UsageError("--budget and --components both give the size: leave one out.")
    if budget is not None and given["checkpoint"] is not None:
        raise click.UsageError(
            "the size found with --budget depends on the current speed, so a checkpoint might not "
            "fit the next search; give --components."
        )
    options.check_output(output, data=data)
    if given["checkpoint"] is not None:
        Path(given["checkpoint"]).mkdir(parents=True, exist_ok=True)
        options.check_folder(Path(given["checkpoint"]))


def _fit(data: tuple[str, ...], output: str, **given: Any) -> tuple[Any, dict[str, Any]]:
    """Fit and save a learner; return it with facts for the report."""
    import numpy as np

    from craftmaps.cli import choice
    from craftmaps.cli.rows import open_rows, surveyed
    from craftmaps.learn.map_rows import DEFAULT_MAP_ROWS

    reading = {name: given[name] for name in options.READING}
    reading |= {"drop": options.listed(given["drop"]), "kinds": _kinds(given["kinds"])}
    given["map_rows"] = given["map_rows"] or DEFAULT_MAP_ROWS

    def opened(table: bool | str) -> Any:
        rows = open_rows(data, given["target"], weight=given["weight"], table=table, **reading)
        _check_columns(rows.schema)
        return rows

    rows, seen = surveyed(
        opened,
        choice.SEARCH_ROWS if given["images"] and given["auto"] else given["map_rows"],
        given["classify"],
    )
    rows.n_rows = seen.n_rows
    learner = choice.learner(seen, **(given | {"kinds": reading["kinds"]}))
    keeping = {name: given[name] for name in ("checkpoint", "checkpoint_every")}
    if seen.classes is None:
        learner.fit_blocks(rows, **keeping)
    else:
        learner.fit_blocks(rows, seen.classes, **keeping)
    facts = _facts(learner, seen) | _errors(learner, seen)
    if rows.names is not None and rows.schema is None:
        learner.feature_names_in_ = np.array(rows.names, dtype=object)
    learner.save(output)
    return learner, facts


def _facts(learner: Any, seen: Any) -> dict[str, Any]:
    """Return facts for the report: the rows, the loss and the map."""
    report = getattr(learner, "report_", None)
    chosen = getattr(learner.feature_map_, "feature_map_", learner.feature_map_)
    feature_map = learner.feature_map_ if report is None else chosen
    return {
        "rows": seen.n_rows,
        "columns": seen.X.shape[1],
        "task": "regression" if seen.classes is None else "classification",
        "classes": None if seen.classes is None else len(seen.classes),
        "loss": learner.loss_ or learner.loss,
        "map": " ".join(repr(feature_map).split()),
        "expected_error": None if report is None else float(report.error),
    }


def _kinds(given: tuple[str, ...]) -> dict[str, str]:
    """Return the kinds of columns by name, from words such as zip=category."""
    from craftmaps.tables.kinds import KINDS

    kinds = {}
    for word in options.listed(given):
        name, _, kind = word.rpartition("=")
        if not name or kind not in KINDS:
            raise click.UsageError(
                f"--as must be COLUMN=KIND, and a KIND is {', '.join(KINDS)}; got {word!r}."
            )
        kinds[name] = kind
    return kinds


def _check_columns(schema: Any) -> None:
    """Raise an error for a column of a table without numbers, text or dates."""
    if schema is None:
        return
    from pyarrow import types

    checks = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    for field in schema:
        if any(check(field.type) for check in checks):
            raise click.UsageError(
                f"column {field.name!r} holds {field.type}, which cannot be encoded: leave it "
                f"out with --drop {options.shell_word(field.name)}."
            )


def _errors(learner: Any, seen: Any) -> dict[str, Any]:
    """Return the errors on the sample and, from the sums of the pass, on rows left out."""
    import numpy as np

    predicted = learner.predict(seen.X)
    facts: dict[str, Any] = {"alpha": float(learner.alpha_)}
    if seen.classes is None:
        facts["training_rmse"] = float(np.sqrt(np.mean((predicted - seen.y) ** 2)))
    else:
        facts["training_error"] = float(np.mean(predicted != seen.y))
    if (learner.loss_ or learner.loss) != "squared":
        return facts | {"passes": learner.n_passes_}
    if seen.classes is not None:
        scores, labels, _ = learner.leave_one_out()
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
    """Return the peak memory in MB, or None if the system does not report it."""
    import sys

    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3

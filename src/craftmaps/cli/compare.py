"""`craftmaps compare`: compare maps on your own data."""

from dataclasses import asdict
from typing import Any

import click

from craftmaps.cli import options


@click.command()
@options.data
@options.target
@options.kernel
@click.option("--components", default="128,512", show_default=True, help="Sizes to compare.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1))
@click.option(
    "--rows",
    "n_rows",
    default=10_000,
    show_default=True,
    type=click.IntRange(16),
    help="Number of rows to draw from the data.",
)
@click.option("--classify/--regress", default=None, help="Default: guessed from the target.")
@options.scaling
@options.reading
@options.as_json
def compare(data: tuple[str, ...], target: str | None, as_json: bool, **given: Any) -> None:
    """Measure error, time, memory and size of every map on a sample of rows.

    Without --kernel, maps for a polynomial and for a Gaussian kernel are compared. By default,
    columns are standardized and rows are scaled to length 1; --scale and --unit-norm change this.

    \b
    Example:
      craftmaps compare train.csv --target class
    """
    sizes = _sizes(given["components"])
    from craftmaps.cli.rows import open_rows, surveyed
    from craftmaps.diagnose import compare as measure

    reading = {name: given[name] for name in options.READING}
    _, seen = surveyed(
        lambda table: open_rows(data, target, table=table, **reading),
        given["n_rows"],
        given["classify"],
    )
    X = _scaled(_encoded(seen.X), given["scale"], given["unit_norm"])
    kernel = {name: given[name] for name in ("kernel", "degree", "gamma", "coef0")}
    task = "regression" if seen.classes is None else "classification"
    measured = measure(X, seen.y, _maps(**kernel), sizes, given["seeds"], task=task)
    if as_json:
        facts = {"rows": len(seen.y), "task": task, "seeds": given["seeds"]}
        options.report(facts | {"maps": [_plain(asdict(row)) for row in measured.rows]}, True)
        return
    click.echo(str(measured))


def _maps(kernel: str | None, **parameters: Any) -> dict[str, Any]:
    """Return one map of each class that takes the kernel, with default parameters."""
    from craftmaps.cli.choice import kernel_of
    from craftmaps.cli.names import maps_for

    kernels = [kernel_of(kernel, **parameters)]
    if kernel is None:
        kernels.append(kernel_of("rbf"))
    maps: dict[str, Any] = {}
    for one in kernels:
        for name, feature_map in maps_for(one).items():
            maps[name if name not in maps else f"{name}, {type(one).__name__}"] = feature_map
    return maps


def _encoded(X: Any) -> Any:
    """Encode the rows of a table as numbers."""
    from craftmaps import TableEncoder
    from craftmaps.tables.table import is_table

    return TableEncoder().fit_transform(X) if is_table(X) else X


def _scaled(X: Any, scale: str | None, unit_norm: bool | None) -> Any:
    """Scale the rows for the maps."""
    from craftmaps.cli.choice import standard_scaling
    from craftmaps.maps.scaled import scaled_rows

    return scaled_rows(X, scale or standard_scaling(X), unit_norm is not False)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(size) for size in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise click.UsageError(f"--components must be sizes such as 128,512, got {text!r}.")
    return sizes


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Convert NumPy's numbers to Python's, and NaN, which JSON does not have, to None."""
    plain = {name: value if isinstance(value, str) else float(value) for name, value in row.items()}
    plain["n_components"] = int(row["n_components"])
    return {name: None if value != value else value for name, value in plain.items()}

"""`craftmaps info`: describe a model file."""

from pathlib import Path
from typing import Any

import click

from craftmaps.cli import options


@click.command()
@options.model
@options.as_json
def info(model: str, as_json: bool) -> None:
    """Describe a model file. Opening it runs no code.

    \b
    Example:
      craftmaps info model.craft
    """
    from craftmaps import load

    fitted = load(model)
    feature_map = getattr(fitted, "feature_map_", fitted)
    feature_map = getattr(feature_map, "estimator", feature_map)  # if it is frozen
    names = getattr(fitted, "feature_names_in_", None)
    facts: dict[str, Any] = {
        "kind": type(fitted).__name__,
        "bytes": Path(model).stat().st_size,
        "columns": int(fitted.n_features_in_),
        "names": None if names is None else names.tolist(),
        "map": " ".join(repr(feature_map).split()),
    }
    if hasattr(fitted, "predict"):
        facts |= {
            "features": int(fitted.coef_.shape[-1]),
            "classes": fitted.classes_.tolist() if hasattr(fitted, "classes_") else None,
            "alpha": _plain(fitted.alpha_),
            "rows_learned": int(fitted.n_samples_seen_),
        }
    if as_json:
        facts |= options.encoding(fitted)
    options.report(facts, as_json)
    if hasattr(fitted, "summary") and not as_json:
        click.echo(f"\n{fitted.summary()}")


def _plain(alpha: Any) -> Any:
    return alpha.tolist() if hasattr(alpha, "tolist") else alpha

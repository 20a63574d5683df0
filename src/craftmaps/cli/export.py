"""`craftmaps export`: write an ONNX model, which runs without Python."""

from pathlib import Path
from typing import Any

import click

from craftmaps.cli import options


@click.command()
@options.model
@options.output("The ONNX file.")
@options.as_json
def export(model: str, output: str, as_json: bool) -> None:
    """Export a model to ONNX, with standard operators only.

    A model for arrays has one input X. A model for tables has one input for each column: text as
    strings, numbers as doubles with NaN for missing ones, dates as seconds since 1970.

    \b
    Example:
      craftmaps export model.craft -o model.onnx
    """
    options.check_output(output, (".onnx",))
    from craftmaps import export_onnx, load

    fitted = load(model)
    export_onnx(fitted, output)
    results = ["label", "probabilities"] if hasattr(fitted, "classes_") else ["variable"]
    facts = {
        "inputs": _inputs(fitted),
        "outputs": results if hasattr(fitted, "predict") else ["features"],
        "output": output,
        "bytes": Path(output).stat().st_size,
    }
    options.report(facts, as_json)


def _inputs(fitted: Any) -> list[str]:
    """Describe each input by its name, type and width."""
    encoder = getattr(fitted, "encoder_", None)
    if encoder is None or not encoder.columns_:
        return [f"X (float32, {fitted.n_features_in_} columns)"]
    return [f"{column.name} ({column.onnx_type})" for column in encoder.columns_]

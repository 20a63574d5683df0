"""`craftmaps export`: a model that runs without Python."""

from pathlib import Path

import click

from craftmaps.cli import options


@click.command()
@options.model
@options.output("The ONNX file.")
@options.as_json
def export(model: str, output: str, as_json: bool) -> None:
    """Write a model as ONNX, of standard operators only.

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
        "input": f"X, float32, {fitted.n_features_in_} columns",
        "outputs": results if hasattr(fitted, "predict") else ["features"],
        "output": output,
        "bytes": Path(output).stat().st_size,
    }
    options.report(facts, as_json)

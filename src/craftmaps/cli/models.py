"""Models that a command is given."""

import warnings
from typing import Any


def learner_of(path: str) -> Any:
    """The classifier or regressor in a model file."""
    from craftmaps import load

    # rows come as arrays of the model's own columns, in their order
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    model = load(path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which predicts nothing.")
    return model

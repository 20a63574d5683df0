"""A fitted kernel machine in a few lines of text."""

from typing import Any

import numpy as np


def summary_of(model: Any) -> str:
    """What a learner is, which features it uses, and how these were found."""
    solution, feature_map = model.solution_, model.feature_map_
    alpha = np.asarray(solution.alpha).ravel()
    kind = f"{len(model.classes_)} classes" if hasattr(model, "classes_") else "numbers"
    lines = [
        f"{type(model).__name__}: {kind} learned from {model.n_samples_seen_:,} rows",
        f"loss: {model.loss}, alpha {', '.join(f'{a:.3g}' for a in alpha[:3])}",
    ]
    if getattr(model, "encoder_", None) is not None:
        lines += ["columns:", *(f"  {line}" for line in model.encoder_.summary().splitlines())]
    report = getattr(feature_map, "report_", None)
    inner = getattr(feature_map, "feature_map_", None)
    if inner is not None and hasattr(feature_map, "report_"):  # an AutoMap
        kernel = " ".join(repr(feature_map.kernel_).split())
        lines.append(
            f"features: {feature_map._n_features_out} Nyström features of {kernel}; columns: "
            f"{inner.columns}{', rows of unit norm' * inner.unit_norm}"
        )
        if report is not None:
            lines += report.lines()
    else:
        lines.append(f"features: {' '.join(repr(feature_map).split())}")
    return "\n".join(lines)

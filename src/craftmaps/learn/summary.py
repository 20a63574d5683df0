"""A fitted kernel machine in a few lines of text."""

from typing import Any

import numpy as np

from craftmaps.search import AutoMap
from craftmaps.search.local_map import LocalMap


def summary_of(model: Any) -> str:
    """Describe a learner: what it is, which features it uses, and how they were found."""
    solution, feature_map = model.solution_, model.feature_map_
    alpha = np.asarray(solution.alpha).ravel()
    kind = f"{len(model.classes_)} classes" if hasattr(model, "classes_") else "numbers"
    lines = [
        f"{type(model).__name__}: {kind} learned from {model.n_samples_seen_:,} rows",
        f"loss: {model._loss_name}, alpha {', '.join(f'{a:.3g}' for a in alpha[:3])}",
    ]
    if getattr(model, "encoder_", None) is not None:
        lines += ["columns:", *(f"  {line}" for line in model.encoder_.summary().splitlines())]
    if isinstance(feature_map, AutoMap):
        report = model.report_
        kernel = repr(feature_map.kernel_) if report is None else report.kernel
        prepared = "too little to search with" if report is None else report.preparation
        if isinstance(feature_map, LocalMap):
            n_leaves = feature_map.machines_.tree_.n_leaves
            lines.append(f"exact kernel in each of {n_leaves} leaves: {kernel}; {prepared}")
        else:
            size = feature_map._n_features_out
            lines.append(f"features: {size} Nyström features of {kernel}; {prepared}")
        lines += [] if report is None else report.lines()
    else:
        lines.append(f"features: {' '.join(repr(feature_map).split())}")
    return "\n".join(lines)

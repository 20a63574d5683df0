"""Diagnostics of maps: errors, spectra, bounds, comparisons and advice."""

from craftmaps.diagnose import bounds
from craftmaps.diagnose.advice import Advice, recommend
from craftmaps.diagnose.compare import Comparison, compare
from craftmaps.diagnose.drift import Drift, anomaly_score, drift
from craftmaps.diagnose.errors import GramError, gram_error
from craftmaps.diagnose.expected import components_for, expected_error
from craftmaps.diagnose.spectrum import Scree, effective_rank, scree
from craftmaps.diagnose.weights import WeightHistogram, weight_histogram

__all__ = [
    "Advice",
    "Comparison",
    "Drift",
    "GramError",
    "Scree",
    "WeightHistogram",
    "anomaly_score",
    "bounds",
    "compare",
    "components_for",
    "drift",
    "effective_rank",
    "expected_error",
    "gram_error",
    "recommend",
    "scree",
    "weight_histogram",
]

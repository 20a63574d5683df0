"""How good a map is, and which one to use: errors, spectra, bounds, comparison, advice."""

from craftmaps.diagnose import bounds
from craftmaps.diagnose.compare import Comparison, compare
from craftmaps.diagnose.drift import Drift, anomaly_score, drift
from craftmaps.diagnose.errors import GramError, gram_error
from craftmaps.diagnose.expected import components_for, expected_error
from craftmaps.diagnose.recommend.advice import Advice
from craftmaps.diagnose.recommend.recommend import recommend
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

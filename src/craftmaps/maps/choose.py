"""Choose the best data-independent map for a kernel by variance formulas."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_array

from craftmaps.kernels import (
    Composed,
    DotProductKernel,
    Gaussian,
    Polynomial,
    ShiftInvariantKernel,
    any_kernel,
)
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.compositional import CompositionalMap
from craftmaps.maps.craft import CraftMap
from craftmaps.maps.fourier import FourierFeatures
from craftmaps.maps.parts.hadamard_products import padded_length
from craftmaps.maps.parts.hadamard_runs import SLICE
from craftmaps.maps.parts.radial import Radial
from craftmaps.maps.planning.craft_plan import CraftPlan, MaclaurinPlanner
from craftmaps.maps.planning.expected_errors import gaussian_fourier_error, tensor_sketch_error
from craftmaps.maps.tensor_sketch import TensorSketch

_SAMPLE_ROWS = 2048
_SEED = 20140621  # fixed, so that equal rows give equal maps
_MAX_ORTHOGONAL_COLUMNS = 256  # for more, structured blocks are much faster than a matrix
_MAX_QMC_COLUMNS = 1000  # for more, a low-discrepancy sequence is no better than random numbers

# Costs in nanoseconds on one core, rounded; only their ratios matter.
_MULTIPLY_ADD = 0.02  # one multiply-add in a matrix product
_ROTATION_STEP = 0.03  # one addition in a Hadamard transform
_FACTOR = 0.05  # one factor of a product of rotated entries
_RUN = 0.1  # overhead of each factor in a run of products
_EXACT_COLUMN = 4.0
_SINE = 0.4  # one sine or cosine
_SCALED = 0.5  # multiplying one feature by the factor of its row
_CENTERED = 2.0  # centering one entry of a row
_NON_ZERO = 1.0  # adding one entry of a sparse row to a sketch
_FFT_STEP = 0.3  # one of the E log2(E) steps of a transform of length E


@dataclass(frozen=True)
class Candidate:
    """An unfitted map with its expected error and its nanoseconds per row."""

    feature_map: FeatureMap
    error: float
    nanoseconds: float

    def cost(self) -> float:
        """Variance times time, including the time of a ridge learner, which grows as E^2.

        The variance of a map falls as 1/E, so the cost hardly depends on the number of features.
        """
        learner = _MULTIPLY_ADD * self.feature_map.n_components**2 / 2
        return self.error**2 * (self.nanoseconds + learner)


def feature_map(
    kernel: Any, X: Any, n_components: int = 1024, *, random_state: Any = None
) -> FeatureMap:
    """Choose the best data-independent map for a kernel and rows like X; it is not fitted yet.

    Maps are compared by their expected variance on a sample of the rows, multiplied by the time per
    row, which includes the time of a ridge learner:

    ============================  ==========================================================
    kernel                        compared
    ============================  ==========================================================
    f(<x, y>), dense rows         `CraftMap` alone
    `Polynomial`, sparse rows     `CraftMap` and `TensorSketch`
    `Gaussian`                    `CraftMap` and `FourierFeatures`
    other k(x - y)                `FourierFeatures` alone
    `Composed`                    `CompositionalMap` alone
    ============================  ==========================================================

    Fourier features use the most accurate sampling that the spectrum of the kernel allows.
    `Nystroem` accepts every kernel, and often needs fewer features because it learns from the rows.

    Parameters
    ----------
    kernel : kernel, "poly", "exp", "rbf", "laplacian" or "cauchy"
        The kernel to approximate.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows in the form in which the map will get them.
    n_components : int, default=1024
        Number of output columns.
    random_state : int, RandomState instance, Generator or None, default=None
        Random state of the map. The choice itself is not random.

    Returns
    -------
    feature_map : CraftMap, FourierFeatures, TensorSketch or CompositionalMap

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Gaussian, feature_map
    >>> X = np.random.default_rng(0).normal(size=(500, 8))
    >>> feature_map(Gaussian(gamma=0.05), X, 256)
    CraftMap(kernel=Gaussian(gamma=0.05), n_components=256)
    >>> feature_map(Gaussian(gamma=2.0), X, 256)
    FourierFeatures(kernel=Gaussian(gamma=2.0), n_components=256,
                    sampling='orthogonal')
    """
    kernel = any_kernel(kernel)
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    options = {"n_components": n_components, "random_state": random_state}
    if isinstance(kernel, Composed):
        return CompositionalMap(kernel, **options)
    if isinstance(kernel, DotProductKernel):
        craft = CraftMap(kernel, **options)
        if not (isinstance(kernel, Polynomial) and sparse.issparse(X)):
            return craft
        return _best(_sparse_candidates(kernel, X, craft, TensorSketch(kernel, **options)))
    if isinstance(kernel, ShiftInvariantKernel):
        sampling = best_sampling(kernel, X.shape[1])
        fourier = FourierFeatures(kernel, sampling=sampling, **options)
        if not isinstance(kernel, Gaussian):
            return fourier
        craft = CraftMap(kernel, **options)
        return _best(gaussian_candidates(kernel.resolved(X), X, craft, fourier))
    raise ValueError(f"{kernel!r} has no data-independent map; use Nystroem instead.")


def best_sampling(kernel: ShiftInvariantKernel, n_columns: int) -> str:
    """Return the most accurate `sampling` that the spectrum of the kernel allows."""
    unit, rng = clone(kernel).set_params(gamma=1.0), np.random.default_rng(_SEED)
    if n_columns > _MAX_ORTHOGONAL_COLUMNS and unit.mixture(1, rng) is not None:
        return "structured"
    if unit.lengths(1, n_columns, rng) is not None:
        return "orthogonal"
    has_quantiles = unit.n_uniform(n_columns) is not None
    return "qmc" if has_quantiles and n_columns <= _MAX_QMC_COLUMNS else "iid"


def gaussian_candidates(
    kernel: Gaussian, X: Any, craft: CraftMap, fourier: FourierFeatures
) -> tuple[Candidate, Candidate]:
    """Return both maps for a Gaussian kernel whose gamma is a number."""
    rng = np.random.default_rng(_SEED)
    radial = Radial.draw(X, float(kernel.gamma))
    rows, _ = radial.prepared(_sample(X, rng), np.dtype(np.float64))
    planner = MaclaurinPlanner.measure(radial.kernel, rows, rng, is_radial=True)
    plan = planner.plan(craft.n_components, None, craft.h01, "fold")
    n_columns, size = X.shape[1], fourier.n_components
    error = gaussian_fourier_error(planner.moments, size, n_columns)
    sines = _SINE * size
    if fourier.sampling == "structured":
        length = padded_length(n_columns)
        time = sines + _ROTATION_STEP * 3 * math.log2(length) * max(length, size / 2)
    else:
        time = sines + _MULTIPLY_ADD * n_columns * size / 2
    radial_time = _SCALED * size + _CENTERED * n_columns
    return _of_craft(craft, plan, n_columns, radial_time), Candidate(fourier, error, time)


def _sparse_candidates(
    kernel: Polynomial, X: Any, craft: CraftMap, sketch: TensorSketch
) -> tuple[Candidate, Candidate]:
    """Return both maps for sparse rows."""
    rng = np.random.default_rng(_SEED)
    rows = _sample(X, rng)
    planner = MaclaurinPlanner.measure(kernel, rows, rng)
    plan = planner.plan(craft.n_components, None, craft.h01, "fold")
    size, non_zeros = sketch.n_components, X.nnz / X.shape[0]
    time = kernel.degree * (_NON_ZERO * non_zeros + _FFT_STEP * size * math.log2(2 * size))
    error = tensor_sketch_error(kernel, rows, size, rng)
    return _of_craft(craft, plan, X.shape[1]), Candidate(sketch, error, time)


def _of_craft(craft: CraftMap, plan: CraftPlan, n_columns: int, more: float = 0.0) -> Candidate:
    """Return the candidate for a plan; `more` is additional time in nanoseconds per row."""
    length, counts = padded_length(n_columns), plan.counts
    factors = 1 + np.arange(len(counts))
    rotations = int(np.flatnonzero(counts).max(initial=0))
    time = _ROTATION_STEP * rotations * length * math.log2(2 * length)
    time += _FACTOR * float(counts @ factors)
    time += _RUN * float(np.ceil(counts / min(length, SLICE)) @ factors)
    return Candidate(craft, plan.error, time + _EXACT_COLUMN * plan.exact.n_columns + more)


def _best(candidates: tuple[Candidate, ...]) -> FeatureMap:
    return min(candidates, key=Candidate.cost).feature_map


def _sample(X: Any, rng: np.random.Generator) -> Any:
    n_rows = X.shape[0]
    if n_rows <= _SAMPLE_ROWS:
        return X
    return X[np.sort(rng.choice(n_rows, _SAMPLE_ROWS, replace=False))]

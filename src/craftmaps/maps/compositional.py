"""Features of composed kernels f(K(x, y)), from independent features of K for each factor."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import (
    Composed,
    DotProductKernel,
    ShiftInvariantKernel,
    any_kernel,
    dot_product_kernel,
)
from craftmaps.maps.base import FeatureMap, onnx_features
from craftmaps.maps.fourier import FourierFeatures
from craftmaps.maps.maclaurin import RandomMaclaurin
from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.parts.hadamard_products import HadamardProducts, padded_length
from craftmaps.maps.planning import allocation
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice, current_parameter

_BLOCK_BYTES = 1 << 24  # size of a block of inner features
_SAMPLE_ROWS = 256  # rows for estimating the length of the inner features


@storable
class CompositionalMap(FeatureMap):
    """Features of a composed kernel f(K(x, y)) = sum_n a_n K(x, y)^n.

    Each of the D_n features of degree n is sqrt(a_n / D_n) prod_{j<=n} W_j(x), where
    W_j(x) = <r, z_j(x)> is a scalar feature of K. It combines the features of an inner map z_j with
    random signs r, which are structured as in `RandomMaclaurin`. Every factor j has an independent
    inner map, so the estimate is unbiased if the inner maps are (Kar and Karnick 2012, section 5).
    A single inner map for all factors would estimate E<z, z'>^n, which is larger than K^n.

    Parameters
    ----------
    kernel : Composed or None, default=None
        The kernel to approximate. None is `Composed()`, a cubic polynomial of a Gaussian kernel.
    n_components : int, default=1024
        Number of output columns.
    inner_map : transformer or None, default=None
        Transformer whose features have inner products that estimate K without bias. It needs a
        `random_state` and is cloned for every factor. None uses `FourierFeatures` or
        `RandomMaclaurin`, whichever fits K, with as many columns as this map.
    allocation : {"optimized", "proportional", "geometric"}, default="optimized"
        How features are shared among degrees; see `RandomMaclaurin`.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. Pass an int for the same features in every call of `fit`.
    degrees : str
        Deprecated name of `allocation`.

    Attributes
    ----------
    kernel_ : Composed
        The kernel that is approximated.
    inner_maps_ : list of transformers
        The inner map of each factor.
    n_per_degree_ : ndarray
        Number of output columns of each degree.
    tail_ : float
        Upper bound of the error from truncating the series, for rows no longer than the rows seen
        in `fit`.

    See Also
    --------
    RandomMaclaurin : The same for K(x, y) = <x, y>.

    References
    ----------
    P. Kar and H. Karnick, "Random Feature Maps for Dot Product Kernels", AISTATS 2012, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import CompositionalMap, Composed, Gaussian, Polynomial
    >>> X = np.random.default_rng(0).random((100, 5))
    >>> kernel = Composed(Polynomial(degree=2), Gaussian(gamma=0.5))
    >>> Z = CompositionalMap(kernel, n_components=4096, random_state=0).fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - kernel(X)).max() < 0.1 * kernel(X).max())
    True
    """

    kernel_: Composed
    inner_maps_: list[Any]
    n_per_degree_: np.ndarray
    tail_: float
    _constant: np.ndarray
    _products: HadamardProducts

    def __init__(
        self,
        kernel: Composed | None = None,
        n_components: int = 1024,
        *,
        inner_map: Any = None,
        allocation: str = "optimized",
        random_state: Any = None,
        degrees: str = "deprecated",
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.inner_map = inner_map
        self.allocation = allocation
        self.random_state = random_state
        self.degrees = degrees

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        kernel = Composed() if self.kernel is None else self.kernel
        if not isinstance(kernel, Composed):
            raise ValueError(f"kernel must be a Composed kernel or None, got {kernel!r}.")
        law = current_parameter("degrees", self.degrees, "allocation", self.allocation)
        check_choice("allocation", law, allocation.LAWS)
        kernel = kernel.resolved(X)
        inner = self._inner(kernel)
        first = _drawn(inner, X, rng)
        sample = X[np.sort(rng.permutation(X.shape[0])[:_SAMPLE_ROWS])]
        features = np.asarray(first.transform(sample), dtype=np.float64)
        outer = dot_product_kernel(kernel.outer)
        outer.check_rows(features)
        counts, weights, tail = self._share(law, outer, features, rng)
        n_factors = int(np.flatnonzero(counts)[-1])
        inner_maps = [first, *(_drawn(inner, X, rng) for _ in range(n_factors - 1))][:n_factors]
        width, n_constant = features.shape[1], int(counts[0])
        products = HadamardProducts.draw(counts, weights, n_constant, width, False, rng)
        return {
            "kernel_": kernel,
            "inner_maps_": inner_maps,
            "n_per_degree_": counts,
            "tail_": tail,
            "_constant": np.full(n_constant, np.sqrt(weights[0])),
            "_products": products.with_own_inputs(width, n_factors),
        }

    def _inner(self, kernel: Composed) -> Any:
        """Return the inner map, which is cloned for every factor."""
        if self.inner_map is not None:
            if isinstance(self.inner_map, type) or not hasattr(self.inner_map, "transform"):
                raise TypeError(
                    f"inner_map must be a transformer with fit and transform, got "
                    f"{self.inner_map!r}."
                )
            if "random_state" not in self.inner_map.get_params():
                raise ValueError(
                    f"inner_map must have a random_state, because every factor needs an "
                    f"independent draw; {self.inner_map!r} has none."
                )
            return self.inner_map
        inner = any_kernel(kernel.inner)
        if isinstance(inner, ShiftInvariantKernel):
            return FourierFeatures(inner, self.n_components)
        if isinstance(inner, DotProductKernel):
            return RandomMaclaurin(inner, self.n_components)
        raise ValueError(f"no inner map is known for {kernel.inner!r}; pass one as inner_map.")

    def _share(
        self, law: str, outer: DotProductKernel, features: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the features per degree, their squared scales, and the truncation error."""
        norms = row_norms(features, squared=True)
        largest = allocation.largest_squared_norm(outer, norms)
        last = max(1, allocation.automatic_degree(outer, largest))

        def statistics() -> DegreeStatistics:
            moments, length = PairMoments.of_sample(features, rng), padded_length(features.shape[1])
            return DegreeStatistics.measure(outer, moments, last, "hadamard", False, length)

        n = int(self.n_components)
        shares = allocation.share(law, outer, n, 0, last, norms, statistics, rng)
        return *shares, outer.tail(last, largest)

    def _fill(self, X: Any, out: np.ndarray) -> None:
        n_inner = sum(int(inner.transform(X[:1]).shape[1]) for inner in self.inner_maps_)
        rows = max(1, _BLOCK_BYTES // (out.itemsize * max(1, n_inner)))
        for start in range(0, X.shape[0], rows):
            block = X[start : start + rows]
            features = np.empty((block.shape[0], n_inner), dtype=out.dtype)
            column = 0
            for inner in self.inner_maps_:
                made = inner.transform(block)
                features[:, column : column + made.shape[1]] = made
                column += made.shape[1]
            self._products.fill(features, out[start : start + rows])
        out[:, : len(self._constant)] = self._constant

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Rename the parameters of a file of version 0.1.0."""
        if "allocation" not in state:
            state = {**state, "allocation": state["degrees"], "degrees": "deprecated"}
        return state

    def _check_stored(self) -> None:
        super()._check_stored()
        inner_maps = self.inner_maps_
        fits = all(
            isinstance(inner, FeatureMap) and inner.n_features_in_ == self.n_features_in_
            for inner in inner_maps
        )
        constant = self._constant
        check_facts(
            self,
            inner_maps_=fits,
            _constant=constant.ndim == 1 and len(constant) <= self._n_features_out,
        )
        self._products.check(self._n_inner(), self._n_features_out)

    def _n_inner(self) -> int:
        """Return the number of columns of all inner maps together."""
        return sum(int(inner._n_features_out) for inner in self.inner_maps_)

    def _onnx(self, g: Any, x: str) -> str:
        u = g.concat([onnx_features(g, x, inner) for inner in self.inner_maps_], axis=1)
        n_constant = len(self._constant)
        columns = [g.repeated(self._constant, x)] if n_constant else []
        n_random = self._n_features_out - n_constant
        columns.append(self._products.onnx(g, u, self._n_inner(), n_random, n_constant))
        return str(g.concat(columns, axis=1))


def _drawn(inner: Any, X: Any, rng: np.random.Generator) -> Any:
    """Clone the inner map with a new random state, and fit it."""
    return clone(inner).set_params(random_state=int(rng.integers(2**31))).fit(X)

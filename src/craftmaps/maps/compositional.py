"""Features for f(K(x, y)), from features of K that are drawn anew for every factor."""

from dataclasses import replace
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
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.fourier import FourierFeatures
from craftmaps.maps.maclaurin import RandomMaclaurin
from craftmaps.maps.parts.hadamard_products import HadamardProducts, padded_length
from craftmaps.maps.planning import allocation
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice

_BLOCK_BYTES = 1 << 24  # inner features in flight


@storable
class CompositionalMap(FeatureMap):
    """Compositional features: <z(x), z(y)> estimates f(K(x, y)) = sum_n a_n K(x, y)^n.

    A feature of degree n is sqrt(a_n / D_n) prod_{j<=n} W_j(x), of which D_n are made. W_j = <r,
    z_j(x)> is a scalar feature of K: random signs r, structured as in `RandomMaclaurin`, of an
    inner map z_j. Every factor j has an inner map of its own, drawn independently, so that the
    estimate is unbiased if the inner one is (Kar and Karnick 2012, section 5). One inner map for
    all factors would estimate E<z, z'>^n, which is more than K^n.

    Parameters
    ----------
    kernel : Composed or None, default=None
        f and K. None is `Composed()`, the cubic polynomial of a Gaussian kernel.
    n_components : int, default=1024
        Number of output columns.
    inner_map : transformer or None, default=None
        Features whose inner products estimate K without bias: an estimator with `fit`, `transform`
        and `random_state`, of which clones are made. None takes `FourierFeatures` or
        `RandomMaclaurin`, whichever K asks for, with as many columns as this map.
    degrees : {"optimized", "proportional", "geometric"}, default="optimized"
        How features are shared among degrees; see `RandomMaclaurin`.
    random_state : int, RandomState instance, Generator or None, default=None

    Attributes
    ----------
    kernel_ : Composed
        The kernel that is approximated.
    inner_maps_ : list of transformers
        The inner map of each factor.
    n_per_degree_ : ndarray
        Number of output columns of each degree.
    tail_ : float
        What truncation of the series takes off the kernel at most, for rows no larger than those
        seen in `fit`.

    See Also
    --------
    RandomMaclaurin : the same for K(x, y) = <x, y>.

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
        degrees: str = "optimized",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.inner_map = inner_map
        self.degrees = degrees
        self.random_state = random_state

    def _draw(self, X: Any, rng: np.random.Generator) -> None:
        kernel = Composed() if self.kernel is None else self.kernel
        if not isinstance(kernel, Composed):
            raise ValueError(f"kernel must be a Composed kernel or None, got {kernel!r}.")
        check_choice("degrees", self.degrees, ("optimized", "proportional", "geometric"))
        self.kernel_ = kernel.resolved(X)
        inner = self._inner()
        first = _drawn(inner, X, rng)
        sample = X[np.sort(rng.permutation(X.shape[0])[:256])]
        features = np.asarray(first.transform(sample), dtype=np.float64)
        outer = dot_product_kernel(self.kernel_.outer)
        outer.check_rows(features)
        counts, weights = self._share(outer, features, rng)
        self.n_per_degree_ = counts
        factors = int(np.flatnonzero(counts)[-1])
        self.inner_maps_ = [first, *(_drawn(inner, X, rng) for _ in range(factors - 1))][:factors]
        self._constant = np.full(int(counts[0]), np.sqrt(weights[0]))
        drawn = HadamardProducts.draw(
            counts, weights, int(counts[0]), features.shape[1], False, rng
        )
        self._products = _own_inputs(drawn, features.shape[1], factors)

    def _inner(self) -> Any:
        """The inner map, of which every factor gets a clone."""
        if self.inner_map is not None:
            if isinstance(self.inner_map, type) or not hasattr(self.inner_map, "transform"):
                raise ValueError(
                    f"inner_map must be a transformer with fit and transform, got "
                    f"{self.inner_map!r}."
                )
            if "random_state" not in self.inner_map.get_params():
                raise ValueError(
                    f"inner_map must have a random_state, because every factor needs an "
                    f"independent draw; {self.inner_map!r} has none."
                )
            return self.inner_map
        inner = any_kernel(self.kernel_.inner)
        if isinstance(inner, ShiftInvariantKernel):
            return FourierFeatures(inner, self.n_components)
        if isinstance(inner, DotProductKernel):
            return RandomMaclaurin(inner, self.n_components)
        raise ValueError(
            f"no inner map is known for {self.kernel_.inner!r}; give one as inner_map."
        )

    def _share(
        self, outer: DotProductKernel, features: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features per degree and the square of their scale."""
        norms = row_norms(features, squared=True)
        largest = allocation.largest_squared_norm(outer, norms)
        last = max(1, allocation.automatic_degree(outer, largest))
        self.tail_ = outer.tail(last, largest)
        n = int(self.n_components)
        if self.degrees == "geometric":
            return allocation.geometric(outer, n, 0, last, 2.0, rng)
        if self.degrees == "proportional" or n < np.count_nonzero(outer.maclaurin(last)):
            return allocation.proportional(outer, n, 0, last, float(norms.mean()), rng)
        statistics = DegreeStatistics.measure(
            outer,
            PairMoments.of_sample(features, rng),
            last,
            "hadamard",
            False,
            padded_length(features.shape[1]),
        )
        return allocation.optimized(statistics, n, 0)

    def is_sound(self) -> bool:
        n_inner = sum(inner._n_features_out for inner in self.inner_maps_)
        return self._products.stays_within(n_inner, self._n_features_out)

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


def _drawn(inner: Any, X: Any, rng: np.random.Generator) -> Any:
    """A clone of the inner map with a random state of its own, fitted."""
    return clone(inner).set_params(random_state=int(rng.integers(2**31))).fit(X)


def _own_inputs(products: HadamardProducts, width: int, factors: int) -> HadamardProducts:
    """The same products, with factor k reading columns k*width.. of its input.

    `gather` points into (x, -x, 0), so the halves move apart when x grows to all factors.
    """
    gather = products.gather.astype(np.int64)
    for first, last in zip(products.rotations[:-1], products.rotations[1:], strict=True):
        for k in range(last - first):
            row = gather[first + k]
            negative, padding = (row >= width) & (row < 2 * width), row == 2 * width
            row += k * width
            row[negative] += (factors - 1) * width
            row[padding] = 2 * factors * width
    return replace(products, gather=gather.astype(np.uint32))

"""Random Maclaurin features for dot-product kernels."""

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import DotProductKernel, dot_product_or_fitted_kernel
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts.exact_terms import ExactTerms
from craftmaps.maps.parts.hadamard_products import HadamardProducts, padded_length
from craftmaps.maps.parts.matrix_products import MatrixProducts
from craftmaps.maps.planning import allocation
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice, is_integer, is_number

_LAWS = ("optimized", "geometric", "proportional")
_PROJECTIONS = ("hadamard", "rademacher", "gaussian")


@storable
class RandomMaclaurin(FeatureMap):
    """Random Maclaurin features: <z(x), z(y)> estimates f(<x, y>) = sum_n a_n <x, y>^n.

    A feature of degree n is sqrt(a_n / D_n) prod_{j<=n} <w_j, x> with random w_j, of which D_n are
    made; the estimate is unbiased (up to the reported truncation of an infinite series).

    Parameters
    ----------
    kernel : DotProductKernel, "poly", "exp" or "auto", default="poly"
        The kernel. "poly" is `Polynomial()`, of degree 3; "exp" is `Exponential()`; "auto" learns
        the Maclaurin coefficients from the targets given to `fit`.
    n_components : int, default=1024
        Number of output columns.
    degrees : {"optimized", "geometric", "proportional"}, default="optimized"
        How features are shared among degrees. "optimized" minimises the expected error on a
        subsample of the rows given to `fit`; "geometric" draws degrees with probability
        proportional to p^-(n+1), as printed by Kar and Karnick; "proportional" draws them with
        probability proportional to a_n R^(2n), R^2 the mean squared norm of the rows. With fewer
        features than degrees, "optimized" cannot serve all of them and draws as "proportional".
    h01 : bool, default=False
        Output the terms of degree 0 and 1 exactly, as a constant column and the columns of X
        (H0/1 of Kar and Karnick, section 6.1); random features then begin at degree 2.
    projection : {"hadamard", "rademacher", "gaussian"}, default="hadamard"
        How w_j are drawn: structured, with fast transforms and no matrix in memory; independent
        signs; or independent normal numbers.
    complex_to_real : bool, default=False
        Draw complex w_j and output real and imaginary parts (Wacker, Ohana and Filippone 2023).
        Lowers the error for data without negative entries and kernels of high degree.
    p : float, default=2.0
        Base of the geometric law; above 1.
    max_degree : int or None, default=None
        Truncate the series there. None keeps all that float32 could tell from zero, at most up to
        degree 64; the geometric law is then not truncated at all.
    random_state : int, RandomState instance, Generator or None, default=None

    Attributes
    ----------
    kernel_ : DotProductKernel
        The kernel that is approximated.
    degrees_ : ndarray of shape (n_components,)
        The degree of each output column.
    n_per_degree_ : ndarray
        Number of output columns of each degree.
    counts_, weights_ : ndarray
        Number of random features of each degree (complex ones take two columns) and the square of
        the factor that scales them.
    max_degree_ : int
        The highest degree that was drawn.
    tail_ : float
        What truncation takes off the kernel at most, for rows no longer than those seen in `fit`.

    See Also
    --------
    TensorSketch : one sketch of the whole polynomial, at the cost of the non-zeros of sparse rows.

    References
    ----------
    P. Kar and H. Karnick, "Random Feature Maps for Dot Product Kernels", AISTATS 2012.
    J. Wacker, M. Kanagawa and M. Filippone, "Improved Random Features for Dot Product Kernels".
    J. Wacker, R. Ohana and M. Filippone, "Complex-to-Real Sketches for Tensor Products with
    Applications to the Polynomial Kernel", AISTATS 2023.
    R. Hamid, Y. Xiao, A. Gittens and D. DeCoste, "Compact Random Feature Maps", ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Polynomial, RandomMaclaurin
    >>> X = np.random.default_rng(0).random((100, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> kernel = Polynomial(degree=3)
    >>> feature_map = RandomMaclaurin(kernel, n_components=2048, random_state=0)
    >>> Z = feature_map.fit_transform(X)
    >>> Z.shape
    (100, 2048)
    >>> bool(np.abs(Z @ Z.T - kernel(X)).max() < 0.1 * kernel(X).max())
    True
    """

    def __init__(
        self,
        kernel: DotProductKernel | str = "poly",
        n_components: int = 1024,
        *,
        degrees: str = "optimized",
        h01: bool = False,
        projection: str = "hadamard",
        complex_to_real: bool = False,
        p: float = 2.0,
        max_degree: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.degrees = degrees
        self.h01 = h01
        self.projection = projection
        self.complex_to_real = complex_to_real
        self.p = p
        self.max_degree = max_degree
        self.random_state = random_state

    def _learn(self, X: Any, y: Any, rng: np.random.Generator) -> None:
        self.kernel_ = dot_product_or_fitted_kernel(self.kernel, X, y, self.n_components, rng)

    def _draw(self, X: Any, rng: np.random.Generator) -> None:
        self._check_parameters()
        self.kernel_.check_rows(X)
        parts = 2 if self.complex_to_real else 1
        a0, a1 = self.kernel_.maclaurin(1)
        n_linear = X.shape[1] if self.h01 and a1 else 0
        n_constant = 1 if self.h01 and a0 else 0
        available = self.n_components - n_linear - n_constant
        least_degree = 2 if self.h01 else 0
        if available < (parts if self.kernel_.highest_degree >= least_degree else 0):
            raise ValueError(
                f"n_components={self.n_components} is too small: {n_constant + n_linear} columns "
                f"are exact (h01={self.h01}) and at least {parts} more must be random "
                f"(complex_to_real={self.complex_to_real}); raise n_components."
            )
        counts, weights = self._share(X, available // parts, least_degree, rng)
        self.counts_, self.weights_ = counts, weights
        # Columns: constant, exact linear, then the random features by degree. The constant takes
        # what is left over (one column of an odd number, when features are complex).
        constant = a0 if self.h01 else weights[0] * counts[0]
        left_over = available - parts * int(counts.sum())
        n_constant += parts * int(counts[0]) + (left_over if constant else 0)
        self._exact = ExactTerms(n_constant, n_linear, float(constant), float(a1))
        degrees = [[0] * n_constant, [1] * n_linear]
        degrees += [[n] * (parts * int(counts[n])) for n in range(1, len(counts))]
        drawn = np.concatenate(degrees).astype(int)
        self.degrees_ = np.pad(drawn, (0, self.n_components - len(drawn)))
        self.n_per_degree_ = np.bincount(self.degrees_, minlength=len(counts))
        self._products = self._draw_products(counts, self._exact.n_columns, X.shape[1], rng)

    def _draw_products(
        self, counts: np.ndarray, first_column: int, n_columns_in: int, rng: np.random.Generator
    ) -> HadamardProducts | MatrixProducts:
        args = (counts, self.weights_, first_column, n_columns_in, self.complex_to_real, rng)
        if self.projection == "hadamard":
            return HadamardProducts.draw(*args)
        return MatrixProducts.draw(*args, gaussian=self.projection == "gaussian")

    def _fill(self, X: Any, out: np.ndarray) -> None:
        self.kernel_.check_rows(X)
        self._products.fill(X, out)
        self._exact.write(X, out)

    def is_sound(self) -> bool:
        within = self.n_features_in_, self._n_features_out
        if not self._exact.stays_within(*within):
            return False
        # NumPy checks the indices of matrices
        return isinstance(self._products, MatrixProducts) or self._products.stays_within(*within)

    def _share(
        self, X: Any, n_features: int, least_degree: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features per degree and the square of their scale, by the law that was asked for."""
        norms = row_norms(X, squared=True).astype(float)
        largest = allocation.largest_squared_norm(self.kernel_, norms)
        if self.degrees == "geometric" and self.max_degree is None:
            self.tail_ = 0.0
            counts, weights = allocation.geometric(
                self.kernel_, n_features, least_degree, None, self.p, rng
            )
            self.max_degree_ = len(counts) - 1
            return counts, weights
        last = self._truncate(largest)
        positive = np.flatnonzero(self.kernel_.maclaurin(last)[least_degree:])
        if not positive.size:
            return np.zeros(last + 1, dtype=int), np.zeros(last + 1)
        if self.degrees == "geometric":
            return allocation.geometric(self.kernel_, n_features, least_degree, last, self.p, rng)
        if self.degrees == "proportional" or n_features < positive.size:
            mean = float(norms.mean()) or 1.0
            return allocation.proportional(self.kernel_, n_features, least_degree, last, mean, rng)
        statistics = DegreeStatistics.measure(
            self.kernel_,
            PairMoments.of_sample(X, rng),
            last,
            self.projection,
            self.complex_to_real,
            padded_length(X.shape[1]),
        )
        return allocation.optimized(statistics, n_features, least_degree)

    def _truncate(self, squared_norm: float) -> int:
        last = self.max_degree
        if last is None:
            last = allocation.automatic_degree(self.kernel_, squared_norm)
        last = int(min(last, self.kernel_.highest_degree))
        self.max_degree_ = last
        self.tail_ = allocation.truncated_tail(
            self.kernel_, last, squared_norm, "raise max_degree, or lower gamma", stacklevel=6
        )
        return last

    def _check_parameters(self) -> None:
        check_choice("degrees", self.degrees, _LAWS)
        check_choice("projection", self.projection, _PROJECTIONS)
        if not is_number(self.p) or not self.p > 1:
            raise ValueError(f"p must be a number above 1, got {self.p!r}.")
        if self.max_degree is not None and not (
            is_integer(self.max_degree) and self.max_degree >= 1
        ):
            raise ValueError(
                f"max_degree must be None or an integer of at least 1, got {self.max_degree!r}."
            )
        if self.h01 and not self.kernel_.maclaurin(1).any():
            raise ValueError(
                f"h01=True outputs the terms of degree 0 and 1, but {self.kernel_} has neither; "
                f"set h01=False."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = isinstance(self.kernel, str) and self.kernel == "auto"
        return tags

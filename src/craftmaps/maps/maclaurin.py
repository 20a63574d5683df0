"""Random Maclaurin features for dot-product kernels."""

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from craftmaps.kernels import DotProductKernel, Gaussian, series_or_fitted_kernel
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.parts.exact_terms import ExactTerms
from craftmaps.maps.parts.hadamard_products import HadamardProducts, padded_length
from craftmaps.maps.parts.matrix_products import MatrixProducts
from craftmaps.maps.parts.radial import Radial
from craftmaps.maps.planning import allocation
from craftmaps.maps.planning.expected_errors import maclaurin_error
from craftmaps.maps.planning.moments import DegreeStatistics, PairMoments
from craftmaps.storage.packing import storable
from craftmaps.validation import (
    check_choice,
    check_count,
    current_parameter,
    is_number,
    warn_renamed,
)

_PROJECTIONS = ("hadamard", "rademacher", "gaussian")
_H01 = ("none", "append")


@storable
class RandomMaclaurin(FeatureMap):
    """Random Maclaurin features of a dot-product kernel f(<x, y>) = sum_n a_n <x, y>^n.

    Each of the D_n features of degree n is sqrt(a_n / D_n) prod_{j<=n} <w_j, x> with random w_j.
    Their inner product <z(x), z(y)> is an unbiased estimate of the kernel, apart from the
    truncation of an infinite series, which `tail_` reports.

    Parameters
    ----------
    kernel : DotProductKernel, Gaussian, "poly", "exp", "rbf" or "auto", default="poly"
        The kernel to approximate. "poly" is `Polynomial()` of degree 3, "exp" is `Exponential()`,
        and "rbf" is `Gaussian()`. "auto" learns the Maclaurin coefficients from the targets given
        to `fit`. The features of a Gaussian are the features of exp(2 gamma <x, y>) for centered
        rows, multiplied by exp(-gamma |x|^2).
    n_components : int, default=1024
        Number of output columns.
    allocation : {"optimized", "geometric", "proportional"}, default="optimized"
        How features are shared among degrees:

        - "optimized" minimizes the expected error on a subsample of the rows given to `fit`. If
          there are fewer features than degrees, it draws like "proportional".
        - "geometric" draws degrees with probability proportional to p^-(n+1), as published by Kar
          and Karnick.
        - "proportional" draws degrees with probability proportional to a_n R^(2n), where R^2 is the
          mean squared norm of the rows.
    h01 : {"none", "append"}, default="none"
        How the terms of degree 0 and 1 are treated. "append" outputs them exactly, as a constant
        column and the columns of X (H0/1 of Kar and Karnick, section 6.1); random features then
        start at degree 2. "none" treats them like other terms.
    projection : {"hadamard", "rademacher", "gaussian"}, default="hadamard"
        How the w_j are drawn: "hadamard" uses fast transforms and stores no matrix, "rademacher"
        draws independent signs, and "gaussian" draws independent normal numbers.
    complex_to_real : bool, default=False
        Draw complex w_j and output real and imaginary parts (Wacker, Ohana and Filippone 2023).
        This lowers the error for data without negative entries and kernels of high degree.
    p : float, default=2.0
        Base of the geometric distribution, above 1.
    max_degree : int or None, default=None
        The degree at which the series is truncated. None keeps all terms that are not zero in
        float32, up to degree 64; the geometric distribution is then not truncated at all.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. Pass an int for the same features in every call of `fit`.
    degrees : str
        Deprecated name of `allocation`.

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
        Upper bound of the truncation error, for rows no longer than the rows seen in `fit`.

    See Also
    --------
    TensorSketch : One sketch of the whole polynomial, fast for sparse rows.

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

    kernel_: DotProductKernel | Gaussian
    counts_: np.ndarray
    weights_: np.ndarray
    degrees_: np.ndarray
    n_per_degree_: np.ndarray
    max_degree_: int
    tail_: float
    _exact: ExactTerms
    _products: HadamardProducts | MatrixProducts
    _radial: Radial | None = None

    def __init__(
        self,
        kernel: DotProductKernel | Gaussian | str = "poly",
        n_components: int = 1024,
        *,
        allocation: str = "optimized",
        h01: str = "none",
        projection: str = "hadamard",
        complex_to_real: bool = False,
        p: float = 2.0,
        max_degree: int | None = None,
        random_state: Any = None,
        degrees: str = "deprecated",
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.allocation = allocation
        self.h01 = h01
        self.projection = projection
        self.complex_to_real = complex_to_real
        self.p = p
        self.max_degree = max_degree
        self.random_state = random_state
        self.degrees = degrees

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        approximated = series_or_fitted_kernel(self.kernel, X, y, self.n_components, rng)
        radial = None
        if isinstance(approximated, Gaussian):
            radial = Radial.draw(X, float(approximated.gamma))
            kernel, (X, _) = radial.kernel, radial.prepared(X, X.dtype)
        else:
            kernel = approximated
        law, h01 = self._checked_parameters(kernel)
        kernel.check_rows(X)
        parts = 2 if self.complex_to_real else 1
        a0, a1 = kernel.maclaurin(1)
        n_linear = X.shape[1] if h01 and a1 else 0
        n_constant = 1 if h01 and a0 else 0
        available = self.n_components - n_linear - n_constant
        least_degree = 2 if h01 else 0
        if available < (parts if kernel.highest_degree >= least_degree else 0):
            raise ValueError(
                f"n_components={self.n_components} is too small: {n_constant + n_linear} columns "
                f"are exact (h01={self.h01!r}) and at least {parts} more must be random "
                f"(complex_to_real={self.complex_to_real}); raise n_components."
            )
        n_features, is_radial = available // parts, radial is not None
        shared = self._share(law, kernel, X, is_radial, n_features, least_degree, rng)
        counts, weights = shared["counts_"], shared["weights_"]
        # Columns: constant, exact linear, then the random features by degree. A left-over column
        # (complex features take pairs) goes to the constant.
        constant = a0 if h01 else weights[0] * counts[0]
        left_over = available - parts * int(counts.sum())
        n_constant += parts * int(counts[0]) + (left_over if constant else 0)
        exact = ExactTerms(n_constant, n_linear, float(constant), float(a1))
        by_degree = [[0] * n_constant, [1] * n_linear]
        by_degree += [[n] * (parts * int(counts[n])) for n in range(1, len(counts))]
        drawn = np.concatenate(by_degree).astype(int)
        degrees = np.pad(drawn, (0, self.n_components - len(drawn)))
        return {
            "kernel_": approximated,
            "_radial": radial,
            "degrees_": degrees,
            "n_per_degree_": np.bincount(degrees, minlength=len(counts)),
            **shared,
            "_exact": exact,
            "_products": self._draw_products(counts, weights, exact.n_columns, X.shape[1], rng),
        }

    def _draw_products(
        self,
        counts: np.ndarray,
        weights: np.ndarray,
        first_column: int,
        n_columns_in: int,
        rng: np.random.Generator,
    ) -> HadamardProducts | MatrixProducts:
        args = (counts, weights, first_column, n_columns_in, self.complex_to_real, rng)
        if self.projection == "hadamard":
            return HadamardProducts.draw(*args)
        return MatrixProducts.draw(*args, gaussian=self.projection == "gaussian")

    def _share(
        self,
        law: str,
        kernel: DotProductKernel,
        X: Any,
        is_radial: bool,
        n_features: int,
        least_degree: int,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Return the fitted attributes with the number of features of each degree."""
        norms = row_norms(X, squared=True).astype(float)
        largest = allocation.largest_squared_norm(kernel, norms)
        if law == "geometric" and self.max_degree is None:
            counts, weights = allocation.geometric(
                kernel, n_features, least_degree, None, self.p, rng
            )
            last, tail = len(counts) - 1, 0.0
        else:
            last = self.max_degree or allocation.automatic_degree(kernel, largest)
            last = int(min(last, kernel.highest_degree))
            advice = "raise max_degree, or lower gamma"
            tail = allocation.truncated_tail(kernel, last, largest, advice)

            def statistics() -> DegreeStatistics:
                moments = PairMoments.of_sample(X, rng, is_radial)
                length = padded_length(X.shape[1])
                how = (self.projection, self.complex_to_real, length)
                return DegreeStatistics.measure(kernel, moments, last, *how)

            counts, weights = allocation.share(
                law, kernel, n_features, least_degree, last, norms, statistics, rng, self.p
            )
        return {"counts_": counts, "weights_": weights, "max_degree_": last, "tail_": tail}

    def _checked_parameters(self, kernel: DotProductKernel) -> tuple[str, bool]:
        """Return the allocation, and whether the terms of degree 0 and 1 are exact."""
        law = current_parameter("degrees", self.degrees, "allocation", self.allocation)
        check_choice("allocation", law, allocation.LAWS)
        check_choice("projection", self.projection, _PROJECTIONS)
        h01 = self.h01
        if isinstance(h01, bool):
            warn_renamed(f"h01={h01}", repr(_H01[h01]))
            h01 = _H01[h01]
        check_choice("h01", h01, _H01)
        if not is_number(self.p) or not self.p > 1:
            raise ValueError(f"p must be a number above 1, got {self.p!r}.")
        check_count("max_degree", self.max_degree, none=True)
        if h01 == "append" and not kernel.maclaurin(1).any():
            raise ValueError(
                f"h01='append' outputs the terms of degree 0 and 1, but {kernel} has neither; set "
                f"h01='none'."
            )
        return law, h01 == "append"

    def _fill(self, X: Any, out: np.ndarray) -> None:
        if self._radial is not None:
            self._radial.fill(X, out, self._fill_series)
        else:
            self.kernel_.check_rows(X)
            self._fill_series(X, out)

    def _fill_series(self, X: Any, out: np.ndarray) -> None:
        """Features of a dot-product kernel."""
        self._products.fill(X, out)
        self._exact.fill(X, out)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Rename the parameters of a file of version 0.1.0."""
        if "allocation" not in state:
            law, h01 = state["degrees"], _H01[bool(state["h01"])]
            state = {**state, "allocation": law, "degrees": "deprecated", "h01": h01}
        return state

    def _check_stored(self) -> None:
        super()._check_stored()
        kinds = HadamardProducts | MatrixProducts
        check_facts(self, _products=isinstance(self._products, kinds))
        for part in (self._exact, self._products):
            part.check(self.n_features_in_, self._n_features_out)
        check_facts(self, _radial=isinstance(self.kernel_, Gaussian) == (self._radial is not None))
        if self._radial is not None:
            self._radial.check(self.n_features_in_)

    def _onnx(self, g: Any, x: str) -> str:
        if self._radial is None:
            return self._onnx_series(g, x)
        rows, factor = self._radial.onnx(g, x)
        return str(g.add("Mul", self._onnx_series(g, rows), factor))

    def _onnx_series(self, g: Any, x: str) -> str:
        """Features of a dot-product kernel."""
        n_exact, n_in = self._exact.n_columns, self.n_features_in_
        columns = [self._exact.onnx(g, x, n_in, n_exact)] if n_exact else []
        n_random = self._n_features_out - n_exact
        if n_random:
            columns.append(self._products.onnx(g, x, n_in, n_random, n_exact))
        return str(g.concat(columns, axis=1))

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        kernel = self.kernel_
        if self._radial is not None:
            kernel, (X, _) = self._radial.kernel, self._radial.prepared(X, np.dtype(np.float64))
        return maclaurin_error(
            kernel,
            X,
            self.counts_,
            self.weights_,
            self.projection,
            self.complex_to_real,
            self.h01 in (True, "append"),
            rng,
            self._radial is not None,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = isinstance(self.kernel, str) and self.kernel == "auto"
        return tags

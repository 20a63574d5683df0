"""Compact random feature maps: project up with a random feature map, then down."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from craftmaps.kernels import DotProductKernel, Gaussian, Polynomial, series_or_fitted_kernel
from craftmaps.maps.base import FeatureMap, onnx_features
from craftmaps.maps.parts.base import check_facts
from craftmaps.maps.parts.down import DRAW, Down, Matrix
from craftmaps.maps.parts.exact_terms import ExactTerms
from craftmaps.maps.parts.hadamard_products import HadamardProducts
from craftmaps.maps.parts.radial import Radial
from craftmaps.maps.planning.craft_plan import (
    CraftPlan,
    MaclaurinPlanner,
    SketchPlanner,
    given_plan,
)
from craftmaps.maps.planning.expected_errors import gaussian_fourier_error
from craftmaps.maps.planning.moments import PairMoments
from craftmaps.maps.tensor_sketch import TensorSketch
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice, is_integer, warn

_DOWN = (*DRAW, "principal", "auto")
_H01 = ("auto", "append", "up", "none")
_BUFFER_BYTES = 1 << 23  # size of a block of up-projected rows, unless they are folded directly
_ROWS_PER_COMPONENT = 4  # rows needed to learn each direction of a principal subspace
_MAX_PRINCIPAL_COMPONENTS = 1024  # down="auto" learns at most this many directions
_ACCEPTABLE_ERROR = 0.1  # with a smaller expected error of a fold, down="auto" learns nothing


@storable
class CraftMap(FeatureMap):
    """Compact random features, projected up to D dimensions and down to E.

    The features are z(x) = G u(x), where <u(x), u(y)> estimates the kernel from D = `n_up` random
    features and G is a random projection that preserves inner products on average. Their error is
    far lower than the error of E random features used directly. Apart from the exact columns of
    `h01`, it is close to sqrt((K(x,x) K(y,y) + K(x,y)^2) / E), the error of projecting exact
    features down.

    Parameters
    ----------
    kernel : DotProductKernel, Gaussian, "poly", "exp", "rbf" or "auto", default="poly"
        The kernel to approximate. up="tensor-sketch" needs a `Polynomial`. "auto" learns the
        Maclaurin coefficients from the targets given to `fit`. The features of a `Gaussian` are
        the features of exp(2 gamma <x, y>) for centered rows, multiplied by exp(-gamma |x|^2). A
        warning is raised if Fourier features are expected to be better, which happens for narrow
        kernels on rows with many columns. The parameter is ignored if `up` is a map.
    n_components : int, default=1024
        Number of output columns, E.
    n_up : "auto" or int, default="auto"
        Number of features before the down-projection, D. "auto" takes the smallest multiple of E
        for which the up-projection adds little to the error of the down-projection, according to
        the variance formulas on a sample of pairs of rows.
    up : {"maclaurin", "tensor-sketch"} or a feature map, default="maclaurin"
        The up-projection: Random Maclaurin features with optimized degrees, TensorSketch, or any
        other map. A map is cloned, and gets `n_up` components unless `n_up` is "auto".
    down : {"fold", "srht", "gaussian", "rademacher", "sparse", "principal", "auto"}, default="fold"
        The down-projection:

        - "fold": a signed fold, which needs no matrix product.
        - "srht": a subsampled randomized Hadamard transform.
        - "gaussian", "rademacher": a dense matrix of normal numbers or of signs.
        - "sparse": stacked count sketches.
        - "principal": the leading subspace of the up-projected rows seen in `fit`. It is not
          unbiased, but has the least error.
        - "auto": "principal" if there are at most 1,024 components, `fit` gets at least four rows
          per component, and the expected error of a fold is above 0.1; otherwise "fold".
    h01 : {"auto", "append", "up", "none"}, default="auto"
        How the terms of degree 0 and 1 are treated (up="maclaurin" only):

        - "append": they are exact columns next to the down-projection of the other terms.
        - "up": they are exact in the up-projection and are projected down with it, which also works
          if E is smaller than the number of columns of X.
        - "none": they are treated like other terms.
        - "auto": the best choice according to the variance formulas, from no exact columns to all
          monomials up to some degree. When X has few columns there are only a few monomials, so
          the whole map can be exact.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. Pass an int for the same features in every call of `fit`.

    Attributes
    ----------
    kernel_ : DotProductKernel or Gaussian
        The kernel that is approximated.
    n_up_ : int
        Number of features before the down-projection, D.
    n_exact_ : int
        Number of output columns with exact terms.
    exact_degree_ : int
        Highest degree of the exact terms, or -1 if no terms are exact.
    n_per_degree_ : ndarray or None
        Number of up-projected features of each degree; None unless up="maclaurin".
    expected_error_ : float
        Root mean square error over pairs of rows, relative to the root mean square kernel value,
        as predicted by the variance formulas; nan for down="principal" and if `up` is a map.
    up_ : fitted map or None
        The up-projection; None for up="maclaurin".
    down_ : drawn down-projection or None
        The down-projection; None if the up-projection folds its features itself.

    See Also
    --------
    RandomMaclaurin : The up-projection alone.
    TensorSketch : One sketch of the whole polynomial.

    References
    ----------
    R. Hamid, Y. Xiao, A. Gittens and D. DeCoste, "Compact Random Feature Maps", ICML 2014,
    Algorithm 2 and sections 3.3 to 3.5.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import CraftMap, Polynomial, RandomMaclaurin
    >>> X = np.random.default_rng(0).random((100, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> kernel = Polynomial(degree=7)
    >>> def error(feature_map):
    ...     Z = feature_map.fit_transform(X)
    ...     return np.linalg.norm(Z @ Z.T - kernel(X)) / np.linalg.norm(kernel(X))
    >>> plain = error(RandomMaclaurin(kernel, 512, random_state=0))
    >>> bool(error(CraftMap(kernel, 512, random_state=0)) < 0.8 * plain)
    True
    """

    kernel_: Any
    n_up_: int
    n_exact_: int
    exact_degree_: int | None = None
    n_per_degree_: np.ndarray | None = None
    expected_error_: float
    up_: Any = None
    down_: Down | None
    _exact: ExactTerms
    _inside: float
    _products: HadamardProducts | None
    _radial: Radial | None = None

    def __init__(
        self,
        kernel: DotProductKernel | Gaussian | str = "poly",
        n_components: int = 1024,
        *,
        n_up: int | str = "auto",
        up: Any = "maclaurin",
        down: str = "fold",
        h01: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_up = n_up
        self.up = up
        self.down = down
        self.h01 = h01
        self.random_state = random_state

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        self._check_parameters()
        kernel: Any
        radial, factor = None, None
        if isinstance(self.up, str):
            kernel = series = series_or_fitted_kernel(self.kernel, X, y, self.n_components, rng)
            if isinstance(kernel, Gaussian):
                radial = Radial.draw(X, float(kernel.gamma))
                series, (X, factor) = radial.kernel, radial.prepared(X, X.dtype)
            series.check_rows(X)
            down, plan, up = self._planned(series, X, radial is not None, rng)
        else:
            up = self._own_up(X, int(rng.integers(2**31)))
            kernel = getattr(up, "kernel_", None)
            down, plan = self._down_of(X, None), given_plan(up.transform(X[:1]).shape[1])
            self._check_width(plan.n_up)
        products, projection = self._parts(X, factor, plan, down, up, rng)
        return {
            "kernel_": kernel,
            "n_up_": plan.n_up,
            "n_exact_": plan.exact.n_columns,
            "exact_degree_": plan.exact_degree,
            "n_per_degree_": plan.counts if products is not None else None,
            "expected_error_": float("nan") if down == "principal" else plan.error,
            "up_": up,
            "down_": projection,
            "_products": products,
            "_exact": plan.exact,
            "_inside": float(np.sqrt(plan.inside)),
            "_radial": radial,
        }

    def _planned(
        self, kernel: DotProductKernel, X: Any, is_radial: bool, rng: np.random.Generator
    ) -> tuple[str, CraftPlan, TensorSketch | None]:
        """Return the kind of down-projection, its plan, and the up-projection unless it is fused.

        "auto" compares plans for both kinds on the same sample of rows.
        """
        n_up = None if self.n_up == "auto" else int(self.n_up)
        seed = int(rng.integers(2**31))
        planner: MaclaurinPlanner | SketchPlanner
        if self.up == "maclaurin":
            planner = MaclaurinPlanner.measure(kernel, X, rng, is_radial)
        elif isinstance(kernel, Polynomial):
            planner = SketchPlanner.measure(kernel, X, rng)
        else:
            raise ValueError(
                f"TensorSketch approximates Polynomial kernels, got {self.kernel!r}; use "
                f"up='maclaurin' for other dot-product kernels."
            )
        first = "fold" if self.down == "auto" else self.down
        plan = planner.plan(self.n_components, n_up, self.h01, first)
        down = self._down_of(X, plan.error)
        if is_radial and down != "principal":
            _advise(plan.error, planner.moments, self.n_components)
        if down != first:
            plan = planner.plan(self.n_components, n_up, self.h01, down)
        up = None
        if self.up == "tensor-sketch":
            up = TensorSketch(kernel, plan.n_up, random_state=seed).fit(X)
        return down, plan, up

    def _down_of(self, X: Any, error: float | None) -> str:
        """Return the kind of down-projection, given the expected error of a fold if known."""
        if self.down != "auto":
            return self.down
        few = self.n_components <= min(_MAX_PRINCIPAL_COMPONENTS, X.shape[0] // _ROWS_PER_COMPONENT)
        return "principal" if few and (error is None or error > _ACCEPTABLE_ERROR) else "fold"

    def _own_up(self, X: Any, seed: int) -> Any:
        """Clone and fit the map given as `up`."""
        up = clone(self.up)
        for name, value in (("n_components", self.n_up), ("random_state", seed)):
            if value != "auto" and hasattr(up, name):
                up.set_params(**{name: value})
        return up.fit(X)

    def _check_width(self, width: int) -> None:
        if width < self.n_components:
            raise ValueError(
                f"up makes {width} features, fewer than n_components={self.n_components}, but a "
                f"down-projection needs at least that many."
            )

    def _parts(
        self,
        X: Any,
        factor: np.ndarray | None,
        plan: CraftPlan,
        down: str,
        up: Any,
        rng: np.random.Generator,
    ) -> tuple[HadamardProducts | None, Down | None]:
        """Draw the random products (up="maclaurin" only) and, unless folded, the projection.

        `factor` multiplies the features of each row, unless it is None.
        """
        n_exact, products = plan.exact.n_columns, None
        n_in, n_out = plan.n_up - n_exact, self.n_components - n_exact
        if up is None:
            shares, inside = (plan.counts, plan.weights), int(plan.inside > 0)
            is_exact = not plan.counts.any() and not inside  # nothing is projected down
            if down == "fold" or is_exact:
                fold = None if is_exact else n_out
                products = HadamardProducts.draw(
                    *shares, n_exact, X.shape[1], False, rng, fold, inside
                )
                return products, None
            products = HadamardProducts.draw(*shares, inside, X.shape[1], False, rng)
        if down != "principal":
            return products, DRAW[down](n_in, n_out, rng)
        if X.shape[0] < n_out:
            raise ValueError(
                f"down='principal' learns {n_out} directions and needs at least that many rows in "
                f"fit, got {X.shape[0]} (n_samples={X.shape[0]}); lower n_components or use "
                f"down='fold'."
            )
        n_rows = min(X.shape[0], _ROWS_PER_COMPONENT * n_out)
        sample = np.sort(rng.choice(X.shape[0], n_rows, replace=False))
        U = np.empty((n_rows, n_in), dtype=np.float32)
        U = _up_projected(X[sample], products, float(np.sqrt(plan.inside)), up, U)
        if factor is not None:
            U *= factor[sample, None]
        return products, Matrix.learn(U, n_out)

    def _smaller(self, n_components: int) -> Self:
        smaller = super()._smaller(n_components)
        if self.down == "auto" and self.n_components > _MAX_PRINCIPAL_COMPONENTS:
            smaller.set_params(down="fold")
        return smaller

    def _fill(self, X: Any, out: np.ndarray) -> None:
        if self._radial is not None:
            self._radial.fill(X, out, self._fill_series)
        else:
            self._fill_series(X, out)

    def _fill_series(self, X: Any, out: np.ndarray) -> None:
        """Features of a dot-product kernel."""
        if isinstance(self.kernel_, DotProductKernel):
            self.kernel_.check_rows(X)
        if self.down_ is None:
            assert self._products is not None
            self._products.fill(X, out)
            if self._inside:
                out[:, 0] += self._inside
        else:
            n_in = self.n_up_ - self.n_exact_
            step = max(1, _BUFFER_BYTES // (n_in * out.itemsize))
            U = np.empty((min(step, X.shape[0]), n_in), dtype=out.dtype)
            for start in range(0, X.shape[0], step):
                rows = X[start : start + step]
                filled = U[: rows.shape[0]]
                block = _up_projected(rows, self._products, self._inside, self.up_, filled)
                _down_projected(block, self.down_, out[start : start + step, self.n_exact_ :])
        self._exact.fill(X, out)

    def _check_stored(self) -> None:
        super()._check_stored()
        sizes, n_out = (self.n_up_, self.n_exact_), self._n_features_out
        check_facts(
            self,
            sizes=all(map(is_integer, sizes)) and 0 <= self.n_exact_ <= n_out <= self.n_up_,
            _exact=self._exact.n_columns == self.n_exact_,
            _products=self._products is not None or None not in (self.up_, self.down_),
        )
        self._exact.check(self.n_features_in_, n_out)
        check_facts(self, _radial=isinstance(self.kernel_, Gaussian) == (self._radial is not None))
        if self._radial is not None:
            self._radial.check(self.n_features_in_)
        n_in = self.n_up_ - self.n_exact_
        if self._products is not None:
            self._products.check(self.n_features_in_, n_out if self.down_ is None else n_in)
        if self.down_ is not None:
            self.down_.check(n_in, n_out - self.n_exact_)
        if self.up_ is not None:
            up = self.up_.estimator if isinstance(self.up_, FrozenEstimator) else self.up_
            widths = (up.n_features_in_, up._n_features_out)
            check_facts(self, up_=widths == (self.n_features_in_, n_in))

    def _onnx(self, g: Any, x: str) -> str:
        if self._radial is None:
            return self._onnx_series(g, x)
        rows, factor = self._radial.onnx(g, x)
        return str(g.add("Mul", self._onnx_series(g, rows), factor))

    def _onnx_series(self, g: Any, x: str) -> str:
        """Features of a dot-product kernel."""
        n_exact, n_in = self.n_exact_, self.n_features_in_
        n_up, n_out = self.n_up_ - n_exact, self._n_features_out - n_exact
        columns = [self._exact.onnx(g, x, n_in, n_exact)] if n_exact else []
        if n_out:
            columns.append(self._onnx_random(g, x, n_up, n_out))
        return str(g.concat(columns, axis=1))

    def _onnx_random(self, g: Any, x: str, n_up: int, n_out: int) -> str:
        """Add all columns but the exact ones to an ONNX graph."""
        if self._products is None:
            u = onnx_features(g, x, self.up_)
        else:
            first, width = (self.n_exact_, n_out) if self.down_ is None else (0, n_up)
            u = self._products.onnx(g, x, self.n_features_in_, width, first)
            if self._inside:
                u = g.add("Add", u, g.floats(self._inside * np.eye(1, width)))
        return u if self.down_ is None else self.down_.onnx(g, u, n_up, n_out)

    def _check_parameters(self) -> None:
        check_choice("down", self.down, _DOWN)
        check_choice("h01", self.h01, _H01)
        if isinstance(self.up, str):
            check_choice("up", self.up, ("maclaurin", "tensor-sketch"))
        elif not hasattr(self.up, "fit") or not hasattr(self.up, "transform"):
            raise TypeError(
                f"up must be 'maclaurin', 'tensor-sketch' or a map with fit and transform, got "
                f"{self.up!r}."
            )
        if self.up != "maclaurin" and self.h01 in ("append", "up"):
            raise ValueError(
                f"h01={self.h01!r} needs up='maclaurin'; set it on the map given as up, or use "
                f"h01='auto'."
            )
        if self.n_up != "auto" and not (
            is_integer(self.n_up) and int(self.n_up) >= self.n_components
        ):
            raise ValueError(
                f"n_up must be 'auto' or an integer of at least n_components="
                f"{self.n_components}, got {self.n_up!r}: a down-projection cannot add columns."
            )

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        return float(self.expected_error_)  # on the rows given to fit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = isinstance(self.kernel, str) and self.kernel == "auto"
        return tags


def _advise(error: float, moments: PairMoments, n_components: int) -> None:
    """Warn if Fourier features with independent frequencies have a lower error than a fold."""
    fourier = gaussian_fourier_error(moments, n_components)
    if fourier < error:
        warn(
            f"{n_components} CraftMap features of this Gaussian kernel have an expected error of "
            f"{error:.2g} on these rows, but Fourier features have {fourier:.2g}: the kernel is "
            f"narrow for this many columns. Use FourierFeatures or a smaller gamma."
        )


def _up_projected(
    X: Any, products: HadamardProducts | None, inside: float, up: Any, U: np.ndarray
) -> np.ndarray:
    """Compute the features of X before the down-projection, in U if they fit there."""
    if products is not None:
        products.fill(X, U)
        if inside:
            U[:, 0] = inside
        return U
    if isinstance(up, FeatureMap):
        return up.transform_into(X, U)
    return np.require(up.transform(X), U.dtype, ["C", "W"])


def _down_projected(U: np.ndarray, down: Down, out: np.ndarray) -> None:
    """Project U down into `out`, which need not be contiguous next to exact columns."""
    if out.flags.c_contiguous:
        down.fill(U, out)
    else:
        contiguous = np.empty(out.shape, dtype=out.dtype)
        down.fill(U, contiguous)
        out[:] = contiguous

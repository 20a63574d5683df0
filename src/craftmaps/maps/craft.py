"""CRAFTMaps: project up non-linearly, then down."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from craftmaps.kernels import DotProductKernel, Polynomial, dot_product_or_fitted_kernel
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts.down import DRAW, Fold, Matrix, SparseSigns, SubsampledHadamard
from craftmaps.maps.parts.exact_terms import ExactTerms
from craftmaps.maps.parts.hadamard_products import HadamardProducts
from craftmaps.maps.planning.craft_plan import (
    CraftPlan,
    given_plan,
    plan_maclaurin,
    plan_tensor_sketch,
)
from craftmaps.maps.tensor_sketch import TensorSketch
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice, is_integer

_DOWN = (*DRAW, "principal", "auto")
_H01 = ("auto", "append", "up", "none")
_BUFFER = 1 << 23  # bytes of up-projected rows that exist at a time, off the fused path
_SAMPLE = 4  # rows per component from which a principal subspace is learned
_FEW = 1024  # components up to which down="auto" learns one,
_ERRS = 0.1  # if the expected error of a fold is beyond this


@storable
class CraftMap(FeatureMap):
    """Compact random features: up to D dimensions by a random feature map, then down to E.

    z(x) = G u(x), where <u(x), u(y)> estimates the kernel from D = `n_up` features and G is a
    random projection that keeps inner products on average. At equal output size the error is far
    below that of E random features used directly, and close to the least that a map can reach that
    does not look at the data, sqrt((K(x,x) K(y,y) + K(x,y)^2) / E).

    Parameters
    ----------
    kernel : DotProductKernel, "poly", "exp" or "auto", default="poly"
        The kernel; a `Polynomial` for up="tensor-sketch". "auto" learns the Maclaurin coefficients
        from the targets given to `fit`. Not used where `up` is a map.
    n_components : int, default=1024
        Number of output columns, E.
    n_up : "auto" or int, default="auto"
        Number of features before the down-projection, D. "auto" takes the least multiple of E for
        which the up-projection adds little to the error of the down-projection, by the variance
        formulas on a sample of pairs of rows.
    up : {"maclaurin", "tensor-sketch"} or a feature map, default="maclaurin"
        The up-projection: Random Maclaurin with optimized degrees, TensorSketch, or a map of your
        own, which is cloned and given `n_up` components unless that is "auto".
    down : {"fold", "srht", "gaussian", "rademacher", "sparse", "principal", "auto"}, default="fold"
        The down-projection: a signed fold, a subsampled randomized Hadamard transform, dense
        Gaussian or sign matrices, stacked count sketches; or "principal", the leading subspace of
        the up-projected rows seen in `fit`, which is not unbiased but has the least error. "auto"
        is "principal" where that is likely to pay: for up to 1,024 components, at least four rows
        for each of them in `fit`, and an expected error of more than 0.1 otherwise. Else it is
        "fold", which takes no products of matrices.
    h01 : {"auto", "append", "up", "none"}, default="auto"
        What becomes of the terms of degree 0 and 1 (up="maclaurin" only). "append": exact columns
        beside the down-projection of the rest; "up": exact in the up-projection, and projected
        down with it, which also works for E below the number of columns of X; "none": no special
        treatment; "auto": whatever the variance formulas favour, from no exact columns to all
        monomials up to some degree. Of few columns these are so few that the map may be exact.
    random_state : int, RandomState instance, Generator or None, default=None

    Attributes
    ----------
    kernel_ : DotProductKernel
        The kernel that is approximated.
    n_up_ : int
        D.
    n_exact_ : int
        Output columns that carry exact terms.
    exact_degree_ : int
        The degree up to which they do, -1 for none.
    n_per_degree_ : ndarray
        Up-projected features of each degree (up="maclaurin" only).
    expected_error_ : float
        Root mean square error over pairs of rows, relative to the root mean square kernel value,
        that the variance formulas predict; nan for a principal subspace and for maps of your own.
    up_ : fitted map, where `up` is not fused with the fold
    down_ : drawn down-projection, where it is not fused

    See Also
    --------
    RandomMaclaurin : the up-projection alone.
    TensorSketch : one sketch of the whole polynomial.

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
    expected_error_: float
    n_per_degree_: np.ndarray | None = None  # of up="maclaurin"
    up_: Any = None  # another up-projection, fitted
    down_: Fold | SubsampledHadamard | SparseSigns | Matrix | None
    _exact: ExactTerms
    _inside: float
    _products: HadamardProducts | None

    def __init__(
        self,
        kernel: DotProductKernel | str = "poly",
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

    def _learn(self, X: Any, y: Any, rng: np.random.Generator) -> None:
        self._check_parameters()
        if isinstance(self.up, str):
            self.kernel_ = dot_product_or_fitted_kernel(self.kernel, X, y, self.n_components, rng)

    def _draw(self, X: Any, rng: np.random.Generator) -> None:
        down = self._down(X, rng)
        learned = down == "principal"
        plan = self._plan(X, down, rng)
        self.n_up_ = plan.n_up
        self.n_exact_, self.exact_degree_ = plan.exact.n_columns, plan.exact_degree
        self.expected_error_ = float("nan") if learned else plan.error
        self._exact, self._inside = plan.exact, float(np.sqrt(plan.inside))
        n_out = self.n_components - self.n_exact_
        n_in = self.n_up_ - self.n_exact_
        self._products = None
        self.down_ = None
        if self.up == "maclaurin":
            shares, inside = (plan.counts, plan.weights), int(plan.inside > 0)
            is_exact = not plan.counts.any() and not inside  # there is nothing to project down
            if down == "fold" or is_exact:
                fold = None if is_exact else n_out
                self._products = HadamardProducts.draw(
                    *shares, self.n_exact_, X.shape[1], False, rng, fold, inside
                )
                return
            self._products = HadamardProducts.draw(*shares, inside, X.shape[1], False, rng)
        if learned:
            self.down_ = Matrix.learn(self._sample_up(X, n_in, n_out, rng), n_out)
        else:
            self.down_ = DRAW[down](n_in, n_out, rng)

    def _down(self, X: Any, rng: np.random.Generator) -> str:
        """The kind of down-projection; `rng` stays as it is."""
        if self.down != "auto":
            return self.down
        few = self.n_components <= min(_FEW, X.shape[0] // _SAMPLE)
        known = isinstance(self.up, str)  # of maps of your own no error is expected
        if not few or (known and self._plan(X, "fold", deepcopy(rng)).error <= _ERRS):
            return "fold"
        return "principal"

    def _smaller(self, n_components: int) -> Self:
        smaller = super()._smaller(n_components)
        if self.down == "auto" and self.n_components > _FEW:
            smaller.set_params(down="fold")
        return smaller

    def _plan(self, X: Any, down: str, rng: np.random.Generator) -> CraftPlan:
        """Decide on the up-projection and, unless it is Random Maclaurin, fit it."""
        n_up = None if self.n_up == "auto" else int(self.n_up)
        seed = int(rng.integers(2**31))
        if not isinstance(self.up, str):
            self.up_ = clone(self.up)
            for name, value in (("n_components", n_up), ("random_state", seed)):
                if value is not None and hasattr(self.up_, name):
                    self.up_.set_params(**{name: value})
            width = self.up_.fit(X).transform(X[:1]).shape[1]
            if width < self.n_components:
                raise ValueError(
                    f"up makes {width} features, fewer than n_components={self.n_components}: a "
                    f"down-projection needs at least as many."
                )
            self.kernel_ = getattr(self.up_, "kernel_", None)
            return given_plan(width)
        self.kernel_.check_rows(X)
        if self.up == "maclaurin":
            plan = plan_maclaurin(self.kernel_, X, self.n_components, n_up, self.h01, down, rng)
            self.n_per_degree_ = plan.counts
            return plan
        self.up_ = TensorSketch(self.kernel_, n_up or 1, random_state=seed)
        if not isinstance(self.kernel_, Polynomial):
            self.up_.fit(X)  # says what is wrong
        plan = plan_tensor_sketch(self.kernel_, X, self.n_components, n_up, down, rng)
        self.up_.set_params(n_components=plan.n_up).fit(X)
        return plan

    def _fill(self, X: Any, out: np.ndarray) -> None:
        if isinstance(self.kernel_, DotProductKernel):
            self.kernel_.check_rows(X)
        if self.down_ is None and self._products is not None:
            self._products.fill(X, out)
            if self._inside:
                out[:, 0] += self._inside
        else:
            n_in = self.n_up_ - self.n_exact_
            step = max(1, _BUFFER // (n_in * out.itemsize))
            U = np.empty((min(step, X.shape[0]), n_in), dtype=out.dtype)
            for start in range(0, X.shape[0], step):
                rows = X[start : start + step]
                block = self._up_project(rows, U[: rows.shape[0]])
                self._down_project(block, out[start : start + step, self.n_exact_ :])
        self._exact.write(X, out)

    def is_sound(self) -> bool:
        n_in, n_out = self.n_up_ - self.n_exact_, self._n_features_out - self.n_exact_
        width = self._n_features_out if self.down_ is None else n_in
        products = self._products
        if products is not None and not products.stays_within(self.n_features_in_, width):
            return False
        if not self._exact.stays_within(self.n_features_in_, self._n_features_out):
            return False
        kinds = Fold | SparseSigns  # the others index nothing, or NumPy checks it
        return not isinstance(self.down_, kinds) or self.down_.stays_within(n_in, n_out)

    def _up_project(self, X: Any, U: np.ndarray) -> np.ndarray:
        """The features of X that are to be projected down, in U if they fit there."""
        if self._products is not None:
            self._products.fill(X, U)
            if self._inside:
                U[:, 0] = self._inside
            return U
        if isinstance(self.up_, FeatureMap):
            return self.up_.transform_into(X, U)
        return np.require(self.up_.transform(X), U.dtype, ["C", "W"])

    def _down_project(self, U: np.ndarray, out: np.ndarray) -> None:
        assert self.down_ is not None
        if out.flags.c_contiguous:
            self.down_.apply(U, out)
        else:  # exact columns stand beside it
            down = np.empty(out.shape, dtype=out.dtype)
            self.down_.apply(U, down)
            out[:] = down

    def _sample_up(self, X: Any, n_in: int, n_out: int, rng: np.random.Generator) -> np.ndarray:
        """Up-projected rows from which the principal subspace is learned."""
        if X.shape[0] < n_out:
            raise ValueError(
                f"down='principal' learns {n_out} directions and needs at least as many rows in "
                f"fit, got {X.shape[0]} (n_samples={X.shape[0]}); lower n_components or use "
                f"down='fold'."
            )
        n_rows = min(X.shape[0], _SAMPLE * n_out)
        rows = X[np.sort(rng.choice(X.shape[0], n_rows, replace=False))]
        return self._up_project(rows, np.empty((n_rows, n_in), dtype=np.float32))

    def _check_parameters(self) -> None:
        check_choice("down", self.down, _DOWN)
        check_choice("h01", self.h01, _H01)
        if isinstance(self.up, str):
            check_choice("up", self.up, ("maclaurin", "tensor-sketch"))
        elif not hasattr(self.up, "fit") or not hasattr(self.up, "transform"):
            raise ValueError(
                f"up must be 'maclaurin', 'tensor-sketch' or a map with fit and transform, got "
                f"{self.up!r}."
            )
        if self.up != "maclaurin" and self.h01 in ("append", "up"):
            raise ValueError(
                f"h01={self.h01!r} is for up='maclaurin'; set it on the map given as up, or use "
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

"""Fourier features for shift-invariant kernels."""

from typing import Any

import numpy as np

from craftmaps.kernels import ShiftInvariantKernel, shift_invariant_kernel
from craftmaps.loops.fourier import cos_sin32, cos_sin64
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts.frequencies import Frequencies
from craftmaps.maps.parts.sampling import DRAW
from craftmaps.maps.planning.expected_errors import fourier_error
from craftmaps.storage.packing import storable
from craftmaps.validation import check_choice


@storable
class FourierFeatures(FeatureMap):
    """Random Fourier features of a shift-invariant kernel k(x - y).

    The features are z(x) = (cos<w_j, x>, sin<w_j, x>) / sqrt(m). The m frequencies w_j are drawn
    from the spectrum of the kernel, so that k(x - y) is the mean of cos<w, x - y>. Each frequency
    has a pair of columns, so that <z(x), z(x)> = k(x, x) = 1.

    Parameters
    ----------
    kernel : ShiftInvariantKernel, "rbf", "laplacian" or "cauchy", default="rbf"
        The kernel to approximate: `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, or
        `craftmaps.kernels.ShiftInvariant` with your own spectrum. A gamma of "scale" or "median"
        is computed from the rows given to `fit`.
    n_components : int, default=1024
        Number of output columns, two per frequency. If it is odd, the last column is
        sqrt(2) cos(<w, x> + b) with a random phase b. This column estimates the kernel too, but
        k(x, x) = 1 only on average.
    sampling : {"iid", "orthogonal", "structured", "qmc", "fastfood"}, default="iid"
        How the frequencies are drawn. A kernel that an option does not support is rejected.

        - "iid": independently. Unbiased for every kernel.
        - "orthogonal": in orthogonal blocks. Unbiased for Gaussian, Matern and isotropic
          `ShiftInvariant` kernels. The error is lower than with "iid", especially for wide kernels.
        - "structured": in orthogonal blocks made by signed Hadamard transforms, for Gaussian and
          Matern. It costs O(n_components log d) per row, and stores no matrix. With many
          components it has the lowest error of all options. Directions are not exactly uniform,
          which biases the estimate by less than 0.002 (measured).
        - "qmc": by a scrambled low-discrepancy sequence. Unbiased for Gaussian, Laplacian, Cauchy
          and Matern. The error is lower than with "iid", especially if X has few columns.
        - "fastfood": by two Hadamard transforms and a normal diagonal matrix (Le et al.). Unbiased
          for Gaussian and Matern. As fast as "structured", with an error about 10% above "iid".
    sequence : {"sobol", "halton"}, default="sobol"
        The sequence of "qmc". If X has more than 21,201 columns, each group of columns gets its
        own Sobol sequence; "halton" is limited to 1,000 columns.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. Pass an int for the same features in every call of `fit`.

    Attributes
    ----------
    kernel_ : ShiftInvariantKernel
        The kernel that is approximated, with a number as gamma.

    See Also
    --------
    Nystroem : Features from landmark rows, with lower error at equal size, but slower.
    RandomMaclaurin : Random features of dot-product kernels.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    Q. Le, T. Sarlos and A. Smola, "Fastfood: Computing Hilbert Space Expansions in Loglinear Time",
    ICML 2013.
    F. Yu, A. Suresh, K. Choromanski, D. Holtmann-Rice and S. Kumar, "Orthogonal Random Features",
    NIPS 2016.
    J. Yang, V. Sindhwani, H. Avron and M. Mahoney, "Quasi-Monte Carlo Feature Maps for
    Shift-Invariant Kernels", ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import FourierFeatures, Gaussian
    >>> X = np.random.default_rng(0).random((100, 20))
    >>> kernel = Gaussian(gamma=0.3)
    >>> feature_map = FourierFeatures(kernel, 2048, sampling="orthogonal", random_state=0)
    >>> Z = feature_map.fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - kernel(X)).max() < 0.05)
    True
    """

    kernel_: ShiftInvariantKernel
    _frequencies: Frequencies
    _phase: float

    def __init__(
        self,
        kernel: ShiftInvariantKernel | str = "rbf",
        n_components: int = 1024,
        *,
        sampling: str = "iid",
        sequence: str = "sobol",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.sampling = sampling
        self.sequence = sequence
        self.random_state = random_state

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        check_choice("sampling", self.sampling, tuple(DRAW))
        check_choice("sequence", self.sequence, ("sobol", "halton"))
        kernel = shift_invariant_kernel(self.kernel).resolved(X)
        options = {"sequence": self.sequence} if self.sampling == "qmc" else {}
        n = _n_frequencies(self.n_components)
        frequencies = DRAW[self.sampling](kernel, n, X.shape[1], rng, **options)
        phase = float(rng.uniform(0, 2 * np.pi))
        return {"kernel_": kernel, "_frequencies": frequencies, "_phase": phase}

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        return fourier_error(self.kernel_, X, self._n_features_out, rng)

    def _fill(self, X: Any, out: np.ndarray) -> None:
        pairs, odd = divmod(out.shape[1], 2)
        scale = out.dtype.type(1 / np.sqrt(pairs + odd))
        loop = cos_sin32 if out.dtype == np.float32 else cos_sin64

        def finish(block: np.ndarray) -> None:
            if odd:
                block[:, -1] = np.sqrt(2) * scale * np.cos(block[:, -1] + self._phase)
            loop(block, pairs, scale)

        # The projections are stored in the columns that the sines will overwrite.
        self._frequencies.fill(X, out, pairs, finish)

    def _check_stored(self) -> None:
        super()._check_stored()
        self._frequencies.check(self.n_features_in_, _n_frequencies(self._n_features_out))

    def _onnx(self, g: Any, x: str) -> str:
        pairs, odd = divmod(self._n_features_out, 2)
        p = self._frequencies.onnx(g, x, self.n_features_in_, pairs + odd)
        paired = g.gather(p, np.arange(pairs), axis=1) if odd else p
        columns = [g.add("Cos", paired), g.add("Sin", paired)] if pairs else []
        if odd:
            last = g.add("Add", g.gather(p, np.array([pairs]), axis=1), self._phase)
            columns.append(g.add("Mul", g.add("Cos", last), float(np.sqrt(2))))
        return str(g.add("Mul", g.concat(columns, axis=1), float(1 / np.sqrt(pairs + odd))))


def _n_frequencies(n_columns: int) -> int:
    """Return the number of frequencies: one per pair of columns, and one for an odd column."""
    return -(-n_columns // 2)

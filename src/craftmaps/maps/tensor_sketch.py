"""TensorSketch for polynomial kernels."""

from threading import local
from typing import Any

import numpy as np
from scipy import fft, sparse

from craftmaps.kernels import Polynomial, dot_product_kernel
from craftmaps.loops.sketch import sketch_dense, sketch_sparse
from craftmaps.maps.base import FeatureMap
from craftmaps.maps.parts.base import check_facts, is_within
from craftmaps.maps.planning.expected_errors import tensor_sketch_error
from craftmaps.storage.packing import storable
from craftmaps.threads import dense_block, for_each_block


@storable
class TensorSketch(FeatureMap):
    """TensorSketch features of a polynomial kernel (gamma <x, y> + coef0)^degree.

    The features are z(x) = IFFT(prod_k FFT(C_k x)), where C_k x is a count sketch of
    (sqrt(gamma) x, sqrt(coef0)) with a hash and a sign for each column. They are the sketch of the
    degree-fold tensor product of the row, which is never formed, and estimate the kernel without
    bias. With D components and degree p, the variance is [(N + c - q)^p + (2c - q)^p - 2c^p] / D up
    to terms in 1/D^2, where c = <x,y>^2, N = |x|^2 |y|^2 and q = sum_i x_i^2 y_i^2 for the extended
    rows. Lemma 6 of Pham and Pagh, (c^p + N^p) / D, assumes that products of signs are 4-wise
    independent, which holds only for p = 1.

    Parameters
    ----------
    kernel : Polynomial or "poly", default="poly"
        The kernel to approximate. "poly" is `Polynomial()` of degree 3.
    n_components : int, default=1024
        Number of output columns. The transform is fastest for a product of small primes.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draw. Pass an int for the same features in every call of `fit`.

    Attributes
    ----------
    kernel_ : Polynomial
        The kernel that is approximated.
    buckets_ : ndarray of shape (degree, n_features + 1)
        The hash of each column; the last entry belongs to the constant.
    signs_ : ndarray of shape (degree, n_features + 1)
        The sign of each column.

    See Also
    --------
    RandomMaclaurin : Lower error at equal size for dense rows, and any dot-product kernel.

    References
    ----------
    N. Pham and R. Pagh, "Fast and Scalable Polynomial Kernels via Explicit Feature Maps", KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import Polynomial, TensorSketch
    >>> X = np.random.default_rng(0).random((100, 20))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> kernel = Polynomial(degree=3)
    >>> Z = TensorSketch(kernel, n_components=4096, random_state=0).fit_transform(X)
    >>> bool(np.abs(Z @ Z.T - kernel(X)).max() < 0.1 * kernel(X).max())
    True
    """

    kernel_: Polynomial
    buckets_: np.ndarray
    signs_: np.ndarray

    def __init__(
        self,
        kernel: Polynomial | str = "poly",
        n_components: int = 1024,
        *,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, X: Any, y: Any, rng: np.random.Generator) -> dict[str, Any]:
        if isinstance(self.kernel, str) and self.kernel == "auto":
            raise ValueError(
                "TensorSketch approximates polynomial kernels only, so it cannot learn one; use "
                "kernel='auto' with CraftMap or RandomMaclaurin."
            )
        kernel = dot_product_kernel(self.kernel)
        if not isinstance(kernel, Polynomial):
            raise ValueError(
                f"TensorSketch approximates Polynomial kernels, got {kernel!r}; use "
                f"RandomMaclaurin for other dot-product kernels."
            )
        shape = (kernel.degree, X.shape[1] + 1)
        # Independent draws satisfy the 2-wise independence that Pham and Pagh require.
        buckets = rng.integers(0, self.n_components, shape, dtype=np.int32)
        signs = 1 - 2 * rng.integers(0, 2, shape, dtype=np.int8)
        return {"kernel_": kernel, "buckets_": buckets, "signs_": signs}

    def _expected_error(self, X: Any, rng: np.random.Generator) -> float:
        return tensor_sketch_error(self.kernel_, X, self._n_features_out, rng)

    def _fill(self, X: Any, out: np.ndarray) -> None:
        dtype, size = out.dtype, out.shape[1]
        signs = self.signs_.astype(dtype)
        signs[:, :-1] *= np.sqrt(dtype.type(self.kernel_.gamma))
        signs[:, -1] *= np.sqrt(dtype.type(self.kernel_.coef0))

        complex_type = np.result_type(dtype, np.complex64)
        own = local()  # each thread keeps its arrays: allocating them costs as much as an FFT

        def task(start: int, stop: int) -> None:
            n = stop - start
            if not hasattr(own, "sketch"):  # the first block is the largest
                own.sketch = np.empty((n, size), dtype)
                own.spectrum = np.empty((n, size // 2 + 1), complex_type)
            sketch, spectrum = own.sketch[:n], own.spectrum[:n]
            spectrum[:] = 1
            for bucket, sign in zip(self.buckets_, signs, strict=True):
                sketch[:] = 0
                sketch[:, bucket[-1]] = sign[-1]
                if sparse.issparse(X):
                    sketch_sparse(*_csr_block(X, start, stop, dtype), bucket, sign, sketch)
                else:
                    sketch_dense(dense_block(X, start, stop, dtype), bucket, sign, sketch)
                spectrum *= fft.rfft(sketch)
            np.fft.irfft(spectrum, n=size, out=out[start:stop])  # SciPy's irfft has no `out`

        # Blocks are twice as large as the cache, because each call takes the interpreter's lock.
        for_each_block(task, X.shape[0], 2 * dtype.itemsize * size)

    def _check_stored(self) -> None:
        super()._check_stored()
        shape = (self.kernel_.degree, self.n_features_in_ + 1)
        check_facts(
            self,
            signs_=self.signs_.shape == shape,
            buckets_=self.buckets_.shape == shape
            and is_within(self.buckets_, 0, self._n_features_out - 1),
        )

    def _onnx(self, g: Any, x: str) -> str:
        """Add the features to an ONNX graph, with complex numbers as pairs.

        ONNX has no inverse of a real transform. The transforms are in float64, because
        onnxruntime's float32 transforms lose up to three digits.
        """
        size, kernel = self._n_features_out, self.kernel_
        real, imaginary = [], []
        for bucket, sign in zip(self.buckets_, self.signs_, strict=True):
            constant = np.zeros(size)
            constant[bucket[-1]] = sign[-1] * np.sqrt(kernel.coef0)
            scaled = g.add("Mul", x, g.floats(sign[:-1] * np.sqrt(kernel.gamma)))
            sketch = g.scatter(g.repeated(constant, x), scaled, bucket[:-1])
            transformed = g.dft(g.double(g.add("Unsqueeze", sketch, [2])), size, inverse=0)
            real.append(g.add("Gather", transformed, np.int64(0), axis=2))
            imaginary.append(g.add("Gather", transformed, np.int64(1), axis=2))
        spectrum = g.complex_product(real, imaginary)
        stacked = g.concat([g.add("Unsqueeze", part, [2]) for part in spectrum], axis=2)
        whole = g.add("Gather", g.dft(stacked, size, inverse=1), np.int64(0), axis=2)
        return str(g.single(whole))


def _csr_block(X: Any, start: int, stop: int, dtype: Any) -> tuple[np.ndarray, ...]:
    """Return data, indices and indptr of some rows, in the dtypes of the compiled loop."""
    first, last = X.indptr[start], X.indptr[stop]
    return (
        np.require(X.data[first:last], dtype, ["C", "W"]),
        np.require(X.indices[first:last], np.int32, ["C", "W"]),
        np.asarray(X.indptr[start : stop + 1] - first, dtype=np.int64),
    )

"""Every feature map as ONNX."""

from typing import Any

import numpy as np
from onnx import TensorProto
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from craftmaps.maps import (
    CompositionalMap,
    CraftMap,
    FourierFeatures,
    ImageMap,
    MetricMap,
    Nystroem,
    RandomMaclaurin,
    ScaledMap,
    TensorSketch,
)
from craftmaps.models.onnx import projections
from craftmaps.models.onnx.graph import Graph
from craftmaps.models.onnx.kernels import gram


def features(g: Graph, x: str, feature_map: Any) -> str:
    """What a fitted map makes of the rows x."""
    if feature_map is None:
        return x
    if isinstance(feature_map, FrozenEstimator):
        return features(g, x, feature_map.estimator)
    if type(feature_map) not in _WRITERS:
        raise ValueError(
            f"export_onnx knows the maps and learners of craftmaps, got a "
            f"{type(feature_map).__name__}; put it into a Pipeline and convert that with skl2onnx."
        )
    check_is_fitted(feature_map, "_n_features_out")
    written: str = _WRITERS[type(feature_map)](g, x, feature_map)
    return written


def _random_maclaurin(g: Graph, x: str, fitted: RandomMaclaurin) -> str:
    columns = projections.exact_terms(g, x, fitted._exact)
    n_exact, n_in = fitted._exact.n_columns, fitted.n_features_in_
    n_random = fitted._n_features_out - n_exact
    if n_random:
        columns.append(projections.products(g, x, fitted._products, n_in, n_exact, n_random))
    return g.concat(columns, axis=1)


def _tensor_sketch(g: Graph, x: str, fitted: TensorSketch) -> str:
    """As complex numbers (re, im), since ONNX has no inverse of a transform of real numbers.

    In float64: onnxruntime's transforms in float32 lose up to three digits.
    """
    size, kernel = fitted._n_features_out, fitted.kernel_
    real, imaginary = [], []
    for bucket, sign in zip(fitted.buckets_, fitted.signs_, strict=True):
        constant = np.zeros(size)
        constant[bucket[-1]] = sign[-1] * np.sqrt(kernel.coef0)
        scaled = g.add("Mul", x, g.floats(sign[:-1] * np.sqrt(kernel.gamma)))
        sketch = projections.scatter(g, g.repeated(constant, x), scaled, bucket[:-1])
        exact = g.cast(g.add("Unsqueeze", sketch, [2]), TensorProto.DOUBLE)
        transformed = _dft(g, exact, size, inverse=0)
        real.append(g.add("Gather", transformed, np.int64(0), axis=2))
        imaginary.append(g.add("Gather", transformed, np.int64(1), axis=2))
    spectrum = projections.complex_product(g, real, imaginary)
    stacked = g.concat([g.add("Unsqueeze", part, [2]) for part in spectrum], axis=2)
    whole = g.add("Gather", _dft(g, stacked, size, inverse=1), np.int64(0), axis=2)
    return g.cast(whole, TensorProto.FLOAT)


def _dft(g: Graph, x: str, size: int, inverse: int) -> str:
    """The Fourier transform over axis 1 of (rows, size, 1 or 2)."""
    if g.opset < 20:
        return g.add("DFT", x, axis=1, inverse=inverse)
    return g.add("DFT", x, np.int64(size), np.int64(1), inverse=inverse)


def _craft(g: Graph, x: str, fitted: CraftMap) -> str:
    n_exact, n_in = fitted.n_exact_, fitted.n_features_in_
    n_up, n_out = fitted.n_up_ - n_exact, fitted._n_features_out - n_exact
    exact = projections.exact_terms(g, x, fitted._exact)
    if not n_out:
        return g.concat(exact, axis=1)
    fused = fitted.down_ is None
    if fitted._products is not None:
        first, width = (n_exact, n_out) if fused else (0, n_up)
        u = projections.products(g, x, fitted._products, n_in, first, width)
        if fitted._inside:
            u = g.add("Add", u, g.floats(fitted._inside * np.eye(1, width)))
    else:
        u = features(g, x, fitted.up_)
    z = u if fused else projections.down(g, u, fitted.down_, n_up, n_out)
    return g.concat([*exact, z], axis=1)


def _fourier(g: Graph, x: str, fitted: FourierFeatures) -> str:
    pairs, odd = divmod(fitted._n_features_out, 2)
    p = projections.frequencies(g, x, fitted._frequencies, fitted.n_features_in_)
    paired = g.gather(p, np.arange(pairs), axis=1) if odd else p
    columns = [g.add("Cos", paired), g.add("Sin", paired)] if pairs else []
    if odd:
        last = g.add("Add", g.gather(p, np.array([pairs]), axis=1), fitted._phase)
        columns.append(g.add("Mul", g.add("Cos", last), float(np.sqrt(2))))
    return g.add("Mul", g.concat(columns, axis=1), float(1 / np.sqrt(pairs + odd)))


def _nystroem(g: Graph, x: str, fitted: Nystroem) -> str:
    if isinstance(fitted.kernel_, str):  # precomputed
        columns = g.cast(g.gather(x, fitted.landmarks_, axis=1), TensorProto.DOUBLE)
    else:
        rows: Any = fitted.landmarks_
        rows = (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64)
        columns = gram(g, g.cast(x, TensorProto.DOUBLE), fitted.kernel_, rows)
    if fitted.whiten:
        whitening = np.zeros((len(fitted._whitening), fitted._n_features_out))
        whitening[:, : fitted.rank_] = fitted._whitening
        columns = g.add("MatMul", columns, whitening)
    return g.cast(columns, TensorProto.FLOAT)


def _compositional(g: Graph, x: str, fitted: CompositionalMap) -> str:
    inner = [features(g, x, inner_map) for inner_map in fitted.inner_maps_]
    n_in = sum(inner_map._n_features_out for inner_map in fitted.inner_maps_)
    n_constant = len(fitted._constant)
    columns = [g.repeated(fitted._constant, x)] if n_constant else []
    n_random = fitted._n_features_out - n_constant
    u = g.concat(inner, axis=1)
    columns.append(projections.products(g, u, fitted._products, n_in, n_constant, n_random))
    return g.concat(columns, axis=1)


def _scaled(g: Graph, x: str, fitted: ScaledMap) -> str:
    """Scaled in float64, as the map does."""
    scaled = g.cast(x, TensorProto.DOUBLE)
    if fitted.scale_ is not None:
        scaled = g.add("Mul", scaled, fitted.scale_)
    if fitted.offset_ is not None:
        scaled = g.add("Add", scaled, fitted.offset_)
    return _of_unit_rows(g, scaled, fitted)


def _metric(g: Graph, x: str, fitted: MetricMap) -> str:
    seen = g.cast(x, TensorProto.DOUBLE)
    if fitted.root_ is not None:
        seen = g.add("MatMul", seen, fitted.root_)
    return _of_unit_rows(g, seen, fitted)


def _of_unit_rows(g: Graph, x: str, fitted: ScaledMap | MetricMap) -> str:
    """Features of rows divided by their lengths, if that is so asked for."""
    if fitted.unit_norm:
        square = g.add("ReduceSum", g.add("Mul", x, x), np.array([1]), keepdims=1)
        length = g.add("Max", g.add("Sqrt", square), np.array(1e-300))  # rows of 0 stay so
        x = g.add("Div", x, length)
    return features(g, g.cast(x, TensorProto.FLOAT), fitted.feature_map_)


def _image(g: Graph, x: str, fitted: ImageMap) -> str:
    """Convolutions for the differences of Sobel and their parts along the directions."""
    around, down, across = fitted.grid()
    height, width = down.shape[1], across.shape[1]
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    pixels = g.reshape(x, -1, 1, height, width)
    slopes = g.add("Conv", pixels, np.stack([sobel, sobel.T])[:, None], pads=[1, 1, 1, 1])
    along = g.add("Conv", slopes, around[:, :, None, None])
    crossed = np.column_stack([-around[:, 1], around[:, 0]])
    aside = g.add("Abs", g.add("Conv", slopes, crossed[:, :, None, None]))
    cotangent = float(around[1, 0] / around[1, 1])
    part = g.add("Relu", g.add("Sub", along, g.add("Mul", aside, cotangent)))
    pooled = g.add("MatMul", down, g.add("MatMul", part, np.ascontiguousarray(across.T)))
    shares = g.reshape(pooled, -1, fitted._n_changed())
    total = g.add("ReduceSum", shares, [1], keepdims=1)
    least = float(np.finfo(np.float32).tiny)  # images without gradients stay rows of 0
    seen = g.add("Sqrt", g.add("Div", shares, g.add("Max", total, least)))
    return features(g, seen, fitted.feature_map_)


_WRITERS: dict[type, Any] = {
    RandomMaclaurin: _random_maclaurin,
    TensorSketch: _tensor_sketch,
    CraftMap: _craft,
    FourierFeatures: _fourier,
    Nystroem: _nystroem,
    CompositionalMap: _compositional,
    ScaledMap: _scaled,
    MetricMap: _metric,
    ImageMap: _image,
}
MAPS = tuple(_WRITERS)

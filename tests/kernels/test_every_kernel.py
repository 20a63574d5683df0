"""Laws that every kernel obeys."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import craftmaps
from cases import KERNELS, every_kernel, rows
from craftmaps import Nystroem
from craftmaps.kernels import Kernel, any_kernel
from craftmaps.models.onnx.export import onnx_model

X = rows(n=30)


def test_no_kernel_is_left_out():
    public = {getattr(craftmaps, name) for name in craftmaps.kernels.__all__}
    abstract = {kind for kind in public if getattr(kind, "__abstractmethods__", None)}
    of_functions = {craftmaps.ShiftInvariant}
    assert {type(kernel) for kernel in KERNELS} == public - abstract - of_functions


@every_kernel
def test_a_gram_matrix_is_positive_definite_and_has_its_diagonal(kernel):
    gram = kernel(X)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10 * np.trace(gram)
    np.testing.assert_allclose(gram.diagonal(), kernel.diagonal(X), rtol=1e-12)


@every_kernel
def test_the_gram_matrix_of_two_sets_of_rows_is_a_part_of_that_of_all(kernel):
    np.testing.assert_allclose(kernel(X[:10], X[10:]), kernel(X)[:10, 10:], rtol=1e-10)


@every_kernel
def test_sparse_rows_and_single_precision(kernel):
    np.testing.assert_allclose(kernel(sparse.csr_array(X)), kernel(X), rtol=1e-10)
    single = kernel(X.astype(np.float32))
    np.testing.assert_allclose(single, kernel(X), rtol=2e-5)


@every_kernel
def test_a_kernel_is_a_value(kernel):
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert copy == kernel
        assert hash(copy) == hash(kernel)
    kernel.check_resolved()
    assert any_kernel(kernel) == kernel.resolved(X) == kernel


@every_kernel
def test_a_short_name_means_the_kernel_with_its_defaults(kernel):
    name = type(kernel).short_name
    if name is not None:
        assert any_kernel(name) == type(kernel)()
    assert isinstance(kernel, Kernel)


@every_kernel
def test_a_kernel_is_saved_and_exported_with_its_map(kernel, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    feature_map = Nystroem(kernel, 8, whiten=False, random_state=0).fit(X)
    feature_map.save(tmp_path / "map.craft")
    loaded = craftmaps.load(tmp_path / "map.craft")
    assert loaded.kernel_ == feature_map.kernel_
    assert np.array_equal(loaded.transform(X), feature_map.transform(X))
    session = runtime.InferenceSession(onnx_model(feature_map).SerializeToString())
    (features,) = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(features, feature_map.transform(X), rtol=1e-5)

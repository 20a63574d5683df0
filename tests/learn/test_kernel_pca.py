"""Components from sums: those of scikit-learn's PCA on the features, however rows come."""

import pickle

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ExactKernelPCA
from sklearn.frozen import FrozenEstimator
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import craftmaps
from craftmaps import FourierFeatures, Gaussian, KernelPCA, TensorSketch, export_onnx
from craftmaps.scale.dask import fit, predict

pytestmark = pytest.mark.delicate

X = np.random.default_rng(0).standard_normal((500, 5)) * [3, 2, 1, 1, 1]
MAP = FrozenEstimator(FourierFeatures(Gaussian(0.1), 60, random_state=0).fit(X))
Z = MAP.transform(X)


@parametrize_with_checks(
    [KernelPCA(), KernelPCA(TensorSketch(n_components=20, random_state=0), 2, block_rows=7)]
)
def test_scikit_learn_finds_nothing(estimator, check):
    check(estimator)


def assert_is_pca(found, features, weights=None, k=4):
    """Equal to the singular vectors of weighted, centred features."""
    w = np.ones(len(features)) if weights is None else weights
    mean = w @ features / w.sum()
    _, s, V = np.linalg.svd((features - mean) * np.sqrt(w)[:, None], full_matrices=False)
    np.testing.assert_allclose(found.explained_variance_, s[:k] ** 2 / (w.sum() - 1), rtol=1e-9)
    np.testing.assert_allclose(
        found.explained_variance_ratio_, s[:k] ** 2 / (s**2).sum(), rtol=1e-9
    )
    signs = np.sign(np.sum(found.components_ * V[:k], axis=1))
    np.testing.assert_allclose(found.components_, signs[:, None] * V[:k], atol=1e-8)
    np.testing.assert_allclose(found.mean_, mean, atol=1e-12)
    expected = (Z - mean) @ (signs[:, None] * V[:k]).T
    np.testing.assert_allclose(found.transform(X), expected, atol=1e-8)


def test_equals_pca_of_the_features():
    pca = KernelPCA(MAP, 4).fit(X)
    assert_is_pca(pca, Z)
    exact = PCA(4, svd_solver="full").fit(Z)  # with its signs too
    np.testing.assert_allclose(pca.components_, exact.components_, atol=1e-8)
    np.testing.assert_allclose(pca.transform(X), exact.transform(Z), atol=1e-8)
    assert pca.get_feature_names_out().tolist() == [f"kernelpca{i}" for i in range(4)]
    frame = KernelPCA(MAP, 2).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["kernelpca0", "kernelpca1"]


def test_blocks_merging_forgetting_and_weights():
    weights = np.random.default_rng(1).uniform(0.5, 2, 500)
    assert_is_pca(KernelPCA(MAP, 4).fit(X, sample_weight=weights), Z, weights)
    stream = KernelPCA(MAP, 4, block_rows=64)
    for start in range(0, 500, 90):
        stream.partial_fit(X[start : start + 90])
    assert_is_pca(stream, Z)
    blocks = [X[:100], (X[100:300], None), (X[300:], np.zeros(200), None)]
    assert_is_pca(KernelPCA(MAP, 4).fit_blocks(blocks), Z)
    assert_is_pca(KernelPCA(MAP, 4).fit_blocks(iter(blocks)), Z)
    merged = KernelPCA(MAP, 4).fit(X[:200]).merge(KernelPCA(MAP, 4).fit(X[200:]))
    assert_is_pca(merged, Z)
    assert_is_pca(merged.forget(X[:100]), Z[100:])
    assert merged.n_samples_seen_ == 400
    fading = KernelPCA(MAP, 4, decay=0.99).partial_fit(X[:300]).partial_fit(X[300:])
    assert_is_pca(fading, Z, 0.99 ** np.arange(499, -1, -1.0))
    half = KernelPCA(MAP, 4).fit(sparse.csr_matrix(X))
    assert_is_pca(half, Z)


def test_a_map_is_fitted_on_rows_and_told_no_targets():
    class Curious(FourierFeatures):
        def fit(self, X, y=None):
            assert y is None
            return super().fit(X, y)

    pca = KernelPCA(Curious(n_components=30, random_state=0), 3).fit(X, np.arange(500))
    assert pca.feature_map_.n_features_in_ == 5
    assert make_pipeline(StandardScaler(), pca).fit_transform(X).shape == (500, 3)


def test_many_features_approach_the_exact_kernel():
    """With 16 times the features, a quarter of the error is left in the Gram matrix of scores."""
    exact = ExactKernelPCA(3, kernel="precomputed").fit(rbf_kernel(X, gamma=0.1))
    scores = exact.transform(rbf_kernel(X, gamma=0.1))
    errors = []
    for size in (64, 1024):
        feature_map = FourierFeatures(Gaussian(0.1), size, random_state=0)
        found = KernelPCA(feature_map, 3).fit(X).transform(X)
        errors.append(np.linalg.norm(found @ found.T - scores @ scores.T))
    assert errors[1] < 0.4 * errors[0]


@pytest.mark.parametrize("resumable", [False, True])
def test_files_and_pickles(resumable, tmp_path):
    pca = KernelPCA(MAP, 4).fit(X)
    pca.save(tmp_path / "pca.craft", resumable=resumable)
    again = craftmaps.load(tmp_path / "pca.craft")
    assert np.array_equal(again.transform(X), pca.transform(X))
    assert_is_pca(again, Z)
    assert_is_pca(pickle.loads(pickle.dumps(pca)), Z)
    if resumable:
        assert_is_pca(again.forget(X[:50]), Z[50:])
    else:
        with pytest.raises(ValueError, match="no sums of its rows"):
            again.partial_fit(X)


def test_a_checkpoint_goes_on(tmp_path):
    blocks = [(X[:200], None), (X[200:], None)]
    KernelPCA(MAP, 4).fit_blocks(blocks, checkpoint=tmp_path)
    assert_is_pca(KernelPCA(MAP, 4).fit_blocks(blocks, checkpoint=tmp_path), Z)


def test_onnx(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pca = KernelPCA(MAP, 4).fit(X)
    export_onnx(pca, tmp_path / "pca.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "pca.onnx")
    (found,) = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(found, pca.transform(X), atol=1e-5)
    from skl2onnx import to_onnx

    from craftmaps.models.onnx import register_converters

    register_converters()
    pipeline = make_pipeline(StandardScaler(), KernelPCA(MAP, 4)).fit(X)
    graph = to_onnx(pipeline, X[:1].astype(np.float32))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    (found,) = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(found, pipeline.transform(X), atol=1e-4)


def test_dask(tmp_path):
    rows = da.from_array(X, chunks=(120, 3))
    found = fit(KernelPCA(MAP, 4), rows)
    assert_is_pca(found, Z)
    lazily = predict(found, rows, "transform")
    assert lazily.shape == (500, 4)
    np.testing.assert_allclose(lazily.compute(), found.transform(X), atol=1e-12)
    fitted = fit(KernelPCA(FourierFeatures(Gaussian(0.1), 60, random_state=0), 4), rows)
    assert fitted.n_samples_seen_ == 500
    import dask.dataframe as dd
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=3)
    by_name = fit(KernelPCA(FourierFeatures(Gaussian(0.1), 60, random_state=0), 4), frame)
    assert by_name.feature_names_in_.tolist() == list("abcde")
    assert predict(by_name, frame, "transform").compute().shape == (500, 4)


def test_complaints():
    for wrong in (0, 2.5, "all"):
        with pytest.raises(ValueError, match="n_components must be None or an integer"):
            KernelPCA(MAP, wrong).fit(X)
    with pytest.raises(ValueError, match="n_components=61 must be at most the 60 features"):
        KernelPCA(MAP, 61).fit(X)
    flat = KernelPCA(MAP).fit(X[:10])  # ten rows vary in nine directions
    assert (flat.components_[9:] == 0).all()
    assert (flat.transform(X[10:])[:, 9:] == 0).all()
    with pytest.raises(ValueError, match="have no classes"):
        KernelPCA(MAP).begin(X, None, classes=[0, 1])
    other = FrozenEstimator(FourierFeatures(Gaussian(0.1), 60, random_state=1).fit(X))
    with pytest.raises(ValueError, match="different feature maps"):
        KernelPCA(MAP).fit(X).merge(KernelPCA(other).fit(X))

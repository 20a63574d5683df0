"""Codes: well formed, decoded as defined, and equal to one-vs-rest where they should be."""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits

from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
from craftmaps.learn.code_matrices import hadamard_code, random_code
from craftmaps.learn.codes import CodeMatrix, OneVsRest, code_for

FEATURE_MAP = RandomMaclaurin(Polynomial(degree=4), n_components=300, random_state=0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 64, y


def well_formed(code):
    distinct = len(np.unique(code, axis=0)) == len(code)
    return distinct and (code.min(axis=0) != code.max(axis=0)).all() and set(code.flat) == {-1, 1}


@pytest.mark.parametrize(
    ("n_classes", "n_bits"),
    [(2, 1), (2, 200), (3, 2), (4, 2), (8, 3), (7, 3), (10, 200), (100, 7), (1024, 10), (3000, 30)],
)
def test_random_codes_are_well_formed(n_classes, n_bits):
    for seed in range(5):
        code = random_code(n_classes, n_bits, np.random.default_rng(seed))
        assert code.shape == (n_classes, n_bits)
        assert well_formed(code)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 10, 16, 17, 100])
def test_hadamard_codes_have_equal_distances(n_classes):
    code = hadamard_code(n_classes, None, np.random.default_rng(0))
    assert well_formed(code)
    n_bits = code.shape[1]
    expected = (n_bits + 1) * np.eye(n_classes) - 1
    np.testing.assert_array_equal(code @ code.T, expected)


@pytest.mark.parametrize(
    ("n_classes", "n_bits"), [(10, 5), (10, 15), (10, 31), (3, 40), (5000, 64)]
)
def test_hadamard_codes_of_any_length(n_classes, n_bits):
    code = hadamard_code(n_classes, n_bits, np.random.default_rng(0))
    assert code.shape == (n_classes, n_bits)
    assert well_formed(code)


def test_bad_codes_are_refused():
    with pytest.raises(ValueError, match="row 0 of the code matrix occurs twice"):
        CodeMatrix([[1, -1], [-1, 1], [1, -1]], "l2")
    with pytest.raises(ValueError, match="column 1 of the code matrix is constant"):
        CodeMatrix([[1, 1], [-1, 1]], "l2")
    with pytest.raises(ValueError, match="finite matrix"):
        CodeMatrix([[1, np.nan], [-1, 1]], "l2")
    with pytest.raises(ValueError, match="decoding must be one of"):
        CodeMatrix([[1], [-1]], "l1")
    with pytest.raises(ValueError, match="needs a code matrix of 1 and -1"):
        CodeMatrix([[0.5], [-1]], "hamming")
    with pytest.raises(ValueError, match="rank 2; use 'l2'"):
        CodeMatrix([[1, 1], [1, -1], [-1, 1], [-1, -1]], "pseudo-inverse")
    rng = np.random.default_rng(0)
    for build in (random_code, hadamard_code):
        with pytest.raises(ValueError, match=r"n_bits=3 can tell 8 classes apart.*at least 4"):
            build(9, 3, rng)
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_bits must be None or an integer"):
            hadamard_code(4, wrong, rng)
    with pytest.raises(ValueError, match="has 2 rows, but there are 3 classes"):
        code_for([[1], [-1]], 3, None, "l2", rng)
    with pytest.raises(ValueError, match="codes must be"):
        code_for("one-vs-one", 3, None, "l2", rng)
    with pytest.raises(ValueError, match="n_bits is for"):
        code_for("one-vs-rest", 3, 7, "l2", rng)
    with pytest.raises(ValueError, match="decoding must be one of"):
        code_for("one-vs-rest", 3, None, "l1", rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decoding_is_what_its_definition_says(dtype):
    rng = np.random.default_rng(0)
    M = random_code(6, 20, rng)
    f = rng.standard_normal((50, 20)).astype(dtype)
    pairs = {
        "l2": -((f[:, None] - M) ** 2).sum(axis=2) / 2 / 20,
        "hamming": -(np.sign(f)[:, None] != M).sum(axis=2) / 20,
        "loss": -np.maximum(0, 1 - f[:, None] * M).sum(axis=2) / 20,
        "pseudo-inverse": f @ np.linalg.pinv(M),
    }
    for decoding, expected in pairs.items():
        found = CodeMatrix(M, decoding).scores(f)
        assert found.dtype == dtype
        difference = found - expected
        if decoding == "l2":  # up to a constant of the row
            difference -= difference[:, :1]
        assert np.abs(difference).max() < 1e-5


def test_l2_of_codewords_of_different_lengths():
    rng = np.random.default_rng(0)
    M, f = rng.standard_normal((6, 4)), rng.standard_normal((50, 4))
    nearest = ((f[:, None] - M) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(CodeMatrix(M, "l2").scores(f).argmax(axis=1), nearest)


def test_encoding():
    code = OneVsRest(3)
    np.testing.assert_array_equal(code.encode(np.array([2, 0])), [[-1, -1, 1], [1, -1, -1]])
    matrix = random_code(5, 8, np.random.default_rng(0))
    np.testing.assert_array_equal(CodeMatrix(matrix, "l2").encode(np.array([3, 3])), matrix[[3, 3]])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("codes", "n_bits", "decoding"),
    [
        ("hadamard", None, "l2"),
        ("hadamard", 15, "l2"),
        ("hadamard", None, "pseudo-inverse"),
        ("random", 40, "pseudo-inverse"),
        ("random", 10, "pseudo-inverse"),
    ],
)
def test_full_codes_predict_as_one_vs_rest(digits, codes, n_bits, decoding, fit_intercept):
    """W_code = W_onehot M, so nothing is gained or lost: prediction by prediction."""
    X, y = digits
    options = {"fit_intercept": fit_intercept, "alpha": 1e-3}
    expected = OnePassClassifier(FEATURE_MAP, **options).fit(X[:900], y[:900])
    model = OnePassClassifier(
        FEATURE_MAP, codes=codes, n_bits=n_bits, decoding=decoding, random_state=0, **options
    ).fit(X[:900], y[:900])
    np.testing.assert_array_equal(model.predict(X[900:]), expected.predict(X[900:]))


def test_hadamard_chooses_the_alpha_of_one_vs_rest(digits):
    X, y = digits
    models = [
        OnePassClassifier(FEATURE_MAP, codes=codes).fit(X[:900], y[:900])
        for codes in ("one-vs-rest", "hadamard")
    ]
    assert models[0].alpha_ == models[1].alpha_


def test_random_codes_approach_one_vs_rest(digits):
    X, y = digits
    expected = OnePassClassifier(FEATURE_MAP, alpha=1e-3).fit(X[:900], y[:900]).predict(X[900:])
    agree = {}
    for n_bits in (10, 4000):
        model = OnePassClassifier(
            FEATURE_MAP, alpha=1e-3, codes="random", n_bits=n_bits, random_state=0
        )
        agree[n_bits] = (model.fit(X[:900], y[:900]).predict(X[900:]) == expected).mean()
    assert agree[10] < agree[4000]
    assert agree[4000] > 0.99


@pytest.mark.parametrize("decoding", ["l2", "hamming", "loss"])
def test_the_papers_200_bits(digits, decoding):
    X, y = digits
    model = OnePassClassifier(FEATURE_MAP, codes="random", decoding=decoding, random_state=0)
    model.fit(X[:900], y[:900])
    assert model.code_matrix_.shape == (10, 200)
    assert model.coef_.shape == (200, 300)
    assert model.score(X[900:], y[900:]) > 0.93
    P = model.predict_proba(X[900:])
    assert P.shape == (len(X) - 900, 10)
    np.testing.assert_allclose(P.sum(axis=1), 1)


def test_own_matrix_for_two_classes(digits):
    X, y = digits
    odd = y % 2
    matrix = [[1.0, -1.0, 0.5], [-1.0, 1.0, 2.0]]
    model = OnePassClassifier(FEATURE_MAP, codes=matrix).fit(X[:900], odd[:900])
    scores = model.decision_function(X[900:])
    assert scores.shape == (len(X) - 900,)
    np.testing.assert_array_equal((scores > 0).astype(int), model.predict(X[900:]))
    assert model.score(X[900:], odd[900:]) > 0.93


@pytest.mark.slow
def test_ten_thousand_classes_cost_their_bits():
    """One column of sums per bit, where one per class would need more than the whole fit does."""
    n_classes, n_bits, n_features = 10_000, 256, 64
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, n_features)).astype(np.float32)
    y = rng.permutation(np.repeat(np.arange(n_classes), 2))
    X = centres[y] + 0.05 * rng.standard_normal((len(y), n_features), dtype=np.float32)
    feature_map = RandomMaclaurin(
        Polynomial(degree=2, gamma=1 / n_features), n_components=1024, random_state=0
    )
    model = OnePassClassifier(
        feature_map, codes="random", n_bits=n_bits, alpha=1e-3, block_rows=1024, random_state=0
    )
    model.fit(X[:100], y[:100] % 2)  # compiles outside the measurement
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    one_hot_sums = 8 * 1024 * n_classes
    assert peak < 0.9 * one_hot_sums
    assert model.coef_.shape == (n_bits, 1024)
    assert (model.predict(X[:500]) == y[:500]).mean() > 0.8

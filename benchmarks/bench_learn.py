"""The one-pass learner against the bare BLAS calls inside it, scikit-learn and SVC, on MNIST."""

import statistics
from pathlib import Path

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

from benchmarks.harness import DATA, once, peak_bytes, table
from craftmaps import CraftMap, OnePassClassifier, Polynomial

SIZE, DEGREE, BLOCK = 4096, 7, 4096
ALPHA = 1.0
TURNS = 3

STREAM = """
import numpy as np
from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin

def blocks(n_rows, size=50_000):
    rng = np.random.default_rng(0)
    for _ in range(n_rows // size):
        X = rng.standard_normal((size, 20), dtype=np.float32)
        yield X, (X[:, 0] * X[:, 1] > 0).astype(int)

feature_map = RandomMaclaurin(Polynomial(2), n_components=1024, random_state=0)
OnePassClassifier(feature_map).fit_blocks(blocks({n_rows}), classes=[0, 1])
print(resident("VmHWM"))
"""


def report() -> str:
    """Speed, error, calibration and memory, as a section of Markdown."""
    parts = ["## The one-pass learner\n"]
    if DATA is None or not (Path(DATA) / "mnist.npz").exists():
        parts.append("MNIST was skipped: CRAFTMAPS_DATA names no folder with mnist.npz.\n")
    else:
        data = mnist()
        parts += [against_blas(data), quality(data), against_sketch(data), against_svc(data)]
    return "\n".join([*parts, memory()])


def mnist() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of unit norm in float32, in the canonical split."""
    with np.load(Path(DATA or "") / "mnist.npz") as file:
        X, X_test = (normalize(file[name].astype(np.float32)) for name in ("X_train", "X_test"))
        return X, file["y_train"], X_test, file["y_test"]


def learner(size: int = SIZE, alpha: float | str = ALPHA, seed: int = 0) -> OnePassClassifier:
    """The classifier of this report."""
    feature_map = CraftMap(Polynomial(DEGREE), size, n_up=8 * size, random_state=seed)
    return OnePassClassifier(feature_map, alpha=alpha)


def bare(n_rows: int) -> None:
    """The rank-k updates of a fit in float32 and one Cholesky in float64, and nothing else."""
    block = np.random.default_rng(0).standard_normal((BLOCK, SIZE), dtype=np.float32)
    H = np.zeros((SIZE, SIZE), np.float32, order="F")
    for start in range(0, n_rows, BLOCK):
        rows = block[: min(BLOCK, n_rows - start)]
        blas.ssyrk(1.0, rows.T, 0.0, H, lower=1, overwrite_c=1)
    A = H.astype(np.float64)
    np.fill_diagonal(A, A.diagonal() + SIZE)
    lapack.dpotrf(A, lower=1, overwrite_a=1)


def against_blas(data: tuple[np.ndarray, ...]) -> str:
    """Whole fits against the BLAS inside them: ratios of works done one after the other."""
    X, y, _, _ = data
    learner().fit(X[:5000], y[:5000])  # compiles
    works = {
        "bare BLAS and Cholesky": lambda: bare(len(X)),
        f"fit, alpha={ALPHA:g}": lambda: learner().fit(X, y),
        'fit, alpha="gcv"': lambda: learner(alpha="gcv").fit(X, y),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(TURNS):
        for name, work in works.items():
            times[name].append(once(work))
    limit = times["bare BLAS and Cholesky"]
    rows = []
    for name, values in times.items():
        ratio = statistics.median(v / b for v, b in zip(values, limit, strict=True))
        rows.append([name, f"{statistics.median(values):.2f}", f"{ratio:.2f}"])
    title = f"### Fit: {len(X):,} MNIST rows, E = {SIZE}, D = 8E, degree {DEGREE}, 10 classes\n"
    return title + "\n" + table(["work", "seconds", "ratio (median of turns)"], rows)


def quality(data: tuple[np.ndarray, ...], seeds: int = 3) -> str:
    """Test error and calibration, as means over maps drawn from several seeds."""
    rows = []
    for alpha in (ALPHA, "gcv"):
        figures = np.array([measures(learner(alpha=alpha, seed=s), data) for s in range(seeds)])
        error, loss, gap, alpha_ = figures.mean(axis=0)
        spread = f"{figures[:, 0].min():.2f} to {figures[:, 0].max():.2f}"
        name = f"{alpha_:.3g}" + (" (gcv)" if alpha == "gcv" else "")
        rows.append([name, f"{error:.2f} % ({spread})", f"{loss:.3f}", f"{gap:.2f} %"])
    header = ["alpha", "test error (range)", "log-loss", "calibration error, 15 bins"]
    title = f"### Error and probabilities on the test rows, means of {seeds} seeds\n\n"
    return title + table(header, rows)


def measures(
    model: OnePassClassifier, data: tuple[np.ndarray, ...]
) -> tuple[float, float, float, float]:
    """Test error in %, log-loss, calibration error in %, and alpha, of a fit."""
    X, y, X_test, y_test = data
    P = model.fit(X, y).predict_proba(X_test)
    right = P.argmax(axis=1) == y_test
    loss = -np.log(P[np.arange(len(P)), y_test]).mean()
    gap = calibration_error(P.max(axis=1), right)
    return 100 * (1 - right.mean()), float(loss), 100 * gap, model.alpha_


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error: the mean gap between confidence and accuracy, over equal bins."""
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = (abs((confidence - right)[which == b].sum()) for b in range(bins))
    return float(sum(gaps) / len(right))


def against_sketch(data: tuple[np.ndarray, ...], n_rows: int = 20_000) -> str:
    """scikit-learn's polynomial sketch and ridge classifier, of the same size and degree."""
    X, y, X_test, y_test = data
    sketch = PolynomialCountSketch(
        gamma=1.0, degree=DEGREE, coef0=1, n_components=SIZE, random_state=0
    )
    models = {
        "PolynomialCountSketch + RidgeClassifier": make_pipeline(sketch, RidgeClassifier(ALPHA)),
        "OnePassClassifier": learner(),
    }
    times = {
        name: once(lambda m=model: m.fit(X[:n_rows], y[:n_rows])) for name, model in models.items()
    }
    slow = times["PolynomialCountSketch + RidgeClassifier"]
    rows = [
        [name, f"{seconds:.1f}", f"{slow / seconds:.1f}", f"{error(models[name], X_test, y_test)}"]
        for name, seconds in times.items()
    ]
    return f"### The same fit on {n_rows:,} rows against scikit-learn\n\n" + table(
        ["work", "seconds", "times faster", "test error"], rows
    )


def against_svc(data: tuple[np.ndarray, ...], n_rows: int = 10_000) -> str:
    """Time to the test error of an exact SVC, and speed of prediction."""
    X, y, X_test, y_test = data
    svc = SVC(kernel="poly", degree=DEGREE, gamma=1.0, coef0=1.0)
    fit = once(lambda: svc.fit(X[:n_rows], y[:n_rows]))
    wanted = [1.0]
    predict = once(lambda: wanted.__setitem__(0, float((svc.predict(X_test) != y_test).mean())))
    rows = [
        [f"SVC on {n_rows:,} rows", f"{fit:.1f}", f"{100 * wanted[0]:.2f} %", rate(X_test, predict)]
    ]
    for size in (512, 1024, 2048, 4096, 8192):
        model = learner(size)
        fit = once(lambda m=model: m.fit(X, y))
        model.predict(X_test[:10])
        predict = once(lambda m=model: m.predict(X_test))
        rows.append(
            [
                f"OnePassClassifier on {len(X):,} rows, E = {size}",
                f"{fit:.1f}",
                error(model, X_test, y_test),
                rate(X_test, predict),
            ]
        )
        if 1 - model.score(X_test, y_test) <= wanted[0]:
            break
    return "### To the error of SVC, and prediction\n\n" + table(
        ["work", "fit, seconds", "test error", "rows/s predicted"], rows
    )


def memory() -> str:
    """Peak memory of a stream, which must not depend on its length."""
    peak_bytes(STREAM.replace("{n_rows}", "50_000"))  # compiles
    peaks = {n: peak_bytes(STREAM.replace("{n_rows}", str(n))) for n in (1_000_000, 10_000_000)}
    first = peaks[1_000_000]
    rows = [[f"{n:,}", f"{p / 1e6:.0f} MB", f"{p / first:.3f}"] for n, p in peaks.items()]
    return "### Peak memory of a stream, E = 1,024\n\n" + table(["rows", "peak", "ratio"], rows)


def error(model: object, X: np.ndarray, y: np.ndarray) -> str:
    return f"{100 * (1 - model.score(X, y)):.2f} %"  # type: ignore[attr-defined]


def rate(X: np.ndarray, seconds: float) -> str:
    return f"{len(X) / seconds:,.0f}"

"""A fuzzer that knows the structure of model files.

Small models of every map and learner are saved, then altered: arrays get other values, shapes and
types, fields are changed, removed, added and exchanged between models, classes are swapped. Every
altered file has a valid checksum. A worker process loads and uses each of them. The file may be
refused with a ValueError, when it is loaded or when the model is used, or it may work. Any other
exception, a crash of the process and a process that hangs are findings.

    python tests/models/fuzz_models.py 1000 --seed 7     # cases
    python tests/models/fuzz_models.py --case 7 123      # one of them, with its traceback
"""

import argparse
import contextlib
import copy
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import craftmaps
from craftmaps import (
    AutoMap,
    Composed,
    CompositionalMap,
    CraftMap,
    DotProduct,
    FourierFeatures,
    Gaussian,
    ImageMap,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    LevelsMap,
    Matern,
    MetricMap,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
    TableEncoder,
    TensorSketch,
    Window,
)
from craftmaps.loops.sketch import sketch_dense
from craftmaps.storage import array_file
from craftmaps.storage.fields import _storable

sys.path.append(str(Path(__file__).parents[1]))  # where a worker finds the common cases
import cases

SECONDS_PER_CASE = 60  # of computing, among them those of the compiler
BYTES_PER_WORKER = 6 << 30
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a file here waits for no disk
NUMBERS = [-1, 0, 1, 2, 3, 5, 8, 12, 13, 16, 100, 255, 65_536, 2**31, 2**63 - 1]
FLOATS = [0.0, -1.0, 0.5, 1e-300, 1e300, float("nan"), float("inf")]
OTHERS = [
    None,
    True,
    "poly",
    "auto",
    "check",
    {"list": []},
    {"dict": []},
    {"float": "nan"},
    "x" * 9,
]
TYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32"]
TYPES += ["float64", "float8_e4m3fn", "complex128", "O"]
HIDING = ["_check_stored", "check", "is_sound", "stays_within", "_fill", "fill", "transform"]
HIDING += [
    "predict",
    "encode",
    "scores",
    "check_rows",
    "value",
    "resolved",
    "__class__",
    "__dict__",
]

ROWS = np.random.default_rng(0).random((40, 6)) / 6
LABELS = np.array(["ape", "bee", "cat"])[np.arange(40) % 3]
TABLE = {
    "number": [None, *np.exp(9 * ROWS[1:, 0])],
    "tail": ROWS[:, 1] ** 9,
    "flag": [None, 1.0] * 20,
    "price": [f"${i + 1}.50" for i in range(40)],
    "label": LABELS,
    "text": [None, *(f"{label} {i}" for i, label in enumerate(LABELS[1:]))],
    "day": np.arange(40).astype("datetime64[D]"),
}


def models():
    """Small models, one for each way in which the parts of a file can be put together."""
    poly = Polynomial(3)
    maps = {
        "maclaurin": RandomMaclaurin(poly, 24, random_state=0),
        "maclaurin-complex": RandomMaclaurin(poly, 25, complex_to_real=True, random_state=0),
        "maclaurin-h01": RandomMaclaurin(poly, 24, h01="append", random_state=0),
        "maclaurin-gaussian": RandomMaclaurin(poly, 24, projection="gaussian", random_state=0),
        "series": RandomMaclaurin(DotProduct([1.0, 0.5, 0.25], radius=9.0), 24, random_state=0),
        "tensor-sketch": TensorSketch(poly, 16, random_state=0),
        "craft": CraftMap(poly, 20, n_up=60, h01="none", random_state=0),
        "craft-append": CraftMap(poly, 40, h01="append", random_state=0),
        "craft-srht": CraftMap(poly, 20, n_up=60, down="srht", h01="none", random_state=0),
        "craft-sparse": CraftMap(poly, 20, n_up=60, down="sparse", h01="none", random_state=0),
        "craft-gaussian": CraftMap(poly, 20, n_up=60, down="gaussian", h01="up", random_state=0),
        "craft-exact": CraftMap(poly, 100, random_state=0),
        "craft-of-map": CraftMap(n_components=20, up=RandomMaclaurin("exp", 50), random_state=0),
        "craft-sketch": CraftMap(poly, 20, up="tensor-sketch", random_state=0),
        "fourier": FourierFeatures(Gaussian(0.5), 21, random_state=0),
        "fourier-structured": FourierFeatures(
            Gaussian(0.5), 150, sampling="structured", random_state=0
        ),
        "fourier-fastfood": FourierFeatures(Gaussian(0.5), 31, sampling="fastfood", random_state=0),
        "nystroem": Nystroem(Matern(nu=2.5), 8, random_state=0),
        "nystroem-raw": Nystroem("poly", 8, whiten=False, random_state=0),
        "nystroem-name": Nystroem("sigmoid", 8, kernel_params={"gamma": 0.1}, random_state=0),
        "nystroem-composed": Nystroem(Composed(poly, Gaussian()), 8, random_state=0),
        "composed": CompositionalMap(Composed(Polynomial(2), Gaussian()), 16, random_state=0),
        "scaled": ScaledMap(CraftMap(poly, 12, random_state=0), columns="standard"),
        "levels": LevelsMap(TensorSketch(poly, 8, random_state=0), levels=[(0, 0.0), (0, 1.0)]),
        "scaled-matrix": ScaledMap(
            TensorSketch(poly, 8, random_state=0), weights=np.ones((ROWS.shape[1], ROWS.shape[1]))
        ),
        "metric": MetricMap(TensorSketch(poly, 8, random_state=0), power=0.25),
        "image": ImageMap(TensorSketch(poly, 8, random_state=0), cells=2, shape=(2, 3)),
        "auto": AutoMap(task="classification", budget=8, random_state=0),
    }
    maps |= {f"case-{case.name}": case.estimator for case in cases.CASES}
    maps |= {f"kernel-{kernel!r}": Nystroem(kernel, 8, random_state=0) for kernel in cases.KERNELS}
    for name, feature_map in maps.items():
        yield name, feature_map.fit(ROWS, LABELS), {}
    yield (
        "nystroem-sparse",
        Nystroem(Gaussian(0.5), 8, random_state=0).fit(sparse.csr_array(ROWS)),
        {},
    )
    yield (
        "nystroem-given",
        Nystroem("precomputed", 4, random_state=0).fit(ROWS[:6] @ ROWS[:6].T),
        {},
    )
    sketch = TensorSketch(poly, 16, random_state=0)
    learners = {
        "classifier": OnePassClassifier(sketch),
        "classifier-craft": OnePassClassifier(CraftMap(poly, 20, random_state=0)),
        "classifier-frozen": OnePassClassifier(FrozenEstimator(clone(sketch).fit(ROWS))),
        "classifier-codes": OnePassClassifier(sketch, codes="random", n_bits=5, random_state=0),
        "classifier-inverse": OnePassClassifier(codes=np.eye(3), decoding="pseudo-inverse"),
        "classifier-discriminant": OnePassClassifier(sketch, decoding="discriminant"),
        "classifier-folds": OnePassClassifier(sketch, alpha=[0.1, 1.0]),
        "regressor": OnePassRegressor(sketch),
        "regressor-structured": OnePassRegressor(
            FourierFeatures(Gaussian(0.5), 150, sampling="structured", random_state=0)
        ),
        "regressor-two": OnePassRegressor(maps["maclaurin"]),
    }
    for name, learner in learners.items():
        two = ROWS[:, :2] if name.endswith("two") else ROWS[:, 0]
        learner.fit(ROWS, LABELS if name.startswith("classifier") else two)
        yield name, learner, {"resumable": False}
        yield f"{name}-resumable", learner, {"resumable": True}
    yield "kernel-classifier", KernelClassifier(sketch, alpha=1.0).fit(ROWS, LABELS), {}
    two_classes = KernelClassifier(sketch, alpha=1.0).fit(ROWS, LABELS[0] == LABELS)
    yield "kernel-classifier-two", two_classes, {}
    known = OnePassRegressor(sketch, decay=0.9).fit(ROWS, ROWS[:, :2])
    yield "regressor-uncertainty", known, {"uncertainty": True}
    few = OnePassRegressor(sketch, alpha=1.0).fit(ROWS[:9], ROWS[:9, 0])
    yield "regressor-uncertainty-few", few, {"uncertainty": True}
    forgetful = OnePassRegressor(sketch).fit(ROWS, ROWS[:, 0]).forget(ROWS[:9], ROWS[:9, 0])
    yield "regressor-forgetful", forgetful, {"resumable": True}
    window = Window(OnePassClassifier(sketch), 2)
    for start in range(0, 40, 10):
        window.partial_fit(ROWS[start : start + 10], LABELS[start : start + 10])
    yield "window", window, {}
    yield "components", KernelPCA(sketch, 3).fit(ROWS), {}
    yield "components-resumable", KernelPCA(sketch, 3).fit(ROWS), {"resumable": True}
    robust = KernelRegressor(sketch, loss="huber", alpha=1.0).fit(ROWS, ROWS[:, 0])
    yield "kernel-regressor", robust, {}
    kinds = {"text": "text"}
    yield "table", TableEncoder(kinds, dtype=np.float64).fit(TABLE), {}
    yield "table-quantiles", TableEncoder(kinds, scaling="quantile").fit(TABLE), {}
    yield "table-unscaled", TableEncoder(kinds, scaling="none").fit(TABLE), {}
    yield "table-array", TableEncoder().fit(np.where(ROWS < 0.1, ROWS, np.nan)), {}
    yield "table-sparse", TableEncoder().fit(sparse.csr_array(ROWS)), {}
    yield "table-classifier", KernelClassifier(sketch, alpha=1.0).fit(TABLE, LABELS), {}
    regressor = KernelRegressor(None, alpha=1.0, encoder=TableEncoder(kinds)).fit(TABLE, ROWS[:, 0])
    yield "table-regressor", regressor, {"resumable": True}
    local = {"feature_map": "local", "budget": 15, "random_state": 0}
    yield "local-classifier", KernelClassifier(**local).fit(ROWS, LABELS), {}
    yield "local-regressor", KernelRegressor(**local).fit(ROWS, ROWS[:, 0]), {}


@cache
def specimens():
    """Name, header and arrays of each saved model."""
    saved = []
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, options in models():
            path = Path(folder, "model.craft")
            model.save(path, **options)
            saved.append((name, *array_file.read(path, "model")))
    return saved


@dataclass
class Place:
    """Somewhere in the tree of a file: `holder[key]` is a value."""

    holder: object
    key: object

    @property
    def value(self):
        return self.holder[self.key]

    @value.setter
    def value(self, value):
        self.holder[self.key] = value


def places(tree):
    """Every place of a tree, from the outside to the inside."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(pairs):
        yield Place(tree, key)
        if isinstance(value, dict | list):
            yield from places(value)


def states(tree):
    """The fields of every object in a tree."""
    return [p.value for p in places(tree) if p.key == "state" and isinstance(p.value, dict)]


def pick(rng, items):
    items = list(items)
    return items[rng.integers(len(items))]


def altered(rng):
    """The name of a specimen, and its header and arrays with some alterations."""
    name, header, arrays = pick(rng, specimens())
    header, arrays = copy.deepcopy(header), dict(arrays)
    for _ in range(1 + rng.integers(3)):
        alter = pick(rng, ALTERATIONS)
        alter(rng, header, arrays)
    return name, header, arrays


def other_number(rng, header, arrays):
    found = [p for p in places(header) if type(p.value) in (int, float)]
    if found:
        place = pick(rng, found)
        change = rng.integers(3)
        if change == 0:
            place.value = place.value + pick(rng, [-1, 1])
        else:
            place.value = pick(rng, NUMBERS)


def other_scalar(rng, header, arrays):
    found = [p for p in places(header) if not isinstance(p.value, dict | list)]
    if not found:
        return
    pick(rng, found).value = copy.deepcopy(pick(rng, [*NUMBERS, *OTHERS, {"float": "inf"}]))


def other_value(rng, header, arrays):
    """Any value, whole objects among them, becomes another one."""
    place = pick(rng, places(header))
    other = pick(rng, [header, pick(rng, specimens())[1]])
    place.value = copy.deepcopy(pick(rng, places(other)).value)


def removed_field(rng, header, arrays):
    filled = [state for state in states(header) if state]
    if filled:
        state = pick(rng, filled)
        del state[pick(rng, state)]


def added_field(rng, header, arrays):
    every = states(header)
    if not every:
        return
    state = pick(rng, every)
    other = pick(rng, places(pick(rng, specimens())[1])).value
    value = pick(rng, [1, True, "x", None, {"function": "_as_floats"}, other])
    names = [p.key for p in places(pick(rng, specimens())[1]) if isinstance(p.key, str)]
    state[pick(rng, [*HIDING, *names])] = copy.deepcopy(value)


def other_class(rng, header, arrays):
    found = [p for p in places(header) if p.key == "class"]
    if found:
        pick(rng, found).value = pick(rng, [*_storable, "system", "builtins.eval"])


def other_type(rng, header, arrays):
    """An array is read as another type, or is of another type in the file."""
    found = [p for p in places(header) if p.key == "dtype"]
    if rng.integers(2) and found:
        pick(rng, found).value = pick(rng, TYPES)
    elif arrays:
        name = pick(rng, arrays)
        with np.errstate(all="ignore"):
            arrays[name] = arrays[name].astype(pick(rng, TYPES[:10]))


def other_shape(rng, header, arrays):
    if not arrays:
        return
    name = pick(rng, arrays)
    array = arrays[name]
    changes = [
        lambda: array[:-1],
        lambda: array[:1],
        lambda: array[:0],
        lambda: array.T,
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: np.concatenate([array, array]),
        lambda: np.repeat(array, 2, axis=-1),
        lambda: array[..., :-1],
        lambda: np.array(3, array.dtype),
        lambda: np.zeros((0,) * array.ndim, array.dtype),
    ]
    if array.ndim:
        arrays[name] = pick(rng, changes)()


def other_entries(rng, header, arrays):
    """Some entries are at the edges of their type, or of the array."""
    full = [name for name, array in arrays.items() if array.size]
    if not full:
        return
    name = pick(rng, full)
    array = arrays[name] = arrays[name].copy()
    if array.dtype.kind in "iu" and rng.integers(2):
        array = arrays[name] = array.astype(
            pick(rng, ["int8", "uint8", "int16", "int64", "uint64"])
        )
    where = rng.integers(array.size, size=1 + rng.integers(3))
    where = pick(rng, [where, slice(None), -1, 0])
    if array.dtype.kind == "f":
        value = pick(rng, FLOATS)
    elif array.dtype.kind == "b":
        value = bool(rng.integers(2))
    else:
        limits = np.iinfo(array.dtype)
        value = pick(rng, [limits.min, limits.max, limits.max - 10, *NUMBERS, array.size])
        value = min(max(value, limits.min), limits.max)
    with np.errstate(all="ignore"):
        array.flat[where] = value


def exchanged_arrays(rng, header, arrays):
    if arrays:
        mine, other = pick(rng, arrays), pick(rng, specimens())[2]
        source = pick(rng, [other, arrays])
        if source:
            arrays[mine] = source[pick(rng, source)]


ALTERATIONS = [
    other_number,
    other_number,
    other_scalar,
    other_value,
    removed_field,
    added_field,
    other_class,
    other_type,
    other_shape,
    other_shape,
    other_entries,
    other_entries,
    exchanged_arrays,
]


def use(model, kind):
    """All that can be done with a loaded model, on rows of one of three kinds."""
    begun = model._begun if isinstance(model, Window) else model
    n_columns = getattr(begun, "n_features_in_", 6)
    X = np.random.default_rng(1).random((5, min(n_columns, 10_000))) / 6
    X = [X, X.astype(np.float32), sparse.csr_array(X)][kind]
    if isinstance(model, Window):
        model = model.model()
    if hasattr(model, "feature_names_in_"):
        X = {name: column[:5] for name, column in TABLE.items()}
    if hasattr(type(model), "transform"):
        model.transform(X)
        if isinstance(model, KernelPCA) and model.explained_variance_ratio_.size:
            model.partial_fit(X).transform(X)
        return
    model.predict(X)
    if isinstance(model, OnePassRegressor) and model._stream.conformal is not None:
        model.predict_interval(X)
        model.sample_y(X)
    if isinstance(model, OnePassClassifier):
        model.predict_set(X)
        model.predict_proba(X)
        model.decision_function(X)
    if not hasattr(model, "partial_fit"):  # a loss that takes several passes
        return
    if isinstance(model, OnePassClassifier):
        model.partial_fit(X, model.classes_[np.arange(5) % len(model.classes_)])
    else:
        model.partial_fit(X, np.ones((5, 2)) if not model._one_target else np.ones(5))
    model.predict(X)


def run_case(seed, case, path):
    """ "refused", "refused when used" or "used"; any other exception passes."""
    rng = np.random.default_rng([seed, case])
    _, header, arrays = altered(rng)
    try:
        array_file.write(path, "model", header, arrays)
    except (ValueError, TypeError, OverflowError):  # no such file can be written
        return "refused"
    try:
        model = craftmaps.load(path)
    except ValueError:
        return "refused"
    try:
        use(model, rng.integers(3))
    except ValueError:
        return "refused when used"
    return "used"


def check_that_bounds_are_checked():
    """Raise unless a compiled loop notices a bucket outside of its output."""
    try:
        sketch_dense(np.ones((1, 2)), np.array([0, 9], np.int32), np.ones(2), np.zeros((1, 4)))
    except IndexError:
        return
    raise RuntimeError("compiled loops do not check their bounds")


def work(seed, first, last):
    """Run cases in this process; a line is printed before and after each."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (BYTES_PER_WORKER, BYTES_PER_WORKER))
    if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        check_that_bounds_are_checked()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder, "model.craft")
        for _, header, arrays in specimens():  # most loops are compiled here, if they are not yet
            array_file.write(path, "model", header, arrays)
            for kind in range(3):
                with contextlib.suppress(ValueError):  # some learners take no more rows
                    use(craftmaps.load(path), kind)
        for case in range(first, last):
            print("case", case, flush=True)
            signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CASE)  # ends the process
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    outcome = run_case(seed, case, path)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                outcome = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
                outcome += f": {str(error)[:80]!r}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            print("outcome", outcome.replace("\n", " "), flush=True)


def fuzz(n_cases, seed=0, n_processes=2, cache_folder=None):
    """Run cases in processes of their own; returns how often each outcome was, and the findings.

    With `cache_folder`, compiled loops check their bounds. They are compiled anew, because the
    checks are part of the code, and cached in that folder.
    """
    environment = os.environ | {
        "MALLOC_CHECK_": "3",  # newer versions of glibc check a part of this anyway
        "MALLOC_PERTURB_": "165",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    if cache_folder is not None:
        environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache_folder)}
    edges = np.linspace(0, n_cases, n_processes + 1).astype(int)
    started = [_Worker(seed, int(a), int(b), environment) for a, b in pairwise(edges)]
    counts, findings = Counter(), []
    with ThreadPoolExecutor(n_processes) as threads:  # a process waits until its lines are read
        outcomes = chain(*threads.map(lambda worker: list(worker.outcomes()), started))
    for case, outcome in outcomes:
        expected = outcome in ("refused", "refused when used", "used")
        counts[outcome if expected else "finding"] += 1
        if not expected:
            findings.append((case, outcome))
    return counts, findings


class _Worker:
    """A process that runs a range of cases, and is started again behind one that ends it."""

    def __init__(self, seed, first, last, environment):
        self.seed, self.first, self.last, self.environment = seed, first, last, environment
        self.process = self._start()

    def _start(self):
        command = [
            sys.executable,
            __file__,
            "--work",
            *map(str, (self.seed, self.first, self.last)),
        ]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process runs)
        return subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=self.errors, text=True
        )

    def outcomes(self):
        while self.first < self.last:
            case = None
            for line in self.process.stdout:
                word, _, rest = line.strip().partition(" ")
                if word == "case":
                    case = int(rest)
                elif word == "outcome":
                    yield case, rest
                    self.first = case + 1
            self.process.stdout.close()
            code = self.process.wait()
            self.errors.seek(0)
            last_words = self.errors.read().decode(errors="replace")[-300:]
            self.errors.close()
            if case is None:
                raise RuntimeError(f"a worker did not begin: {last_words}")
            if self.first < self.last:
                yield case, f"the process ended with {code}: {last_words!r}"
                self.first = case + 1
                if self.first < self.last:
                    self.process = self._start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cache", help="a folder: compiled loops check their bounds")
    parser.add_argument("--case", type=int, nargs=2, metavar=("SEED", "CASE"))
    parser.add_argument("--work", type=int, nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work)
    elif given.case:
        with tempfile.TemporaryDirectory() as folder:
            print(run_case(*given.case, Path(folder, "model.craft")))
    else:
        counts, findings = fuzz(given.cases, given.seed, given.processes, given.cache)
        for case, outcome in findings:
            print(f"case {case}: {outcome}")
        print(dict(counts))


if __name__ == "__main__":
    main()

"""Named data sets: files with their checksums, OpenML from scikit-learn's own cache, splits."""

import gzip
import hashlib
import json
import os
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from reproduction import datasets

RNG = np.random.default_rng(0)
ROWS = RNG.integers(0, 256, (12, 4)).astype(np.uint8)
LABELS = np.arange(12, dtype=np.int8) % 3
needs_data = pytest.mark.skipif(
    "CRAFTMAPS_DATA" not in os.environ, reason="CRAFTMAPS_DATA is not set"
)
SHAPES = {  # training rows, test rows, columns
    "mnist": (60000, 10000, 784),
    "usps": (7291, 2007, 256),
    "pendigits": (7494, 3498, 16),
    "letter": (15000, 5000, 16),
    "coil100": (7200, None, 1024),
    "a9a": (32561, 16281, 123),
    "adult": (32561, 16281, 123),
    "spambase": (4601, None, 57),
    "nursery": (12960, None, 27),
    "cod-rna": (59535, 271617, 8),
    "ijcnn1": (49990, 91701, 22),
    "covertype": (581012, None, 54),
    "california_housing": (20640, None, 8),
    "kin8nm": (8192, None, 8),
    "protein": (45730, None, 9),
    "digits": (1797, None, 64),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for own files, and no way to OpenML: a proxy on a port where nobody listens."""
    monkeypatch.setenv("CRAFTMAPS_DATA", str(tmp_path))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    for variable in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    return tmp_path


@needs_data
@pytest.mark.parametrize("name", SHAPES)
def test_every_set_has_its_shape(name):
    data = datasets.load(name)
    n_train, n_test, n_columns = SHAPES[name]
    assert data.X_train.shape == (n_train, n_columns)
    assert data.y_train.shape == (n_train,)
    assert data.X_train.dtype == np.float32
    if n_test is None:
        assert data.X_test is None
        assert data.y_test is None
    else:
        assert data.X_test.shape == (n_test, n_columns)
        assert data.y_test.shape == (n_test,)
        assert data.X_test.dtype == np.float32


def test_rows_are_float32_and_labels_as_they_are(folder):
    test_rows = ROWS[:5].astype(np.float64) / 7
    np.savez(
        folder / "gisette.npz", X_train=ROWS, y_train=LABELS, X_test=test_rows, y_test=LABELS[:5]
    )
    data = datasets.load("gisette")
    np.testing.assert_array_equal(data.X_train, ROWS)
    np.testing.assert_array_equal(data.X_test, test_rows.astype(np.float32))
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    np.testing.assert_array_equal(data.y_test, LABELS[:5])
    assert data.y_train.dtype == np.int8
    parts = [ROWS.astype("<f4"), LABELS.astype("<f8"), test_rows.astype("<f4")]
    content = b"".join(part.tobytes() for part in [*parts, LABELS[:5].astype("<f8")])
    assert data.sha256 == hashlib.sha256(content).hexdigest()
    with pytest.raises(FrozenInstanceError):
        data.name = "another"


def test_sets_without_test_rows_and_images_as_rows(folder):
    np.savez(folder / "timit.npz", X=ROWS.reshape(12, 2, 2), y=LABELS, angle=LABELS)
    data = datasets.load("timit")
    np.testing.assert_array_equal(data.X_train, ROWS)
    assert data.X_test is None
    assert data.y_test is None


def test_other_rows_under_a_known_name_are_refused(folder):
    np.savez(folder / "mnist.npz", X_train=ROWS, y_train=LABELS, X_test=ROWS, y_test=LABELS)
    with pytest.raises(ValueError, match=r"not hold .* known as 'mnist' \(60,000 .* checksum"):
        datasets.load("mnist")


@needs_data
def test_types_and_compression_of_an_archive_do_not_matter(tmp_path, monkeypatch):
    """Another archive with the numbers of a known set is that set; one other number is noticed."""
    known = datasets.load("pendigits")
    monkeypatch.setenv("CRAFTMAPS_DATA", str(tmp_path))
    parts = {
        "X_train": known.X_train.astype(np.float64),
        "y_train": known.y_train.astype(np.int64),
        "X_test": known.X_test.astype(np.int16),
        "y_test": known.y_test.astype(np.float32),
    }
    np.savez(tmp_path / "pendigits.npz", **parts)
    assert datasets.load("pendigits").sha256 == known.sha256
    parts["y_test"][-1] += 1
    np.savez(tmp_path / "pendigits.npz", **parts)
    with pytest.raises(ValueError, match="known as 'pendigits'"):
        datasets.load("pendigits")


@pytest.mark.parametrize("name", ["gisette", "timit", "flow-cytometry", "mnist8m", "cod-rna"])
def test_what_cannot_be_had_is_missing(name, folder, monkeypatch):
    with pytest.raises(datasets.Missing, match=rf"^{name} is missing: .* {name}\.npz "):
        datasets.load(name)
    monkeypatch.delenv("CRAFTMAPS_DATA")
    with pytest.raises(LookupError, match="CRAFTMAPS_DATA"):
        datasets.load(name)


@pytest.mark.filterwarnings("ignore:A network error occurred")
def test_without_a_network_the_message_says_so(folder):
    with pytest.raises(datasets.Missing, match=r"letter is missing: .* OpenML has it too, but"):
        datasets.load("letter")


def test_unknown_names_are_listed():
    with pytest.raises(ValueError, match="no data set 'minst'; known are digits, mnist, usps"):
        datasets.load("minst")


def test_files_that_are_not_data_sets(folder):
    (folder / "timit.npz").write_bytes(b"PK not an archive")
    with pytest.raises(ValueError, match=r"timit\.npz cannot be read"):
        datasets.load("timit")
    np.savez(folder / "timit.npz", X=np.array([{}], dtype=object), y=LABELS)
    with pytest.raises(ValueError, match="plain arrays"):
        datasets.load("timit")
    np.savez(folder / "timit.npz", X=ROWS, labels=LABELS)
    with pytest.raises(ValueError, match=r"must hold X_train.* it has \['X'\]"):
        datasets.load("timit")
    np.savez(folder / "timit.npz", X=ROWS, y=LABELS[:5])
    with pytest.raises(ValueError, match=r"12 rows .* 5 labels"):
        datasets.load("timit")


def fill_cache(folder, number, columns, lines, target="class"):
    """What scikit-learn keeps of a data set of OpenML, as if it had been downloaded before."""
    arff = "@RELATION r\n"
    arff += "".join(f"@ATTRIBUTE {name} {kind}\n" for name, kind in columns.items())
    arff += "@DATA\n" + "\n".join(lines) + "\n"
    place = f"data/v1/download/{number}"
    description = {
        "id": str(number),
        "name": "r",
        "version": "1",
        "description": "",
        "format": "ARFF",
        "status": "active",
        "url": f"https://www.openml.org/{place}",
        "file_id": str(number),
        "md5_checksum": hashlib.md5(arff.encode()).hexdigest(),
    }
    features = [
        {
            "index": str(i),
            "name": name,
            "data_type": "numeric" if kind == "NUMERIC" else "nominal",
            "is_target": "true" if name == target else "false",
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for i, (name, kind) in enumerate(columns.items())
    ]
    qualities = [{"name": "NumberOfInstances", "value": str(len(lines))}]
    api = "api/v1/json/data"
    for path, content in {
        f"{api}/{number}": json.dumps({"data_set_description": description}),
        f"{api}/features/{number}": json.dumps({"data_features": {"feature": features}}),
        f"{api}/qualities/{number}": json.dumps({"data_qualities": {"quality": qualities}}),
        place: arff,
    }.items():
        file = folder / "cache" / "openml" / "openml.org" / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content.encode()))


def test_openml_numbers(folder):
    columns = {"a": "NUMERIC", "b": "NUMERIC", "class": "{0,1}"}
    fill_cache(folder, 44, columns, ["1.5,2,0", "3,4,1", "5,6,1"])
    data = datasets.load("spambase")
    np.testing.assert_array_equal(data.X_train, [[1.5, 2], [3, 4], [5, 6]])
    assert data.X_train.dtype == np.float32
    np.testing.assert_array_equal(data.y_train, [0, 1, 1])
    assert data.y_train.dtype.kind == "i"
    assert data.X_test is None
    assert len(data.sha256) == 64


def test_openml_words_become_columns(folder):
    columns = {"parents": "{usual,great}", "form": "{a,b,c}", "class": "{no,yes}"}
    fill_cache(folder, 26, columns, ["usual,b,no", "great,a,yes", "usual,c,yes"])
    data = datasets.load("nursery")
    np.testing.assert_array_equal(data.X_train, [[1, 0, 0, 1, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 1]])
    np.testing.assert_array_equal(data.y_train, ["no", "yes", "yes"])


def test_openml_training_rows_come_first(folder):
    lines = [f"{i},{i % 10}" for i in range(10992)]
    fill_cache(folder, 32, {"a": "NUMERIC", "class": "{0,1,2,3,4,5,6,7,8,9}"}, lines)
    data = datasets.load("pendigits")
    assert (len(data.X_train), len(data.X_test)) == (7494, 3498)
    assert data.X_test[0, 0] == 7494
    assert data.y_test[0] == 4


def test_openml_of_another_length_is_refused(folder):
    fill_cache(folder, 32, {"a": "NUMERIC", "class": "{0,1}"}, ["1,0", "2,1"])
    with pytest.raises(ValueError, match=r"pendigits should have 10992 rows, and .* 32 has 2"):
        datasets.load("pendigits")


def small(n=100, n_test=None):
    X, y = np.arange(n, dtype=np.float32)[:, None], np.arange(n)
    if n_test is None:
        return datasets.Dataset("small", X, y, None, None, "")
    return datasets.Dataset("small", X, y, X[:n_test] + n, y[:n_test] + n, "")


@pytest.mark.parametrize(("train", "n_train"), [(0.6, 60), (25, 25), (0.99, 99), (1, 1)])
def test_split_divides_the_rows(train, n_train):
    data = datasets.split(small(), train, seed=3)
    assert len(data.X_train) == n_train
    np.testing.assert_array_equal(data.X_train[:, 0], data.y_train)
    np.testing.assert_array_equal(data.X_test[:, 0], data.y_test)
    np.testing.assert_array_equal(np.sort(np.append(data.y_train, data.y_test)), np.arange(100))


def test_split_is_fixed_by_its_seed():
    first, again, other = (datasets.split(small(), seed=seed).y_train for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_split_leaves_test_rows_out_unless_told():
    data = small(n_test=50)
    apart = datasets.split(data, 0.5)
    assert max(apart.y_train.max(), apart.y_test.max()) < 100
    assert len(apart.y_train) + len(apart.y_test) == 100
    pooled = datasets.split(data, 0.5, pool=True)
    assert len(pooled.y_train) == len(pooled.y_test) == 75
    assert set(np.append(pooled.y_train, pooled.y_test)) == set(range(150))


@pytest.mark.parametrize("train", [0, -1, 1.5, 100, 0.001])
def test_split_refuses(train):
    with pytest.raises(ValueError, match="train must be a share between 0 and 1 or a number of"):
        datasets.split(small(), train)

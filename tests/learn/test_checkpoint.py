"""A fit that was killed, and goes on: the model is the same, no row is lost or counted twice."""

import errno
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from craftmaps import OnePassClassifier, OnePassRegressor, Polynomial, RandomMaclaurin
from craftmaps.scale import blocks
from craftmaps.storage import array_file

N = 3000
CHILD = """
import sys
import numpy as np
from craftmaps import OnePassClassifier, Polynomial, RandomMaclaurin
from craftmaps.scale import blocks

folder, checkpoint, result = sys.argv[1:]
feature_map = RandomMaclaurin(Polynomial(2), n_components=150)  # drawn anew in each process
rows = blocks.read(f"{folder}/*.npy", target=-1, block_rows=97, on_bad_rows="skip")
model = OnePassClassifier(feature_map, alpha=[0.1, 1.0], block_rows=256, n_folds=3)
model.fit_blocks(rows, classes=range(4), checkpoint=checkpoint, checkpoint_every=0)
np.savez(result, coef=model.coef_, temperature=model.temperature_, rows=model.n_samples_seen_,
         skipped=rows.skipped_rows, probe=model.feature_map_.transform(np.ones((1, 12))))
"""


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 6))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(N)
    return X, y


class Killed(Exception):
    """Stands for the end of a process."""


def stopped_after(blocks, count):
    """The first blocks, and then the end."""
    for number, block in enumerate(blocks):
        if number == count:
            raise Killed
        yield block


def cut(X, y, size=170):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, X.shape[0], size)]


def newest(folder):
    path = max(Path(folder).glob("checkpoint-*.craft"))
    return path, array_file.read(path, "checkpoint")[0]


@pytest.mark.slow
def test_a_process_killed_again_and_again_ends_with_the_same_model(tmp_path):
    """SIGKILL at random moments; the map has no seed, so the drawn one must come back."""
    rng = np.random.default_rng(0)
    for part in range(3):
        X = rng.standard_normal((9000, 12)).astype(np.float32)
        y = (X[:, 0] > 0) + 2 * (X[:, 1] * X[:, 2] > 0)
        X[rng.integers(9000, size=20), 3] = np.nan
        np.save(tmp_path / f"part{part}.npy", np.column_stack([X, y]).astype(np.float32))
    bad = sum(int(np.isnan(np.load(path)).any(axis=1).sum()) for path in tmp_path.glob("*.npy"))
    checkpoint, result = tmp_path / "checkpoint", tmp_path / "result.npz"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        CHILD,
        *map(str, (tmp_path, checkpoint, result)),
    ]
    moments = random.Random(0)
    seen, last = [], 0
    while len(seen) < 4:
        child = subprocess.Popen(command)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and child.poll() is None:
            written = list(checkpoint.glob("checkpoint-*.craft"))
            if written and int(max(written).stem[-6:]) > last:
                break
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.12))
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL, "the fit ended before it could be killed"
        path, header = newest(checkpoint)
        assert not header["finished"]
        last = int(path.stem[-6:])
        seen.append(header["n_rows"])
    assert 0 < seen[0] < seen[-1] < 27_000
    subprocess.run(command, check=True)
    assert newest(checkpoint)[1]["finished"]
    assert len(list(checkpoint.iterdir())) == 2  # nothing is left of files that were never ended
    with np.load(result) as killed:
        assert killed["rows"] == 27_000 - bad
        assert killed["skipped"] == bad
        uninterrupted = fit_in_one_go(tmp_path, killed["probe"], checkpoint)
        np.testing.assert_array_equal(killed["coef"], uninterrupted.coef_)
        assert killed["temperature"] == uninterrupted.temperature_


def fit_in_one_go(folder, probe, checkpoint):
    """With the map that the first process drew, which is in its checkpoint."""
    drawn = OnePassClassifier(
        RandomMaclaurin(Polynomial(2), n_components=150),
        alpha=[0.1, 1.0],
        block_rows=256,
        n_folds=3,
    )
    read = blocks.read(f"{folder}/*.npy", target=-1, block_rows=97, on_bad_rows="skip")
    with pytest.warns(UserWarning, match="bad rows"):
        drawn.fit_blocks(read, classes=range(4), checkpoint=checkpoint)
    np.testing.assert_array_equal(drawn.feature_map_.transform(np.ones((1, 12))), probe)
    whole = OnePassClassifier(
        FrozenEstimator(drawn.feature_map_), alpha=[0.1, 1.0], block_rows=256, n_folds=3
    )
    with pytest.warns(UserWarning, match="bad rows"):
        return whole.fit_blocks(read, classes=range(4))


@pytest.mark.parametrize("count", [1, 2, 5, 17])
def test_any_blocks_are_passed_over_to_where_the_fit_was(count, rows, tmp_path):
    X, y = rows
    model = lambda: OnePassRegressor(  # noqa: E731
        RandomMaclaurin(Polynomial(2), n_components=60, random_state=0), block_rows=400
    )
    whole = model().fit_blocks(cut(X, y))
    with pytest.raises(Killed):
        model().fit_blocks(stopped_after(cut(X, y), count), checkpoint=tmp_path, checkpoint_every=0)
    again = model().fit_blocks(iter(cut(X, y)), checkpoint=tmp_path, checkpoint_every=0)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert again.intercept_ == whole.intercept_
    assert again.n_samples_seen_ == N


CASES = {
    "text labels": lambda X, y: (X, np.where(y > 0, "up", "down"), OnePassClassifier(alpha=1.0)),
    "random code": lambda X, y: (
        X,
        np.digitize(y, [-1, 0, 1]),
        OnePassClassifier(codes="random", n_bits=7, alpha=1.0),
    ),
    "two targets": lambda X, y: (X, np.column_stack([y, y**2]), OnePassRegressor()),
    "sparse rows": lambda X, y: (sparse.csr_matrix(X * (X > 0)), y, OnePassRegressor(alpha=0.1)),
    "single precision": lambda X, y: (X.astype(np.float32), y, OnePassRegressor(alpha=[0.1, 1.0])),
    "fewer rows than features": lambda X, y: (
        X[:400],
        y[:400],
        OnePassRegressor(RandomMaclaurin(Polynomial(2), 1500, random_state=0), alpha=0.1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_everything_that_was_learnt_comes_back(name, rows, tmp_path):
    X, y, model = CASES[name](*rows)
    if name == "random code":  # what is drawn in the first process is used in the second
        with pytest.raises(Killed):
            model.fit_blocks(stopped_after(cut(X, y), 2), checkpoint=tmp_path, checkpoint_every=0)
        drawn = model._code.matrix.copy()
        model.fit_blocks(cut(X, y), checkpoint=tmp_path, checkpoint_every=0)
        np.testing.assert_array_equal(model.code_matrix_, drawn)
        model.codes, model.n_bits = drawn, None
        resumed = model.coef_
        np.testing.assert_array_equal(resumed, model.fit_blocks(cut(X, y)).coef_)
        return
    whole = model.fit_blocks(cut(X, y))
    coef, labels = whole.coef_, whole.predict(X)
    with pytest.raises(Killed):
        model.fit_blocks(stopped_after(cut(X, y), 2), checkpoint=tmp_path, checkpoint_every=0)
    model.fit_blocks(cut(X, y), checkpoint=tmp_path, checkpoint_every=0)
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(model.predict(X), labels)


def test_a_finished_fit_is_not_learnt_again(rows, tmp_path):
    X, y = rows
    np.save(tmp_path / "Xy.npy", np.column_stack([X, y]))
    read = blocks.read(tmp_path / "Xy.npy", target=-1, block_rows=100)
    first = OnePassRegressor().fit_blocks(read, checkpoint=tmp_path / "c")
    assert newest(tmp_path / "c")[1]["finished"]
    again = OnePassRegressor()
    again._add = None  # nothing may be learnt
    files = sorted((tmp_path / "c").iterdir())
    again.fit_blocks(read, checkpoint=tmp_path / "c")
    assert sorted((tmp_path / "c").iterdir()) == files
    np.testing.assert_array_equal(again.coef_, first.coef_)
    assert again.n_samples_seen_ == N


def test_checkpoints_are_written_when_they_are_due(rows, tmp_path):
    OnePassRegressor().fit_blocks(cut(*rows), checkpoint=tmp_path, checkpoint_every=1000.0)
    numbers = sorted(int(path.stem[-6:]) for path in tmp_path.iterdir())
    assert numbers == [1, 2]  # after the first block, and at the end


def interrupted(rows, folder, model=None, count=5):
    model = OnePassRegressor() if model is None else model
    with pytest.raises(Killed):
        model.fit_blocks(stopped_after(cut(*rows), count), checkpoint=folder, checkpoint_every=0)
    return model


def test_a_damaged_file_gives_way_to_the_one_before(rows, tmp_path):
    whole = OnePassRegressor().fit_blocks(cut(*rows))
    interrupted(rows, tmp_path)
    path, header = newest(tmp_path)
    assert header["n_rows"] == 5 * 170
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=r"000005\.craft is refused.*goes on from .*000004"):
        again = OnePassRegressor().fit_blocks(cut(*rows), checkpoint=tmp_path, checkpoint_every=0)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


def test_a_folder_of_damaged_files_is_refused(rows, tmp_path):
    interrupted(rows, tmp_path)
    for path in tmp_path.iterdir():
        content = bytearray(path.read_bytes())
        content[-50] ^= 1
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"no checkpoint in .* can be used; remove it.*altered"):
        OnePassRegressor().fit_blocks(cut(*rows), checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OnePassRegressor(alpha=2.0), "was made with alpha='auto', not 2.0"),
        (OnePassRegressor(RandomMaclaurin()), "another learner|was made with feature_map=None"),
        (OnePassClassifier(), "belongs to another learner, a OnePassRegressor"),
    ],
)
def test_a_checkpoint_of_another_learner_is_refused(model, message, rows, tmp_path):
    interrupted(rows, tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=message):
        model.fit_blocks(cut(*rows), checkpoint=tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_parameters_of_the_map_and_announced_classes_count(rows, tmp_path):
    X, y = rows[0], (rows[1] > 0).astype(int)
    model = lambda degree: OnePassClassifier(  # noqa: E731
        RandomMaclaurin(Polynomial(degree), n_components=20), map_rows=300
    )
    interrupted((X, y), tmp_path, model(2))
    with pytest.raises(ValueError, match="was made with feature_map__kernel__degree=2, not 3"):
        model(3).fit_blocks(cut(X, y), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="was made with classes=None, not"):
        model(2).fit_blocks(cut(X, y), classes=[0, 1, 2], checkpoint=tmp_path)


def test_a_checkpoint_of_other_blocks_is_refused(rows, tmp_path):
    X, y = rows
    interrupted(rows, tmp_path)
    weighted = [(*block, np.ones(len(block[1]))) for block in cut(X, y)]
    moved = y.copy()
    moved[200] += 1.0
    for other, n_rows, n_blocks in (
        (cut(X[::-1], y), 850, 5),
        (cut(X, moved), 850, 5),
        (weighted, 850, 5),
        ([*cut(X[:340], y[:340]), *cut(X[340:], y[340:], 90)], 610, 5),
        (cut(X, y)[:2], 340, 2),
    ):
        said = f"850 rows in 5 blocks, but the first {n_rows} rows in {n_blocks} blocks given now"
        with pytest.raises(ValueError, match=said):
            OnePassRegressor().fit_blocks(other, checkpoint=tmp_path)


def test_a_checkpoint_of_other_files_is_refused(rows, tmp_path):
    path = tmp_path / "Xy.npy"
    np.save(path, np.column_stack(rows))
    OnePassRegressor().fit_blocks(blocks.read(path, target=-1), checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="rows read with other target"):
        OnePassRegressor().fit_blocks(blocks.read(path, target=0), checkpoint=tmp_path / "c")
    os.utime(path, (1, 1))
    with pytest.raises(ValueError, match=r"other files, or these have changed: .*Xy\.npy"):
        OnePassRegressor().fit_blocks(blocks.read(path, target=-1), checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="belongs to other rows"):
        OnePassRegressor().fit_blocks(cut(*rows), checkpoint=tmp_path / "c")


def test_frozen_maps_of_any_kind_are_brought_by_the_caller(rows, tmp_path):
    X, y = rows
    make = lambda seed: FrozenEstimator(  # noqa: E731
        make_pipeline(StandardScaler(), RandomMaclaurin(Polynomial(2), 40, random_state=seed)).fit(
            X
        )
    )
    frozen = make(0)
    interrupted(rows, tmp_path, OnePassRegressor(frozen))
    with pytest.raises(ValueError, match="another map than the frozen one"):
        OnePassRegressor(make(1)).fit_blocks(cut(X, y), checkpoint=tmp_path)
    again = OnePassRegressor(make(0)).fit_blocks(cut(X, y), checkpoint=tmp_path)
    np.testing.assert_array_equal(again.coef_, OnePassRegressor(frozen).fit_blocks(cut(X, y)).coef_)


def test_a_map_that_cannot_be_kept_is_refused_after_the_first_block(rows, tmp_path):
    taken = []
    model = OnePassRegressor(StandardScaler(), map_rows=100)
    with pytest.raises(TypeError, match=r"cannot hold this map.*FrozenEstimator"):
        model.fit_blocks((taken.append(1) or block for block in cut(*rows)), checkpoint=tmp_path)
    assert len(taken) == 1


def limited_files(blocks, after, size):
    """Blocks, and from one of them on no file may become larger than `size`."""
    for number, block in enumerate(blocks):
        if number == after:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        yield block


def test_a_file_that_cannot_be_written_stops_the_fit_with_the_last_one_intact(rows, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError, match=r"the fit stops.*after 510 rows is intact") as caught:
            OnePassRegressor().fit_blocks(
                limited_files(cut(*rows), 3, 1000), checkpoint=tmp_path, checkpoint_every=0
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    assert newest(tmp_path)[1]["n_rows"] == 510
    again = OnePassRegressor().fit_blocks(cut(*rows), checkpoint=tmp_path, checkpoint_every=0)
    np.testing.assert_array_equal(again.coef_, OnePassRegressor().fit_blocks(cut(*rows)).coef_)


def test_a_resumed_model_has_the_bytes_of_the_uninterrupted_one(rows, tmp_path):
    """With the same map; also of its probabilities, and with its sums."""
    X, y = rows
    labels = np.digitize(y, [-0.3, 0.3])
    feature_map = FrozenEstimator(RandomMaclaurin(Polynomial(2), 64, random_state=0).fit(X))
    files = []
    for stops in ([], [3, 7, 11]):
        folder = tmp_path / str(len(stops))
        for stop in stops:
            with pytest.raises(Killed):
                OnePassClassifier(feature_map, block_rows=512).fit_blocks(
                    stopped_after(cut(X, labels), stop), checkpoint=folder, checkpoint_every=0
                )
        model = OnePassClassifier(feature_map, block_rows=512)
        model.fit_blocks(cut(X, labels), checkpoint=folder, checkpoint_every=0)
        for resumable in (False, True):
            path = tmp_path / f"{len(stops)}-{resumable}.craft"
            model.save(path, resumable=resumable)
            files.append(path.read_bytes())
    assert files[0] == files[2]
    assert files[1] == files[3]
    model.partial_fit(X[:1], labels[:1]).save(path)
    assert path.read_bytes() != files[2]  # one row more shows

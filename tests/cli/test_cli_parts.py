"""Parts of the command line, in this process: sampling, choices, JSON of every report."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file, load_digits

from craftmaps import OnePassClassifier, OnePassRegressor, load
from craftmaps.cli.main import craftmaps
from craftmaps.cli.rows import open_rows, survey
from craftmaps.scale import blocks


def invoke(*words):
    done = CliRunner().invoke(craftmaps, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def complains(*words):
    """What a command says that ends in an error of the user's."""
    done = CliRunner().invoke(craftmaps, [str(word) for word in words])
    assert done.exit_code
    assert isinstance(done.exception, ValueError | SystemExit), done.exception
    return f"{done.output}{done.exception}"


@pytest.fixture
def digits(tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", X=X[:500], y=y[:500])
    return tmp_path / "digits.npz"


def test_a_survey_draws_rows_uniformly(tmp_path):
    """Of 20,000 rows in order, 2,000: their mean place is normal about the middle; 5 deviations
    are a false alarm in two of a million draws, and the seed is fixed. The first rows are not."""
    n, size = 20_000, 2_000
    np.savez(tmp_path / "rows.npz", X=np.arange(n, dtype=float)[:, None], y=np.arange(n) % 3)
    seen = survey(open_rows([tmp_path / "rows.npz"], "y"), size)
    assert seen.n_rows == n
    assert len(np.unique(seen.X)) == size
    assert np.array_equal(seen.X[:, 0] % 3, seen.y)
    deviation = n / np.sqrt(12 * size) * np.sqrt(1 - size / n)
    assert abs(seen.X.mean() - n / 2) < 5 * deviation
    assert abs(np.arange(size).mean() - n / 2) > 5 * deviation
    assert seen.classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("y", "classify", "found"),
    [
        (np.arange(50) % 7, None, 7),
        (np.arange(50) / 3, None, None),
        (np.arange(500), None, None),
        (np.arange(500), True, 500),
        (np.arange(50) % 7, False, None),
        (np.array(["a", "b"] * 25), None, 2),
    ],
)
def test_the_task_is_guessed_unless_it_is_given(y, classify, found, tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.ones((len(y), 2)), y=y)
    classes = survey(open_rows([tmp_path / "rows.npz"], "y"), 10, classify).classes
    assert (None if classes is None else len(classes)) == found


def test_sparse_rows_are_learnt_and_predicted(tmp_path):
    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X[:600], y[:600], str(tmp_path / "rows.svm"), zero_based=False)
    model = tmp_path / "m.craft"
    words = ("--map", "tensorsketch", "--components", 256, "-o", model, "--json")
    facts = json.loads(invoke("fit", tmp_path / "rows.svm", *words))
    assert facts["task"] == "classification"
    dump_svmlight_file(X[600:900, :40], y[600:900], str(tmp_path / "new.svm"), zero_based=False)
    facts = json.loads(invoke("evaluate", model, tmp_path / "new.svm", "--json"))
    assert facts["rows"] == 300


def test_chosen_columns_of_sparse_rows_are_found_again(tmp_path):
    """In files of more columns, and in files that have nothing in the last one chosen."""
    X, y = load_digits(return_X_y=True)
    model, out = tmp_path / "m.craft", tmp_path / "out.csv"
    chosen = ("--columns", "10,36")
    for name, width in (("rows", 64), ("few", 30)):
        path = str(tmp_path / f"{name}.svm")
        dump_svmlight_file(X[:300, :width], y[:300], path, zero_based=False)
    invoke("fit", tmp_path / "rows.svm", *chosen, "--components", 32, "-o", model)
    learner = load(model)
    for name, rows in (("rows", X[:300, [10, 36]]), ("few", X[:300, [10, 36]] * [1, 0])):
        facts = invoke("evaluate", model, tmp_path / f"{name}.svm", *chosen, "--json")
        assert json.loads(facts)["accuracy"] == pytest.approx(learner.score(rows, y[:300]))
        invoke("predict", model, tmp_path / f"{name}.svm", *chosen, "-o", out)
        assert out.read_text().split()[1:] == [str(float(one)) for one in learner.predict(rows)]


def test_text_labels_of_pandas_are_evaluated(digits, tmp_path):
    X, y = load_digits(return_X_y=True)
    names = np.array([f"digit {label}" for label in y[:500]])
    learner = OnePassClassifier().fit(X[:500], names.astype(object))
    assert learner.classes_.dtype == object
    learner.save(tmp_path / "m.craft")
    np.savez(tmp_path / "text.npz", X=X[:500], y=names)
    words = ("evaluate", tmp_path / "m.craft", tmp_path / "text.npz", "--target", "y", "--json")
    facts = json.loads(invoke(*words))
    assert facts["accuracy"] == pytest.approx(learner.score(X[:500], names.astype(object)))
    assert facts["rows_of_unknown_classes"] == 0
    complaint = complains("evaluate", tmp_path / "m.craft", digits, "--target", "y")
    assert "the target holds int64, and the classes of the model are ['digit 0'" in complaint


def test_several_targets_are_columns_of_predictions(digits, tmp_path):
    X, y = load_digits(return_X_y=True)
    learner = OnePassRegressor().fit(X[:500], np.stack([y[:500], X[:500, 20]], axis=1))
    learner.save(tmp_path / "m.craft")
    np.savez(tmp_path / "rows.npz", X=X[:500])
    for name in ("out.csv", "out.parquet"):
        invoke("predict", tmp_path / "m.craft", tmp_path / "rows.npz", "-o", tmp_path / name)
        ((found, _),) = blocks.read(tmp_path / name)
        np.testing.assert_allclose(found, learner.predict(X[:500]), rtol=1e-6, atol=1e-6)
        assert blocks.read(tmp_path / name).names == ["prediction_0", "prediction_1"]
    complaint = complains("evaluate", tmp_path / "m.craft", digits, "--target", "y")
    assert "predicts 2 targets, and evaluate takes models of one" in complaint


def test_targets_of_one_column_are_evaluated(tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "two.npz", X=X[:500], y=np.stack([y[:500], y[:500]], axis=1))
    np.savez(tmp_path / "one.npz", X=X[:500], y=y[:500, None])
    for shape in ((500,), (500, 1)):
        learner = OnePassRegressor().fit(X[:500], y[:500].reshape(shape))
        learner.save(tmp_path / "m.craft")
        words = ("evaluate", tmp_path / "m.craft", tmp_path / "one.npz", "--target", "y")
        facts = json.loads(invoke(*words, "--json"))
        assert facts["r2"] == pytest.approx(learner.score(X[:500], y[:500]))
    complaint = complains("evaluate", tmp_path / "m.craft", tmp_path / "two.npz", "--target", "y")
    assert "the target has 2 columns, and the model predicts one" in complaint


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_file_without_rows_is_not_predicted(name, tmp_path):
    OnePassRegressor().fit(np.eye(3)[:, :2], np.arange(3)).save(tmp_path / "m.craft")
    (tmp_path / "rows.csv").write_text("a,b\n")
    words = (tmp_path / "m.craft", tmp_path / "rows.csv", "-o", tmp_path / name)
    assert "there are no rows to predict" in complains("predict", *words)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "--target COLUMN"),
        (("--target", "y", "--kernel", "rbf", "--degree", "3"), "--degree is no parameter"),
        (("--target", "y", "--auto", "--map", "craft"), "--auto chooses what --map gives"),
        (("--target", "y", "--auto", "--budget", "9s", "--checkpoint", "c"), "give --components"),
        (("--target", "y", "--columns", "red"), "--columns must be numbers"),
    ],
)
def test_options_that_do_not_fit(words, complaint, digits, tmp_path):
    done = CliRunner().invoke(craftmaps, ["fit", str(digits), *words, "-o", str(tmp_path / "m")])
    assert done.exit_code == 2
    assert complaint in done.output
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_every_report_is_json_when_asked(digits, tmp_path):
    model = tmp_path / "m.craft"
    fitted = invoke("fit", digits, "--target", "y", "--components", 64, "-o", model, "--json")
    assert json.loads(fitted)["rows"] == 500
    assert json.loads(invoke("info", model, "--json"))["classes"] == list(range(10))
    words = ("--components", "32", "--seeds", 1, "--rows", 300, "--json")
    compared = json.loads(invoke("compare", digits, "--target", "y", *words))
    names = {row["name"] for row in compared["maps"]}
    assert {"CraftMap", "RandomMaclaurin", "TensorSketch", "FourierFeatures"} < names
    assert all(0 <= row["error"] < 0.9 for row in compared["maps"])
    words = ("--rows", 64, "--columns", 16, "--components", 64, "--repeats", 1, "--json")
    assert all(row["speed_ratio"] > 0 for row in json.loads(invoke("bench", *words))["maps"])

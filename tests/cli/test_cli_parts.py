"""Parts of the command line, in this process: sampling, choices, JSON of every report."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click import BadParameter
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file, load_digits

from craftmaps import (
    Composed,
    Gaussian,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    ScaledMap,
    load,
)
from craftmaps.cli import names
from craftmaps.cli.main import craftmaps
from craftmaps.cli.names import Name
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
        (np.arange(8), None, 8),
        (np.arange(73) % 68, None, None),  # of a small table, as prices
        (np.arange(100) % 10, None, 10),
        (np.arange(109) % 11, None, None),
        (np.arange(109) % 11, True, 11),
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
    invoke("fit", tmp_path / "rows.svm", *chosen, "--map", "craft", "--components", 32, "-o", model)
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
    assert "predicts 2 targets, but evaluate takes models with one" in complaint


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
        (("--target", "y", "--kernel", "rbf", "--degree", "3"), "--degree is not a parameter"),
        (("--target", "y", "--auto", "--map", "craft"), "--auto chooses what --map gives"),
        (("--target", "y", "--budget", "9s", "--checkpoint", "c"), "give --components"),
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
    assert json.loads(fitted)["expected_error"] < 0.1
    assert json.loads(invoke("info", model, "--json"))["classes"] == list(range(10))
    words = ("--components", "32", "--seeds", 1, "--rows", 300, "--json")
    compared = json.loads(invoke("compare", digits, "--target", "y", *words))
    names = {row["name"] for row in compared["maps"]}
    assert {"CraftMap", "RandomMaclaurin", "TensorSketch", "FourierFeatures"} < names
    assert all(0 <= row["error"] < 0.9 for row in compared["maps"])
    words = ("--rows", 64, "--columns", 16, "--components", 64, "--repeats", 1, "--json")
    assert all(row["speed_ratio"] > 0 for row in json.loads(invoke("bench", *words))["maps"])


def test_columns_of_a_model_are_found_by_name(tmp_path):
    """Files with the columns in another order are learned and predicted like the first one."""
    X, y = load_digits(return_X_y=True)
    table = pd.DataFrame(X[:400]).add_prefix("pixel").assign(digit=y[:400])
    turned = table[table.columns[::-1]]
    for name, frame in (
        ("1", table[:200]),
        ("2", turned[200:]),
        ("all", table),
        ("turned", turned),
    ):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    models = []
    for files in (("all.csv",), ("1.csv", "2.csv")):
        paths = [tmp_path / name for name in files]
        options = ("--target", "digit", "--components", 64, "-o", tmp_path / "m.craft")
        invoke("fit", *paths, *options, "--kernel", "poly", "--loss", "squared")
        models.append(load(tmp_path / "m.craft"))
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-6, atol=1e-9)
    assert models[0].feature_names_in_.tolist() == table.columns[:-1].tolist()
    for name in ("all", "turned"):
        words = ("evaluate", tmp_path / "m.craft", tmp_path / f"{name}.csv", "--target", "digit")
        accuracy = json.loads(invoke(*words, "--json"))["accuracy"]
        expected = models[0].score(table[table.columns[:-1]], table["digit"])
        assert accuracy == pytest.approx(expected)
    turned.drop(columns="pixel7").to_csv(tmp_path / "less.csv", index=False)
    words = (tmp_path / "m.craft", tmp_path / "less.csv", "-o", tmp_path / "out.csv")
    assert "less.csv: there is no column 'pixel7'" in complains("predict", *words)


def test_weights_are_a_column(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    table = pd.DataFrame(X, columns=list("abc")).assign(y=X @ [1, 2, 3] + rng.normal(size=300))
    table["w"] = rng.integers(0, 3, 300)
    table.to_csv(tmp_path / "t.csv", index=False)
    repeated = table.loc[table.index.repeat(table["w"])]
    repeated.drop(columns="w").to_csv(tmp_path / "repeated.csv", index=False)
    same = ("--target", "y", "--regress", "--alpha", 1, "--scale", "none", "--no-unit-norm")
    same = (*same, "--gamma", 1, "--degree", 2, "-o", tmp_path / "m.craft", "--components", 64)
    invoke("fit", tmp_path / "t.csv", "--weight", "w", *same)
    weighted = load(tmp_path / "m.craft").predict(table[["a", "b", "c"]])
    invoke("fit", tmp_path / "repeated.csv", *same)
    expected = load(tmp_path / "m.craft").predict(table[["a", "b", "c"]])
    np.testing.assert_allclose(weighted, expected, rtol=1e-5, atol=1e-5)
    assert "there is no column 'v'" in complains("fit", tmp_path / "t.csv", "--weight", "v", *same)


def test_the_map_is_fitted_on_the_rows_of_a_local_fit(tmp_path):
    """Of a file that is sorted by its target, the rows of `fit` with the same map_rows."""
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")
    np.savez(tmp_path / "rows.npz", X=X[order], y=y[order])
    words = ("--target", "y", "--map", "nystroem", "--kernel", "rbf", "--gamma", 0.01)
    words = (*words, "--components", 50, "--scale", "standard", "--map-rows", 200, "--alpha", 1)
    words = (*words, "--loss", "squared")
    invoke("fit", tmp_path / "rows.npz", *words, "-o", tmp_path / "m.craft")
    inner = Nystroem(Gaussian(0.01), 50, random_state=0)
    feature_map = ScaledMap(inner, columns="standard", unit_norm=False)
    local = OnePassClassifier(feature_map, alpha=1.0, map_rows=200).fit(X[order], y[order])
    found = load(tmp_path / "m.craft")
    np.testing.assert_allclose(found.coef_, local.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("spreadsheet", [False, True])
def test_labels_that_a_spreadsheet_would_run(spreadsheet, tmp_path):
    labels = np.array(["=1+1", "@x", "-a", "plain"])
    OnePassClassifier(alpha=1e-6).fit(np.eye(4), labels).save(tmp_path / "m.craft")
    np.savez(tmp_path / "rows.npz", X=np.eye(4))
    option = ("--spreadsheet",) if spreadsheet else ()
    paths = (tmp_path / "m.craft", tmp_path / "rows.npz", "-o", tmp_path / "out.csv")
    invoke("predict", *paths, *option)
    mark = "'" if spreadsheet else ""
    expected = [f"{mark}=1+1", f"{mark}@x", f"{mark}-a", "plain"]
    assert (tmp_path / "out.csv").read_text().split() == ["prediction", *expected]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files")
@pytest.mark.parametrize(
    "words",
    [
        ("fit", "absent.csv", "--target", "y", "-o", "/proc/m.craft"),
        ("fit", "absent.csv", "--target", "y", "--checkpoint", "/proc", "-o", "m.craft"),
        ("predict", "absent.craft", "absent.csv", "-o", "/proc/p.csv"),
        ("export", "absent.craft", "-o", "/proc/m.onnx"),
    ],
)
def test_output_folders_are_checked_before_the_work(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "nothing can be written to /proc: " in complains(*words)


def test_names_derive_from_the_public_classes():
    """Today's spellings and those with hyphens; another name is answered with all of them."""
    kind = Name(names.maps)
    spelled = {"craft", "maclaurin", "tensorsketch", "fourier", "nystroem", "tensor-sketch"}
    assert {names.maps()[kind.convert(name, None, None)].__name__ for name in spelled} == {
        "CraftMap",
        "RandomMaclaurin",
        "TensorSketch",
        "FourierFeatures",
        "Nystroem",
    }
    known = set(names.kernels())
    assert {"poly", "exp", "rbf", "laplacian", "cauchy", "matern", "vovk-real"} <= known
    with pytest.raises(BadParameter, match=r"'krfat' is not one of .*craft.*nystroem"):
        kind.convert("krfat", None, None)
    assert all(isinstance(one, type) for one in names.maps().values())
    assert set(names.maps_for(Polynomial(2))) == {
        "CraftMap",
        "Nystroem",
        "RandomMaclaurin",
        "TensorSketch",
    }
    assert "CompositionalMap" in names.maps_for(Composed())
    assert set(names.losses()) == {"auto", "log", "squared", "huber", "quantile"}
    assert set(names.scalings()) >= {"none", "standard", "minmax", "quantile"}
    scaling = Name(names.scalings, ("deviation",))
    assert scaling.convert("deviation", None, None) == "deviation"
    assert "deviation" not in scaling.get_metavar(None)


def test_the_old_name_of_checkpoint_every(digits, tmp_path):
    words = ("fit", digits, "--target", "y", "--components", 16, "-o", tmp_path / "m.craft")
    words = (*words, "--kernel", "poly")
    invoke(*words, "--every", 0, "--checkpoint", tmp_path / "kept")
    assert len(list((tmp_path / "kept").glob("checkpoint-*.craft"))) > 0
    assert "--every" not in invoke("fit", "--help").replace("--checkpoint-every", "")

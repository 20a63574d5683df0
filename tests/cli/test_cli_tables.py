"""Tables as they are on the command line: text, dates and holes in, a model and ONNX out."""

import csv
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import craftmaps
from commands import run
from craftmaps.cli.demo_table import flats
from craftmaps.cli.main import craftmaps as command_line
from craftmaps.scale.files import text

FAST = ("--kernel", "rbf", "--components", "64")  # no search


def here(*words):
    """The JSON report of a command in this process, which need not import the library again."""
    done = CliRunner().invoke(command_line, [*map(str, words), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def complaint(*words):
    """What a command of this process says that ends in a user's mistake."""
    done = CliRunner().invoke(command_line, [*map(str, words)])
    assert done.exit_code
    assert isinstance(done.exception, ValueError | SystemExit), done.exception
    return f"{done.output}{done.exception}"


def table_of_flats(n_rows, seed=0):
    """Flats with a number each, a quoted newline in each tenth, and whether their rent is high."""
    columns, rent = flats(n_rows, seed)
    columns["words"] = [
        text.replace(" ", "\n") if i % 10 == 0 else text for i, text in enumerate(columns["words"])
    ]
    table = pa.table(
        {"id": [f"{i:05}" for i in range(n_rows)]}
        | {name: pa.array(column, from_pandas=True) for name, column in columns.items()}
        | {"furnished": pa.array((np.arange(n_rows) % 3 == 0).tolist())}
    )
    return table.append_column("high", pa.array(np.where(rent > 120, "yes", "no")).cast("string"))


def write_csv(table, path, end="\n", delimiter=",", decimal="."):
    """As programs write it: text in quotes if need be, nothing for what is missing."""

    def written(value):
        return repr(value).replace(".", decimal) if isinstance(value, float) else value

    with (
        gzip.open(path, "wt", newline="")
        if path.suffix == ".gz"
        else path.open("w", newline="") as file
    ):
        writer = csv.writer(file, lineterminator=end, delimiter=delimiter)
        writer.writerow(table.column_names)
        writer.writerows(map(written, row.values()) for row in table.to_pylist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Flats to learn from as CSV, and others as Parquet with columns in another order."""
    folder = tmp_path_factory.mktemp("tables")
    write_csv(table_of_flats(240), folder / "flats.csv")
    new = table_of_flats(60, seed=1).drop_columns("high")
    new = new.set_column(new.column_names.index("built"), "built", pa.nulls(60, pa.float64()))
    pq.write_table(
        new.select(new.column_names[::-1]).append_column("more", pa.nulls(60)),
        folder / "new.parquet",
    )
    return folder


@pytest.fixture(scope="module")
def model(folder):
    """A model without a search, from all columns but the number."""
    words = ("--target", "high", "--drop", "id", *FAST, "-o", folder / "fast.craft")
    assert here("fit", folder / "flats.csv", *words)["columns"] == 8
    return folder / "fast.craft"


def test_from_a_csv_file_to_onnx_in_three_commands(folder):
    runtime = pytest.importorskip("onnxruntime")
    out, err = run("craftmaps fit flats.csv --target high -o m.craft", folder)
    assert "words      text" in out
    assert "built      number    2 columns: standardized" in out
    assert "expected error: " in out
    assert "no two rows have the same value of 'id'" in err
    assert "leave it out with --drop id, unless" in err
    out, _ = run("craftmaps predict m.craft new.parquet -o out.csv --proba --keep id,id", folder)
    assert out.startswith("rows:   60\n")
    out, _ = run("craftmaps export m.craft -o m.onnx", folder)
    assert "id (string), size (double), built (double)" in out

    with (folder / "out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"{i:05}" for i in range(60)]
    learner = craftmaps.load(folder / "m.craft")
    new = pq.read_table(folder / "new.parquet")
    assert [row["prediction"] for row in rows] == learner.predict(new).tolist()
    session = runtime.InferenceSession(folder / "m.onnx")
    labels, chances = session.run(["label", "probabilities"], learner.encoder_.onnx_inputs(new))
    assert labels.tolist() == [row["prediction"] for row in rows]
    told = [[float(row["probability_no"]), float(row["probability_yes"])] for row in rows]
    np.testing.assert_allclose(chances, told, atol=1e-4)


@pytest.mark.parametrize("form", ["crlf.csv", "packed.csv.gz", "comma.csv", "same.parquet"])
def test_the_same_table_in_another_form_is_the_same_model(form, folder, model, tmp_path):
    table, path = table_of_flats(240), tmp_path / form
    options = ()
    if form == "same.parquet":
        pq.write_table(table, path)
    elif form == "comma.csv":
        write_csv(table, path, delimiter=";", decimal=",")
        options = ("--decimal", ",")
    else:
        write_csv(table, path, end="\r\n")
    if form == "crlf.csv":
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    words = ("--target", "high", "--drop", "id", *FAST, *options, "-o", tmp_path / "m.craft")
    here("fit", path, *words)
    one, other = craftmaps.load(model), craftmaps.load(tmp_path / "m.craft")
    assert one.encoder_.is_like(other.encoder_)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    facts = here("predict", model, path, *options, "-o", tmp_path / "p.csv")
    assert facts["rows"] == 240


def test_columns_are_chosen_and_taken_for_what_they_are_said_to_be(folder, tmp_path):
    words = ("--target", "high", *FAST, "-o", tmp_path / "m.craft")
    kinds = ("--as", "page=category", "--as", "built=number,listed=drop")
    facts = here(
        "fit", folder / "flats.csv", *words, "--drop", "id,words", "--drop", "floor", *kinds
    )
    became = {name: one["kind"] for name, one in facts["encoding"].items()}
    assert became == {
        "size": "number",
        "built": "number",
        "district": "category",
        "page": "category",
        "furnished": "number",
    }
    facts = here("fit", folder / "flats.csv", *words, "--columns", "size,floor", "--weight", "page")
    assert list(facts["encoding"]) == ["size", "floor"]
    assert here("info", tmp_path / "m.craft")["encoding"] == facts["encoding"]


def test_new_rows_are_read_as_the_rows_of_fit(folder, model, tmp_path):
    """Text that looks like numbers stays text, and a word among numbers is named."""
    (tmp_path / "odd.csv").write_text(
        "size,built,district,floor,listed,words,page,furnished\n"
        "50,1990,12,007,,5,3,true\n"
        "60,NA,,,2024-05-01 10:00,,4,\n"
    )
    here("predict", model, tmp_path / "odd.csv", "-o", tmp_path / "out.csv")
    odd = {"size": [50, 60], "built": [1990, None], "district": ["12", None]}
    odd |= {"floor": ["007", None], "listed": [None, "2024-05-01 10:00"], "words": ["5", None]}
    odd |= {"page": [3, 4], "furnished": [True, None]}
    predicted = craftmaps.load(model).predict(odd).tolist()
    assert (tmp_path / "out.csv").read_text().split() == ["prediction", *predicted]
    flat = (folder / "flats.csv").read_text()
    (tmp_path / "bad.csv").write_text(flat.replace("1", "one"))
    said = complaint("predict", model, tmp_path / "bad.csv", "-o", tmp_path / "p.csv")
    assert "is not a number" in said
    _, err = run(f"craftmaps predict {model} bad.csv -o p.csv", tmp_path, code=2)
    assert "is not a number; if it may hold such values, repeat fit with --as built=text." in err
    (tmp_path / "comma.csv").write_text(flat.splitlines()[0] + '\n1,"5,5",1,a,b,,c,1,true,no\n')
    said = complaint("predict", model, tmp_path / "comma.csv", "-o", tmp_path / "p.csv")
    assert "'5,5' is not a number; decimal=',', or --decimal , in a terminal, reads" in said
    (tmp_path / "less.csv").write_text("size,built\n1,2\n")
    said = complaint("predict", model, tmp_path / "less.csv", "-o", tmp_path / "p.csv")
    assert "less.csv: there is no column 'district'" in said
    assert not (tmp_path / "p.csv").exists()


def test_dates_keep_the_order_of_the_rows_of_fit(tmp_path):
    """A file with 05/06/2024 alone is read as the file that the model has learned from."""
    (tmp_path / "t.csv").write_text(
        "at,y\n" + "".join(f"{1 + i % 28:02}/{1 + i % 12:02}/2024,{i % 28}\n" for i in range(84))
    )
    words = ("--target", "y", "--regress", *FAST, "-o", tmp_path / "m.craft")
    became = here("fit", tmp_path / "t.csv", *words)["encoding"]["at"]
    assert (became["kind"], became["as"].rpartition(", ")[2]) == ("date", "read as 31/12/2024")
    (tmp_path / "new.csv").write_text("at\n05/06/2024\n")
    here("predict", tmp_path / "m.craft", tmp_path / "new.csv", "-o", tmp_path / "p.csv")
    expected = craftmaps.load(tmp_path / "m.craft").predict({"at": ["2024-06-05"]})
    assert float((tmp_path / "p.csv").read_text().split()[1]) == pytest.approx(expected[0])

    (tmp_path / "few.csv").write_text("at,y\n" + "05/06/2024,1\n07/08/2024,2\n09/10/2024,4\n")
    for kind, form in (("dayfirst", "31/12/2024"), ("date", "12/31/2024")):
        facts = here("fit", tmp_path / "few.csv", *words, "--as", f"at={kind}")
        assert facts["encoding"]["at"]["as"].endswith(f"read as {form}")


def test_what_cannot_be_learned_from_is_named(tmp_path):
    lists = pa.array([[1], [2, 3]] * 2500)  # of two blocks
    columns = {"a": [1, 2] * 2500, "b": lists, "y": [0, 1] * 2500}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    said = complaint("fit", tmp_path / "t.parquet", "--target", "y", "-o", tmp_path / "m.craft")
    assert "column 'b' holds list<" in said
    assert "leave it out with --drop b" in said
    (tmp_path / "prediction.csv").write_text("a,prediction\n1,2\n3,4\n5,6\n7,9\n")
    words = ("--target", "a", "--regress", *FAST, "-o", tmp_path / "m.craft")
    here("fit", tmp_path / "prediction.csv", *words)
    words = ("--keep", "prediction", "-o", tmp_path / "p.csv")
    said = complaint("predict", tmp_path / "m.craft", tmp_path / "prediction.csv", *words)
    assert "the output has its own 'prediction': --keep another column" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fit flats.csv --target high --budget soon", "budget must be a number of components"),
        ("fit flats.csv --target high --loss huber", "--loss huber is for measured numbers"),
        ("fit flats.csv --target size --loss log", "--loss log is for classes"),
        ("fit flats.csv --target high --drop color", "--drop names 'color', and there is no such"),
        ("fit flats.csv --target high --as page=thing", "--as must be COLUMN=KIND, and a KIND is"),
        ("fit flats.csv --target high --as color=text", "--as names 'color', and there is no such"),
        ("fit flats.csv --target high --images", "--images takes only columns of numbers"),
        ("fit flats.csv --target 3 --no-header --drop id", "no names for --drop"),
        ("fit flats.csv --target id", "the target has 240 different texts in 240 rows"),
        ("predict fast.craft new.parquet --keep color", "there is no column 'color'"),
        ("predict fast.craft X.npy --keep id", "--keep is for CSV and Parquet files"),
        ("evaluate fast.craft flats.csv", "name the column of targets: --target COLUMN"),
        (
            "evaluate fast.craft flats.csv --target high --plot p.xls",
            "--plot must be a file that ends in .png or .svg or .pdf",
        ),
    ],
)
def test_mistakes_are_told_in_one_sentence(line, said, folder, model, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    np.save("X.npy", np.ones((2, 8)))
    words = line.split()
    if words[0] != "evaluate":
        words += ["-o", str(tmp_path / ("m.craft" if words[0] == "fit" else "p.csv"))]
    assert said in " ".join(complaint(*words).split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (["2"], "all 30 rows have the target 2, so there is nothing to learn; name another column"),
        (["2.5"], "all 30 rows have the target 2.5, so there is nothing to learn"),
        (["no"], "all 30 rows have the target no, so there is nothing to learn"),
        ([f"${i},000.00" for i in range(1, 31)], "such as '$1,000.00': write plain numbers"),
        ([f"1.{i}0,5" for i in range(10, 40)], "such as '1.100,5': write plain numbers, without"),
        (
            [f"{i},5" for i in range(30)],
            "such as '0,5': read decimal commas with '--decimal ,', or",
        ),
        ([f"name {i}" for i in range(30)], "such as 'name 0': give numbers or few classes, or"),
    ],
)
def test_targets_that_teach_nothing(targets, said, tmp_path):
    lines = [f"{i};{targets[i % len(targets)]}" for i in range(30)]
    (tmp_path / "t.csv").write_text("x;y\n" + "\n".join(lines))
    words = ("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.craft")
    assert said in " ".join(complaint(*words).split())


def test_a_class_that_may_be_a_missing_target_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,a\n2,b\n3,NA\n" * 10)
    words = ("--target", "y", *FAST, "-o", tmp_path / "m.craft")
    with pytest.warns(UserWarning, match="'NA' is learned as a class like the others"):
        assert here("fit", tmp_path / "t.csv", *words)["classes"] == 3


@pytest.mark.parametrize("missing", ["", "NA", "?", "#DIV/0!"])
def test_rows_without_a_target_are_left_out_and_counted(missing, folder, tmp_path):
    """Those of a column of numbers, in `fit` and in `evaluate`; other rows are as without them."""
    rows = [f"{i % 7},{missing if i % 10 == 4 else i * 0.5}" for i in range(60)]
    (tmp_path / "all.csv").write_text("x,y\n" + "\n".join(rows))
    (tmp_path / "some.csv").write_text(
        "x,y\n" + "\n".join(row for i, row in enumerate(rows) if i % 10 != 4)
    )
    for command, *words in (("fit", *FAST, "-o", tmp_path / "m.craft"), ("evaluate",)):
        model = () if command == "fit" else (tmp_path / "m.craft",)
        with pytest.warns(UserWarning, match="6 rows without a target were left out of "):
            found = here(command, *model, tmp_path / "all.csv", "--target", "y", *words)
        expected = here(command, *model, tmp_path / "some.csv", "--target", "y", *words)
        assert found["rows"] == expected["rows"] == 54
        name = "training_rmse" if command == "fit" else "rmse"
        assert found[name] == expected[name]
    (tmp_path / "none.csv").write_text("x,y\n1,\n2,\n")
    with pytest.warns(UserWarning, match="2 rows without a target"):
        said = complaint("fit", tmp_path / "none.csv", "--target", "y", "-o", tmp_path / "n.craft")
    assert "there is no row with a target in these files" in said
    (tmp_path / "bad.csv").write_text("x,y\n" + "1,1.5\n2,2.5\n" * 20 + "3,soon\n")
    said = complaint("evaluate", tmp_path / "m.craft", tmp_path / "bad.csv", "--target", "y")
    assert "'soon'" in said or "the target holds" in said


def test_parquet_rows_without_a_target_are_left_out(tmp_path):
    pq.write_table(
        pa.table({"x": [1, 2, 3] * 9, "y": ["a", "b", None] * 9}), tmp_path / "t.parquet"
    )
    words = ("--target", "y", *FAST, "-o", tmp_path / "m.craft")
    with pytest.warns(UserWarning, match="9 rows without a target were left out"):
        facts = here("fit", tmp_path / "t.parquet", *words)
    assert (facts["rows"], facts["classes"]) == (18, 2)


def test_classes_that_differ_only_in_blanks_or_capital_letters_are_named(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,yes\n2,no\n3, Yes\n" * 10)
    words = ("--target", "y", *FAST, "-o", tmp_path / "m.craft")
    with pytest.warns(UserWarning, match="' Yes' and 'yes' are learned as different classes"):
        assert here("fit", tmp_path / "t.csv", *words)["classes"] == 3


def test_files_that_are_read_are_not_overwritten(folder, model, tmp_path):
    data = tmp_path / "flats.csv"
    data.write_bytes((folder / "flats.csv").read_bytes())
    for words in (
        ("fit", data, "--target", "high", *FAST, "-o", data),
        ("predict", model, data, "-o", tmp_path / "." / "flats.csv"),
        ("predict", model, tmp_path, "-o", data),
    ):
        assert "flats.csv, which is read: name another file" in complaint(*words)
    assert data.read_bytes() == (folder / "flats.csv").read_bytes()


def test_rows_without_names_have_the_columns_of_the_model(tmp_path):
    data = tmp_path / "t.csv"
    data.write_text("0.5,1,a\n1.5,2,b\n" * 20)
    same = ("--no-header", "-o", tmp_path / "p.csv")
    here("fit", data, "--target", "2", "--no-header", *FAST, "-o", tmp_path / "m.craft")
    assert "'a' is not a number; choose the columns to read with columns=" in complaint(
        "predict", tmp_path / "m.craft", data, *same
    )
    assert here("predict", tmp_path / "m.craft", data, "--columns", "0,1", *same)["rows"] == 40


def test_many_whole_numbers_as_classes_are_said(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i % 9},{i % 15}\n" for i in range(300)))
    words = ("--target", "y", *FAST, "-o", tmp_path / "m.craft")
    with pytest.warns(UserWarning, match="15 different whole numbers.*; --regress learns them as"):
        assert here("fit", tmp_path / "t.csv", *words)["classes"] == 15


def test_names_of_columns_with_commas_and_spaces(tmp_path):
    """The advice of a warning can be pasted into a shell."""
    table = pa.table({"a, b": list(range(200)), "c d": ["1", "u"] * 100, "y": [0.5, 1.5] * 100})
    pq.write_table(table, tmp_path / "t.parquet")
    line = f"craftmaps fit t.parquet --target y {' '.join(FAST)} -o m.craft"
    _, err = run(line, tmp_path)
    advice = err[err.index("--drop") :].partition(", unless")[0]
    assert advice == """--drop '"a, b"'"""
    out, err = run(f"{line} {advice}", tmp_path)
    assert not err
    assert "a, b  dropped" not in out
    assert list(craftmaps.load(tmp_path / "m.craft").feature_names_in_) == ["c d"]
    words = ("--target", "y", *FAST, "-o", tmp_path / "m.craft")
    words = (*words, "--columns", '"a, b",c d', "--as", '"a, b"=number,c d=text')
    facts = here("fit", tmp_path / "t.parquet", *words)
    kinds = {name: one["kind"] for name, one in facts["encoding"].items()}
    assert kinds == {"a, b": "number", "c d": "text"}


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_other_encodings(encoding, tmp_path):
    lines = [f"{['München', 'Köln', 'Zürich'][i % 3]};{i % 7};{i % 3}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["Straße;größe;y", *lines]), encoding=encoding)
    words = ("fit", tmp_path / "t.csv", "--target", "y", *FAST, "-o", tmp_path / "m.craft")
    assert "give the encoding of the file" in complaint(*words)
    became = here(*words, "--encoding", encoding)["encoding"]
    assert became["Straße"]["as"] == "3 levels: Köln, München, Zürich"
    words = (tmp_path / "m.craft", tmp_path / "t.csv", "--encoding", encoding)
    here("predict", *words, "--keep", "Straße", "-o", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("München,")
    assert here("evaluate", *words, "--target", "y")["rows"] == 60
    assert "encoding must be the name of" in complaint(
        "predict", *words, "--encoding", "latin9x", "-o", "p.csv"
    )


def test_text_far_down_a_file_of_numbers(tmp_path, monkeypatch):
    """The first rows look like an array, and the last row makes it a table."""
    monkeypatch.setattr(text, "CHUNK_BYTES", 1000)
    lines = ["a,y", *(f"{i % 97},{i % 2}" for i in range(3000)), "late,1"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    words = ("--target", "y", *FAST, "-o", tmp_path / "m.craft")
    with pytest.warns(UserWarning, match="nearly all values of 'a' .* not 'late'"):
        facts = here("fit", tmp_path / "t.csv", *words)
    assert facts["rows"] == 3001
    assert facts["encoding"]["a"]["kind"] == "text"


def test_files_without_names(folder, tmp_path):
    (tmp_path / "t.csv").write_text("u,1.5,no\nv,,yes\nu,2.5,no\n" * 20)
    same = ("--no-header", "-o", tmp_path / "m.craft")
    facts = here("fit", tmp_path / "t.csv", "--target", "2", *FAST, *same)
    assert list(facts["encoding"]) == ["0", "1"]
    words = ("--no-header", "--target", "2")
    assert here("evaluate", tmp_path / "m.craft", tmp_path / "t.csv", *words)["error"] == 0
    words = ("--no-header", "--keep", "0", "-o", tmp_path / "p.csv")
    here("predict", tmp_path / "m.craft", tmp_path / "t.csv", *words)
    assert (tmp_path / "p.csv").read_text().split()[:3] == ["0,prediction", "u,no", "v,yes"]


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_evaluation_with_intervals_and_a_plot(task, folder, model, tmp_path):
    pytest.importorskip("matplotlib")
    table = table_of_flats(150, seed=2)
    write_csv(table, tmp_path / "t.csv")
    target = "high"
    if task == "numbers":
        target, model = "size", tmp_path / "m.craft"
        words = ("--target", target, "--drop", "id", *FAST, "-o", model)
        here("fit", folder / "flats.csv", *words)
    plot = tmp_path / "plot.png"
    words = ("--target", target, "--plot", plot)
    facts = here("evaluate", model, tmp_path / "t.csv", *words)
    assert plot.read_bytes().startswith(b"\x89PNG")
    names = {
        "classes": {"error", "log_loss", "auc"},
        "numbers": {"rmse", "mean_absolute_error", "r2"},
    }
    assert facts["intervals"].keys() == names[task]
    for name, (low, high) in facts["intervals"].items():
        assert low < facts[name] < high
    learner, new = craftmaps.load(model), table.drop_columns(["id", target])
    if task == "numbers":
        assert facts["r2"] == pytest.approx(learner.score(new, table["size"].to_numpy()))
        return
    predicted = learner.predict(new)
    y = np.array(table["high"].to_pylist())
    assert facts["error"] == pytest.approx(np.mean(predicted != y))
    expected = [
        [int(np.sum((y == a) & (predicted == b))) for b in ("no", "yes")] for a in ("no", "yes")
    ]
    assert facts["confusion"] == {"classes": ["no", "yes"], "counts": expected}
    done = CliRunner().invoke(
        command_line, ["evaluate", str(model), str(tmp_path / "t.csv"), "--target", "high"]
    )
    assert "rows of each class by what was predicted:" in done.output
    assert f"auc:                     {facts['auc']:.4g} (" in done.output


def test_maps_are_compared_on_a_table(folder):
    words = ("--target", "high", "--components", "32", "--seeds", 1, "--kernel", "rbf")
    words = (*words, "--columns", "size,district,listed")
    compared = here("compare", folder / "flats.csv", *words)
    assert {row["name"] for row in compared["maps"]} >= {"FourierFeatures", "Nystroem"}

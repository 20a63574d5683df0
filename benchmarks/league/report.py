"""The page docs/league.md and its picture, from the results file."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import table as markdown
from benchmarks.league import results
from benchmarks.league.methods import METHODS, Method
from benchmarks.league.picture import draw
from benchmarks.league.standings import (
    CLOSE,
    Standing,
    Table,
    compared,
    coverage,
    share_below,
    standings,
    tables,
)

INTRODUCTION = """# League

The league compares whole learners with their default parameters on the same tables, each with one
fixed split. It shows what users get if they tune nothing. `pip install --group league` installs the
rivals, `python -m benchmarks.league run` measures, and `python -m benchmarks.league report` writes
this page.

![Error ratio against time to fit, for each learner](PICTURE)

*Each point is a learner. Lower is more accurate, and further left is faster.*
"""

RULES = """## Rules

- The error of a classifier is the share of wrong labels on the test rows. The error of a regressor
  is the root mean square error in standard deviations of the test targets.
- An error ratio is the error divided by the smallest error on the same table. For classifiers, half
  a wrong row is added to both errors, so that a table without any error has a ratio too. Means of
  ratios are geometric, and a ratio above 10 counts as 10 in them.
- Learners with the same error share the mean of their ranks. A failed run has the last rank and no
  ratio.
- Time is processor time, summed over all threads, because it hardly depends on other programs that
  run. It does not include imports and compilation, and less than 10 ms counts as 10 ms. Memory is
  the peak memory of the whole process.
- HistGB is HistGradientBoosting, Nystroem and MLP are scikit-learn's, and SVM is SVC or SVR.
- LightGBM and CatBoost get categories unchanged, HistGB gets them as integer codes that are marked
  as categories, and the other learners get them one-hot encoded. Dates become year, month, day and
  days. Columns of numbers are imputed and standardized, and the targets of MLP, SVR, Nystroem and
  xRFM are standardized too.
- The rivals treat text as a category. `TableEncoder` uses its characters, which helps most on
  cars_origin, where the name of a car shows where it was made.
- SVC and SVR choose C from 1, 10, 100 and gamma from 1/4, 1, 4 times 1 / columns, by three folds of
  at most 10,000 rows. SVC has no probabilities, so it has no log-loss. Nystroem has 1,024
  landmarks and LogisticRegression or Ridge on top. xRFM validates on a fifth of the training rows.
- "auto" is `KernelClassifier()` or `KernelRegressor()` with default parameters, after a
  `TableEncoder` if a table has text, categories or dates. The other variants have a budget of 1,024
  components, of ten times the time that LightGBM took, and without a limit. Each budget is ranked
  with the rivals, without the other budgets. The rivals are ranked with the largest budget.
- The test rows are the published test set if there is one, otherwise a random third of the rows,
  but at most 10,000. "50,000 rows" means that training rows were drawn at random.
"""


def write_report(file: Path, page: Path) -> None:
    """Write the page, and a picture of the same name beside it."""
    every_row = tables(results.read(file))
    if not every_row:
        sys.exit(f"{file} has no results; run python -m benchmarks.league run first")
    ours_first = sorted(METHODS, key=lambda one: not one.is_ours)
    methods, rows = compared(ours_first, every_row)
    kinds = {
        "Classification": [table for table in rows if table.is_classification],
        "Regression": [table for table in rows if not table.is_classification],
    }
    kinds = {title: part for title, part in kinds.items() if part}
    found = {title: standings(methods, part) for title, part in kinds.items()}
    picture = page.with_suffix(".png")
    base = rows[0].base.words
    draw(found, base, picture)
    parts = [INTRODUCTION.replace("PICTURE", picture.name)]
    for title, part in kinds.items():
        parts.append(f"## {title}: {len(part)} tables\n\n{standing_table(found[title], base)}")
        parts.append(value_table(part, methods, "error", "Errors", "{:.4f}".format))
    if "Classification" in kinds:
        parts.append(log_loss_part(kinds["Classification"], methods))
    parts.append(value_table(rows, methods, "fit_cpu_seconds", "Seconds to fit", seconds))
    parts.append(expectation_part(rows, methods))
    parts += [
        unfinished_part(every_row, rows, methods),
        failure_part(rows, methods),
        RULES,
        size_part(rows),
        machine_part(rows, methods),
    ]
    page.write_text("\n".join(part for part in parts if part))


def standing_table(found: list[Standing], base: str) -> str:
    header = [
        "learner",
        "mean rank",
        "best on",
        f"within {CLOSE - 1:.0%} of the best",
        "error ratio, mean",
        "worst",
        f"time to fit, {base} = 1",
        "to predict",
        "memory, MB",
    ]
    return markdown(header, (standing_cells(one) for one in found))


def standing_cells(one: Standing) -> list[str]:
    words = f"**{one.method.words}**" if one.method.is_ours else one.method.words
    return [
        words,
        f"{one.mean_rank:.1f}",
        str(one.wins),
        f"{one.close:.0%}",
        f"{one.ratio:.2f}",
        f"{one.worst_ratio:.2f}",
        f"{one.time:.3g}",
        f"{one.predict_time:.3g}",
        f"{one.memory / 1e6:.0f}",
    ]


def value_table(
    rows: list[Table], methods: list[Method], measure: str, title: str, shown: Callable
) -> str:
    """A measure for each table and learner, the least one bold."""
    lines = []
    for table in rows:
        values = [table.value(one.name, measure) for one in methods]
        least = np.nanmin(values)
        shown_values = ["" if np.isnan(value) else shown(value) for value in values]
        best = shown(least)
        cells = [f"**{cell}**" if cell == best else cell for cell in shown_values]
        lines.append([table.label, *cells])
    header = ["table", *(one.words for one in methods)]
    return f"### {title}\n\n{markdown(header, lines)}"


def seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def log_loss_part(rows: list[Table], methods: list[Method]) -> str:
    methods = [one for one in methods if share_below(one.name, one.name, rows)[1]]
    rivals = [one for one in methods if one.name in ("lightgbm", "catboost")]
    lines = [
        [one.words, *("" if one == rival else below(one, rival, rows) for rival in rivals)]
        for one in methods
    ]
    header = ["learner", *(f"log-loss below that of {rival.words} on" for rival in rivals)]
    every = value_table(rows, methods, "log_loss", "Log-losses", "{:.4f}".format)
    return f"{every}\n{markdown(header, lines)}"


def below(method: Method, rival: Method, rows: list[Table]) -> str:
    won, of = share_below(method.name, rival.name, rows)
    return f"{won} of {of} tables"


def expectation_part(rows: list[Table], methods: list[Method]) -> str:
    """How often the test error was in the interval that a learner of this package gave."""
    covered = {one: coverage(one.name, rows) for one in methods if one.is_ours}
    lines = [[one.words, f"{inside} of {of} tables"] for one, (inside, of) in covered.items() if of]
    if not lines:
        return ""
    return (
        "## Expected errors\n\nThe search gives an interval that should contain the error on new "
        "rows in 90% of cases.\n\n" + markdown(["learner", "test error in the interval on"], lines)
    )


def unfinished_part(every_row: list[Table], rows: list[Table], methods: list[Method]) -> str:
    """What the page leaves out: tables and learners whose runs are not complete."""
    left_out = [table.label for table in every_row if table not in rows]
    left_out += [one.words for one in METHODS if one not in methods and one.is_ours]
    if not left_out:
        return ""
    return (
        "## Left out\n\nNot compared here, because not all of their runs are done: "
        f"{'; '.join(left_out)}.\n"
    )


def failure_part(rows: list[Table], methods: list[Method]) -> str:
    lines = [
        f"- {one.words} on {table.label}: {table.results[one.name]['failure']}."
        for one in methods
        for table in rows
        if "failure" in table.results[one.name]
    ]
    return "## Runs without a result\n\n" + "\n".join(lines) + "\n" if lines else ""


def size_part(rows: list[Table]) -> str:
    header = ["table", "task", "training rows", "test rows", "columns", "classes"]
    lines = [
        [
            table.label,
            table.about["task"],
            f"{table.about['n_train']:,}",
            f"{table.about['n_test']:,}",
            table.about["n_columns"],
            table.about["n_classes"] or "",
        ]
        for table in rows
    ]
    return f"## Tables\n\n{markdown(header, lines)}"


def machine_part(rows: list[Table], methods: list[Method]) -> str:
    """Processors, threads, seeds and versions of all results of the page."""
    kept = [table.results[one.name] for table in rows for one in methods]
    kept = [result for result in kept if "versions" in result]
    versions = {f"{name} {number}" for one in kept for name, number in one["versions"].items()}

    def all_of(key: str) -> str:
        return ", ".join(sorted({str(result[key]) for result in kept}))

    return (
        f"## Machine\n\n{all_of('cpu')} with {all_of('cores')} cores; threads for each run: "
        f"{all_of('threads')}; seed {all_of('seed')}; Python {all_of('python')}; "
        f"{', '.join(sorted(versions))}.\n"
    )

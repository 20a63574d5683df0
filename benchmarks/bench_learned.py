"""A learned down-projection against a drawn one: test errors, and what it costs."""

from typing import Any

import numpy as np

from benchmarks.grid import CLASSIFICATION, REGRESSION, learned_error, prepared
from benchmarks.harness import DATA, once, table
from craftmaps import CraftMap, Polynomial

DEGREE = 5
SIZES = (128, 512)
SEEDS = 3
PREPROCESSING = "0 to 1, unit norm"


def report() -> str:
    if not DATA:
        return "## Learned down-projections\n\nSkipped: CRAFTMAPS_DATA is not set."
    lines = [line for name in (*CLASSIFICATION, *REGRESSION) for line in lines_of(name)]
    header = ["data", "columns", "components", "expected error of fold", "fold", "principal"]
    header += ["error, ratio", "time, ratio"]
    won = sum(float(cells[-2]) < 1 for cells in lines)
    return (
        "## Learned down-projections\n\n"
        f'Test errors of `CraftMap(Polynomial({DEGREE}))` with `down="fold"` and '
        f'`down="principal"`, columns from 0 to 1 and rows of length 1, alpha by GCV, means of '
        f"{SEEDS} seeds; times of fit and predictions. The expected error is of the kernel.\n\n"
        f"{table(header, lines)}\n"
        f"The learned one has less error in {won} of {len(lines)} cases.\n"
    )


def lines_of(name: str) -> list[list[Any]]:
    rows = prepared(name, PREPROCESSING)
    return [line(name, rows, size) for size in SIZES]


def line(name: str, rows: tuple[Any, Any, Any, Any], size: int) -> list[Any]:
    errors: dict[str, list[float]] = {"fold": [], "principal": []}
    times = dict.fromkeys(errors, 0.0)

    def learn(down: str, seed: int) -> None:
        feature_map = CraftMap(Polynomial(DEGREE), size, down=down, random_state=seed)
        errors[down].append(learned_error(name, feature_map, rows))

    for down in ("principal", "fold"):  # compilation is not counted
        warm = CraftMap(Polynomial(DEGREE), size, down=down, random_state=0)
        warm.fit_transform(rows[0][:4096])
    for seed in range(SEEDS):
        for down in errors:
            times[down] += once(lambda down=down, seed=seed: learn(down, seed))
    fold, principal = (float(np.mean(found)) for found in errors.values())
    took = times["principal"] / times["fold"]
    print(name, size, fold, principal, took, flush=True)
    shown = [f"{fold:.4f}", f"{principal:.4f}", f"{principal / fold:.2f}", f"{took:.1f}"]
    return [name, rows[0].shape[1], size, f"{warm.expected_error_:.2f}", *shown]

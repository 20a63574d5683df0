"""How much memory is available, and errors before it is exceeded."""

import os
from pathlib import Path

from craftmaps.learn.solvers.choose import MANY_ROWS

_GROUPS = (  # memory limit and use of a container, for control groups of versions 2 and 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


def available_bytes() -> int | None:
    """Return how much memory this process can still use, or None if unknown."""
    known = [
        value for value in (_machine(), *map(_container, *zip(*_GROUPS, strict=True))) if value
    ]
    return min(known) if known else None


def equations_bytes(
    n_features: int, n_targets: int, itemsize: int, n_folds: int = 1, *, copy: bool = True
) -> int:
    """Return the bytes for the sums, the work matrix of float32 blocks, and a copy for the solver.

    With folds, the sums of the training folds are held in addition to the sums of each fold. A
    plain ridge problem with one given alpha is solved without a copy.
    """
    work = 4 if itemsize == 4 else 0
    sums = 1 if n_folds == 1 else n_folds + 1
    squares = 8 * (sums + copy) + work
    return n_features**2 * squares + 8 * n_features * n_targets * (sums + 1)


def refuse_if_too_large(
    n_features: int,
    n_targets: int,
    itemsize: int,
    n_folds: int = 1,
    *,
    copy: bool = True,
    by_class: bool = False,
) -> None:
    """Raise MemoryError before anything is allocated, with the sizes and with advice.

    `by_class` says that the folds are classes.
    """
    needed = equations_bytes(n_features, n_targets, itemsize, n_folds, copy=copy)
    available = available_bytes()
    if available is None or needed <= available:
        return
    per_square = equations_bytes(1, 0, itemsize, n_folds, copy=copy)
    fits = max(1, int((available / per_square) ** 0.5))
    if by_class:
        raise MemoryError(
            f"class_sums=True keeps the sums of {n_features} features for each of {n_folds} "
            f"classes, which needs {needed / 1e9:.2f} GB ({needed:,} bytes), and "
            f"{available / 1e9:.2f} GB are available; use at most about {fits} features "
            f"(n_components), or class_sums=False with a dict as class_weight."
        )
    raise MemoryError(
        f"the normal equations of {n_features} features and {n_targets} targets need "
        f"{needed / 1e9:.2f} GB, and {available / 1e9:.2f} GB are available; use at most about "
        f"{fits} features (n_components), or a code with fewer bits if there are many classes"
        f"{', or give one alpha, which saves a copy' if copy else ''}."
    )


def refuse_too_many_rows(n_rows: int, n_features: int, itemsize: int, *, spanned: bool) -> None:
    """Raise MemoryError, before anything is allocated, if the kept rows do not fit into memory.

    `spanned` says that the problem will be solved in the span of the rows, which takes four
    matrices of the products of all pairs of rows.
    """
    features, products = itemsize * n_rows * n_features, 32 * n_rows**2 if spanned else 0
    available = available_bytes()
    if available is None or features + products <= available:
        return
    fits = max(1, available // (itemsize * n_rows))
    advice = f"use at most about {fits} features (n_components), or fewer rows"
    if features <= available:
        advice = "use fewer rows"
        if n_rows > MANY_ROWS:
            advice += ", or one alpha for all targets, a number or 'auto'"
    raise MemoryError(
        f"{n_rows} rows of {n_features} features need {features / 1e9:.2f} GB, products of them "
        f"{products / 1e9:.2f} GB, and {available / 1e9:.2f} GB are available; {advice}."
    )


def _machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container(limit: str, used: str) -> int | None:
    try:
        return max(1, int(Path(limit).read_text()) - int(Path(used).read_text()))
    except (OSError, ValueError):  # no such group, or "max"
        return None

"""Checkpoints of a fit: sums and position on disk, from which the same call continues."""

import hashlib
import time
from collections.abc import Generator, Iterable
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from craftmaps.learn.features import fill_features
from craftmaps.storage import array_file
from craftmaps.storage.folder_lock import FolderLock
from craftmaps.storage.packing import Packer, Unpacker
from craftmaps.tables.table import is_table, table_of
from craftmaps.validation import warn

_FILES_KEPT = 2  # the newest file, and the one before it


class Checkpoint:
    """The numbered files of one fit in a folder, each with everything learned up to then.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    every : float
        Seconds between two files.
    estimator : learner
    blocks : iterable
    options : dict
        Other arguments of the call, which must be the same when it continues.
    """

    def __init__(
        self, folder: Any, every: float, estimator: Any, blocks: Any, options: dict[str, Any]
    ) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(self._folder)
        self._every = every
        self._estimator = estimator
        parameters = estimator.get_params(deep=True) | options
        self._origin: dict[str, Any] = {
            "learner": type(estimator).__name__,
            "parameters": {name: _described(value) for name, value in parameters.items()},
            "rows": blocks.fingerprint() if hasattr(blocks, "fingerprint") else None,
        }
        self._number = 0
        self._rows, self._finished = 0, False  # what the last file contains
        self._due = 0.0

    def __enter__(self) -> Self:
        """Keep other processes out of the folder, because their files would mix with these."""
        self._lock.__enter__()
        for unfinished in self._folder.glob(".checkpoint-*.part"):  # a killed process left them
            unfinished.unlink(missing_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)

    def restore(self) -> list[Any] | None:
        """Restore what the estimator had learned; return the position, or None without a file.

        A damaged file is skipped with a warning if there is an older one.
        """
        damage: list[str] = []
        for path in self._files():
            try:
                header, arrays = array_file.read(path, "checkpoint")
                self._check_origin(path, header["origin"])
                saved = Unpacker(arrays).unpack(header["fit"])
            except _ForeignCheckpointError as error:
                raise ValueError(str(error)) from None
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                damage.append(str(error))
                continue
            if damage:
                warn(f"{damage[0]} The fit goes on from {path}.", UserWarning)
            self._number = _number_of(path)
            self._rows, self._finished = header["n_rows"], header["finished"]
            self._adopt(saved, path)
            self._due = time.monotonic() + self._every
            return list(header["position"])
        if damage:
            raise ValueError(
                f"no checkpoint in {self._folder} can be used; remove it to start over. {damage[0]}"
            )
        return None

    def save_if_due(self, position: list[Any]) -> None:
        """Write a file if the last one is old enough."""
        if time.monotonic() >= self._due:
            self.save(position)

    def save(self, position: list[Any], finished: bool = False) -> None:
        """Write a file, unless nothing has changed since the last one, and remove old files."""
        n_rows = self._estimator.n_samples_seen_
        if finished and self._finished and n_rows == self._rows:
            return
        self._estimator._stream.flush_if_full()  # an empty buffer makes a smaller file
        packer = Packer()
        estimator = _without_frozen_map(self._estimator.for_checkpoint())
        try:
            tree = packer.pack(estimator, type(estimator).__name__)
        except TypeError as error:
            raise TypeError(
                f"a checkpoint cannot hold this map: {error} Or fit it on some rows, and give "
                f"sklearn.frozen.FrozenEstimator(feature_map)."
            ) from error
        header = {
            "fit": tree,
            "origin": self._origin,
            "position": position,
            "n_rows": n_rows,
            "finished": finished,
        }
        path = self._folder / f"checkpoint-{self._number + 1:06}.craft"
        try:
            array_file.write(path, "checkpoint", header, packer.arrays)
        except OSError as error:
            last = f"The one after {self._rows} rows is intact" if self._rows else "There is none"
            raise OSError(
                error.errno, f"the fit stops, because its checkpoint {error.strerror} {last}."
            ) from error
        self._number += 1
        self._rows, self._finished = n_rows, finished
        for old in self._files()[_FILES_KEPT:]:
            old.unlink()
        self._due = time.monotonic() + self._every

    def _files(self) -> list[Path]:
        """The files, newest first."""
        return sorted(self._folder.glob("checkpoint-*.craft"), key=_number_of, reverse=True)

    def _check_origin(self, path: Path, origin: dict[str, Any]) -> None:
        """Raise an error unless a file has this learner, these parameters and these rows."""
        way_out = "pass the same, use another folder, or remove this one to start over."
        here, there = self._origin["parameters"], origin["parameters"]
        if origin["learner"] != self._origin["learner"] or here.keys() != there.keys():
            raise _ForeignCheckpointError(
                f"{path} belongs to another learner, a {origin['learner']}; {way_out}"
            )
        for name, value in here.items():
            if value != there[name]:
                raise _ForeignCheckpointError(
                    f"{path} was made with {name}={there[name]}, not {value}; {way_out}"
                )
        mine, theirs = self._origin["rows"], origin["rows"]
        if mine == theirs:
            return
        if mine is None or theirs is None:
            raise _ForeignCheckpointError(f"{path} belongs to other rows; {way_out}")
        names = [name for name in mine if mine[name] != theirs.get(name)]
        if names == ["files"]:
            changed = [file[0] for file in mine["files"] if file not in theirs["files"]]
            raise _ForeignCheckpointError(
                f"{path} belongs to other files, or these have changed: {changed[:3]}; {way_out}"
            )
        raise _ForeignCheckpointError(
            f"{path} belongs to rows read with other {', '.join(names)}; {way_out}"
        )

    def _adopt(self, saved: Any, path: Path) -> None:
        """Give the estimator the fitted attributes of another one."""
        fitted = vars(saved).keys() - saved.get_params(deep=False).keys()
        for name in fitted:
            setattr(self._estimator, name, getattr(saved, name))
        features = vars(self._estimator).pop("_probe_features", None)
        if features is None:
            return
        feature_map = self._estimator.feature_map
        self._estimator.feature_map_ = self._estimator._stream.feature_map = feature_map
        now = np.empty_like(features)
        fill_features(feature_map, self._estimator._probe, now)
        if not np.array_equal(now, features):
            raise ValueError(f"{path} was learned with another map than the frozen one given here.")


class _ForeignCheckpointError(Exception):
    """A checkpoint of something else."""


def positioned(
    blocks: Iterable[Any], position: list[Any] | None, *, kept: bool
) -> Generator[tuple[Any, tuple[Any, Any, Any]], None, None]:
    """Yield the blocks (X, y, weights) after a position, each with the position after it.

    `blocks` either knows positions itself (`from_position`), or is read again block by block.
    Blocks that are read again must equal the blocks of the first time. `kept` says that positions
    will be stored.
    """
    if hasattr(blocks, "from_position"):
        for after, block in blocks.from_position(*([] if position is None else [position])):
            yield list(after), unpacked(block)
        return
    n_learned, n_rows, learned = position or (0, 0, "")
    rows, number, seen = 0, 0, ""
    for number, block in enumerate(map(unpacked, blocks), 1):
        rows += _n_rows(block[0])
        if kept:
            seen = _digest_of(seen, block)
        if number > n_learned:
            yield [number, rows, seen], block
        elif number == n_learned and seen != learned:
            break
    if number < n_learned or (number == n_learned and seen != learned):
        raise ValueError(
            f"the checkpoint has learned {n_rows} rows in {n_learned} blocks, but the first {rows} "
            f"rows in {number} blocks given now have other values, targets or weights; pass the "
            f"same rows, use another folder, or remove this one to start over."
        )


def unpacked(block: Any) -> tuple[Any, Any, Any]:
    """Return rows, targets and weights (or None) of a block (X, y) or (X, y, sample_weight)."""
    if not isinstance(block, tuple | list) or len(block) not in (2, 3):
        raise ValueError("blocks must yield (X, y) or (X, y, sample_weight).")
    return (*block, None) if len(block) == 2 else tuple(block)


def _without_frozen_map(estimator: Any) -> Any:
    """Return a copy without a frozen map, which the caller gives again.

    The features of one row stay in the copy. They tell whether it is the same map.
    """
    if not isinstance(estimator.feature_map, FrozenEstimator):
        return estimator
    slim, stream = copy(estimator), copy(estimator._stream)
    slim._probe_features = np.empty((1, stream.n_features), stream.dtype)
    fill_features(stream.feature_map, estimator._probe, slim._probe_features)
    slim.feature_map = slim.feature_map_ = stream.feature_map = None
    slim._stream = stream
    return slim


def _number_of(path: Path) -> int:
    digits = path.stem.removeprefix("checkpoint-")
    return int(digits) if digits.isdecimal() else -1


def _described(value: Any) -> str:
    """Return a text for a parameter that is the same in every process."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array {value.shape} {value.dtype} {digest(value)}"
    if isinstance(value, np.random.RandomState | np.random.Generator) or hasattr(
        value, "get_params"
    ):
        return type(value).__name__
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return repr(value)


def _n_rows(X: Any) -> int:
    return table_of(X).n_rows if is_table(X) else int(np.shape(X)[0])


def _digest_of(before: str, block: tuple[Any, Any, Any]) -> str:
    """Return the digest of a block and of all blocks before it."""
    X, y, weights = block
    if is_table(X):
        table = table_of(X)
        parts = [np.array(table.names), *(table.read(name).data for name in table.names)]
    elif sparse.issparse(X):
        parts = [X.data, X.indices, X.indptr]
    else:
        parts = [np.asarray(X)]
    weighted = () if weights is None else (np.asarray(weights),)
    return digest(*parts, np.asarray(y), *weighted, before=before)


def digest(*arrays: np.ndarray, before: str = "") -> str:
    """Return a digest that identifies the contents of arrays, and of what came `before`."""
    whole = hashlib.blake2b(before.encode(), digest_size=16)
    for array in arrays:
        plain = np.ascontiguousarray(array.astype(str) if array.dtype == object else array)
        whole.update(f"{plain.dtype} {plain.shape}".encode())
        whole.update(plain.tobytes())
    return whole.hexdigest()

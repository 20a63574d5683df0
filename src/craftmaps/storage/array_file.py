"""Files with a JSON header and named arrays, which are safe to open: models and checkpoints.

The format is safetensors. Its metadata contain the header, the kind of file, the versions of the
format and of the library, and a checksum of header and arrays.
"""

import hashlib
import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open

from craftmaps.storage.atomic import write_whole

_LIBRARY_VERSION = version("craftmaps")
FORMAT_VERSION = 2  # increased when older versions of this library cannot read new files
_MAX_HEADER_BYTES = 100_000_000  # as in the safetensors library

NUMBER_TYPES = {"bool": "BOOL"} | {  # by their names in NumPy and in the files
    f"{name}{bits}": f"{letter}{bits}"
    for name, letter, sizes in (
        ("int", "I", (8, 16, 32, 64)),
        ("uint", "U", (8, 16, 32, 64)),
        ("float", "F", (16, 32, 64)),
    )
    for bits in sizes
}


def write(
    path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a header and arrays to one file, whole or not at all.

    Parameters
    ----------
    path : path of the file
    kind : {"model", "checkpoint"}
        The kind that `read` must be called with.
    header : dict
        Values that JSON supports: strings, finite numbers, booleans, None, lists and dicts.
    arrays : dict of ndarray
        Arrays of booleans, integers or floating-point numbers of up to 64 bits, of any shape.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from craftmaps.storage import array_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "sums.craft")
    ...     array_file.write(path, "checkpoint", {"rows": 3}, {"total": np.arange(2.0)})
    ...     array_file.read(path, "checkpoint")
    ({'rows': 3}, {'total': array([0., 1.])})
    """
    arrays = {name: _plain(name, array) for name, array in arrays.items()}
    metadata = {
        "craftmaps": kind,
        "format_version": str(FORMAT_VERSION),
        "library_version": _LIBRARY_VERSION,
        "header": json.dumps(header, allow_nan=False, separators=(",", ":")),
    }
    metadata["checksum"] = _checksum(metadata, arrays)
    write_whole(path, lambda file: _fill(file, metadata, arrays))


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and arrays of a file from `write`, or raise ValueError with the reason.

    Nothing in the file is executed. Arrays are allocated only after the sizes in the header have
    been checked against the size of the file.
    """
    path = Path(path)
    path.open("rb").close()  # raises an error if the path is wrong
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            _check_origin(path, kind, metadata)
            arrays = {name: _array(file, name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path} is refused: {_damage(path)}.") from error
    except TypeError as error:
        raise ValueError(f"{path} is refused: it has arrays of an unknown type.") from error
    if metadata.get("checksum") != _checksum(metadata, arrays):
        raise ValueError(
            f"{path} is refused: its contents were altered since it was written (the checksum does "
            f"not match)."
        )
    try:
        header = json.loads(metadata["header"])
    except (ValueError, RecursionError, KeyError) as error:
        raise ValueError(f"{path} is refused: its header is not JSON.") from error
    if not isinstance(header, dict):
        raise ValueError(f"{path} is refused: its header is not a JSON object.")
    return header, arrays


def _check_origin(path: Path, kind: str, metadata: dict[str, str]) -> None:
    """Raise ValueError unless a library that is not newer wrote this kind of file."""
    found = metadata.get("craftmaps")
    if found is None:
        raise ValueError(f"{path} is refused: craftmaps did not write it.")
    written = metadata.get("format_version", "")
    if not written.isdecimal() or int(written[:9]) > FORMAT_VERSION:
        library = metadata.get("library_version", "a later version")
        raise ValueError(
            f"{path} is refused: it has format {written[:9]} of craftmaps {library}, and this is "
            f"craftmaps {_LIBRARY_VERSION}, which knows format {FORMAT_VERSION}; upgrade it."
        )
    if found != kind:
        raise ValueError(f"{path} is refused: it is a {found}, but a {kind} was expected.")


def _array(file: Any, name: str) -> np.ndarray:
    if file.get_slice(name).get_dtype() not in NUMBER_TYPES.values():
        raise TypeError(name)
    array: np.ndarray = file.get_tensor(name)
    return array


def _damage(path: Path) -> str:
    """Return why a file is not valid."""
    size = path.stat().st_size
    if not size:
        return "it is empty"
    with path.open("rb") as file:
        length, brace = int.from_bytes(file.read(8), "little"), file.read(1)
        if brace not in (b"{", b"") or length > _MAX_HEADER_BYTES:
            return "it is not a file of craftmaps"
        wanted = 8 + length
        if size >= wanted:
            try:
                entries = json.loads(brace + file.read(length - 1))
                ends = [entry["data_offsets"][1] for entry in entries.values() if "dtype" in entry]
                wanted += max(ends, default=0)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                return "the list of its arrays cannot be read"
    if size < wanted:
        return f"it is truncated, {size} bytes of at least {wanted}"
    if size > wanted:
        return f"it has {size} bytes, more than the {wanted} of its arrays"
    return "the list of its arrays contradicts itself"


def _checksum(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    described = {name: [array.dtype.name, array.shape] for name, array in sorted(arrays.items())}
    stated = {name: text for name, text in sorted(metadata.items()) if name != "checksum"}
    digest.update(json.dumps([stated, described]).encode())
    for name in described:
        digest.update(arrays[name].reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _plain(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.name not in NUMBER_TYPES:
        raise TypeError(f"array {name!r} is of {array.dtype}, which these files cannot contain.")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _fill(file: BinaryIO, metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> None:
    """Write the safetensors format, without a second copy of the arrays."""
    entries: dict[str, Any] = {"__metadata__": metadata}
    ordered = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # keeps them aligned
    end = 0
    for name in ordered:
        array, start = arrays[name], end
        end += array.nbytes
        kind = NUMBER_TYPES[array.dtype.name]
        entries[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
    described = json.dumps(entries, separators=(",", ":")).encode()
    described += b" " * (-len(described) % 8)
    file.write(len(described).to_bytes(8, "little"))
    file.write(described)
    for name in ordered:
        file.write(arrays[name].reshape(-1).view(np.uint8).data)

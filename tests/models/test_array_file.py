"""Files of arrays come back as they were, or are refused with the reason."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from craftmaps.storage import array_file

HEADER = {"name": "digits", "rows": 3, "nested": {"list": [1, None, True, 0.1]}}
ARRAYS = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "empty": np.zeros((0, 3), np.float32),
    "number": np.array(-3, np.int8),
    "flags": np.array([True, False]),
    "small": np.arange(5, dtype=np.uint16),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.craft"
    array_file.write(path, "model", HEADER, ARRAYS)
    return path


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert np.array_equal(found[name], array)


def with_header(entries, data=b""):
    described = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(described)) + described + data


def test_what_was_written_is_read(path):
    header, arrays = array_file.read(path, "model")
    assert header == HEADER
    assert_same(arrays, ARRAYS)
    assert list(path.parent.iterdir()) == [path]


def test_it_is_a_safetensors_file(path):
    assert_same(load_file(path), ARRAYS)


def test_any_order_of_bytes_and_axes(path):
    arrays = {"big": np.arange(4, dtype=">i4"), "turned": np.arange(6.0).reshape(2, 3).T}
    array_file.write(path, "model", {}, arrays)
    _, found = array_file.read(path, "model")
    assert found["big"].tolist() == [0, 1, 2, 3]
    assert np.array_equal(found["turned"], arrays["turned"])


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([None])])
def test_other_types_are_refused_before_anything_is_written(path, array):
    before = path.read_bytes()
    with pytest.raises(TypeError, match="array 'x' is of"):
        array_file.write(path, "model", {}, {"x": array})
    assert path.read_bytes() == before


def test_every_truncation_is_refused(path):
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"some\.craft is refused: it is (truncated|empty)"):
            array_file.read(path, "model")


def test_every_altered_byte_is_noticed(path):
    data = bytearray(path.read_bytes())
    for place in range(len(data)):
        if chr(data[place]) == " ":  # padding says nothing
            continue
        data[place] ^= 1
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"some\.craft is refused: "):
            array_file.read(path, "model")
        data[place] ^= 1


def test_a_header_of_another_file_is_noticed(path):
    data = path.read_bytes()
    path.write_bytes(data.replace(b"digits", b"digitz"))
    with pytest.raises(ValueError, match="altered"):
        array_file.read(path, "model")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"a text of some length", "not a file of craftmaps"),
        (b"PK\x03\x04" + bytes(60), "not a file of craftmaps"),
        (struct.pack("<Q", 2**62) + b"{}", "not a file of craftmaps"),
        (with_header({}), "craftmaps did not write it"),
        (with_header(b"{" * 50), "list of its arrays cannot be read"),
        (with_header(b'{"a":' * 100_000), "list of its arrays cannot be read"),
        (
            with_header({"x": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}),
            r"truncated, \d+ bytes of at least 87960930",
        ),
        (
            with_header(
                {"x": {"dtype": "F64", "shape": [2**60], "data_offsets": [0, 8]}}, bytes(8)
            ),
            "contradicts itself",
        ),
        (
            with_header({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}, b"12345"),
            "more than the",
        ),
    ],
)
def test_foreign_and_forged_files_are_refused(path, content, reason):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"some\.craft is refused: .*{reason}"):
        array_file.read(path, "model")


def test_files_of_other_libraries_are_refused(path):
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="craftmaps did not write it"):
        array_file.read(path, "model")


def test_another_kind_is_refused(path):
    with pytest.raises(ValueError, match="it is a model, but a checkpoint was expected"):
        array_file.read(path, "checkpoint")


def test_a_newer_format_is_refused(path, monkeypatch):
    monkeypatch.setattr(array_file, "FORMAT_VERSION", 3)
    array_file.write(path, "model", HEADER, ARRAYS)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"format 3 of craftmaps .* knows format 2; upgrade it"):
        array_file.read(path, "model")


def test_a_header_that_is_not_json_is_refused(path):
    arrays: dict[str, np.ndarray] = {}
    for header in ('{"a":' * 100_000, "[1]", ""):
        metadata = {"craftmaps": "model", "format_version": "1", "header": header}
        metadata["checksum"] = array_file._checksum(metadata, arrays)
        save_file(arrays, path, metadata)
        with pytest.raises(ValueError, match=r"some\.craft is refused: its header is not"):
            array_file.read(path, "model")


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        array_file.read(tmp_path / "none", "model")
    with pytest.raises(IsADirectoryError):
        array_file.read(tmp_path, "model")
    with pytest.raises(OSError, match="was not written: No such file or directory"):
        array_file.write(tmp_path / "none" / "x.craft", "model", {}, {})


def test_a_link_stays_and_what_it_leads_to_is_written(path, tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "far" / "link.craft"
    link.symlink_to(path)
    array_file.write(link, "model", {"other": 1}, {})
    assert link.is_symlink()
    assert array_file.read(path, "model")[0] == {"other": 1}
    link.unlink()
    link.symlink_to("absent.craft")
    array_file.write(link, "model", HEADER, ARRAYS)
    assert {one.name for one in link.parent.iterdir()} == {"link.craft", "absent.craft"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "link", "folder"):
        with pytest.raises(OSError, match=f"{name} is not a file that can be replaced"):
            array_file.write(tmp_path / name, "model", {}, {})
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 3


_FULL_DISK = """
import resource, signal, sys
import numpy as np
from craftmaps.storage import array_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
array_file.write(sys.argv[1], "model", {}, {"x": np.zeros(100_000)})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of the size of files are of POSIX")
def test_a_disk_without_room_leaves_the_old_file(path):
    before = path.read_bytes()
    code = [sys.executable, "-c", _FULL_DISK, str(path)]
    ended = subprocess.run(code, capture_output=True, text=True, check=False)
    assert "some.craft was not written: File too large." in ended.stderr
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        array_file.write(path, "model", {}, ARRAYS)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
def test_a_file_that_is_replaced_keeps_its_mode(path):
    path.chmod(0o640)
    array_file.write(path, "model", HEADER, ARRAYS)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2", "BF16"])
def test_types_that_are_never_written_are_refused(path, kind):
    metadata = {"craftmaps": "model", "format_version": "1", "header": "{}"}
    entry = {"dtype": kind, "shape": [2], "data_offsets": [0, 2 * (2 if kind == "BF16" else 1)]}
    data = b"\0" * entry["data_offsets"][1]
    path.write_bytes(with_header({"__metadata__": metadata, "x": entry}, data))
    with pytest.raises(ValueError, match="arrays of an unknown type"):
        array_file.read(path, "model")

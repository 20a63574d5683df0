"""Rows of CSV texts beside those that Python's csv module finds."""

import csv
import io

import numpy as np
import pytest

from craftmaps.loops.csv import find_rows


def found(text, delimiter=","):
    data = np.frombuffer(text.encode(), np.uint8)
    starts, stops, lines = (np.empty(text.count("\n") + 1, np.int64) for _ in range(3))
    n_rows, end = find_rows(data, ord(delimiter), starts, stops, lines)
    rows = [text[a:b] for a, b in zip(starts[:n_rows], stops[:n_rows], strict=True)]
    return rows, lines[:n_rows].tolist(), end


def test_random_texts_are_cut_where_python_cuts_them():
    """Quotes anywhere: at the beginnings of values, within them, doubled, before newlines."""
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(5000):
        text = "".join(rng.choice(list('ab,"\n'), rng.integers(1, 25)))
        rows, lines, end = found(text)
        if end < len(text):  # a quote is left open
            continue
        compared += 1
        reader = csv.reader(io.StringIO(text, newline=""))
        expected = [(fields, reader.line_num - 1) for fields in reader if fields]
        assert [next(csv.reader([row])) for row in rows] == [fields for fields, _ in expected]
        assert lines == [line for _, line in expected]
    assert compared > 2000


@pytest.mark.parametrize(
    ("text", "rows", "lines", "whole"),
    [
        ("a,b\nc,d\n", ["a,b", "c,d"], [0, 1], 8),
        ("a\n\n\r\nb", ["a", "b"], [0, 3], 6),
        ('a,"b\nc"\nd', ['a,"b\nc"', "d"], [1, 2], 9),
        ('a\n"b,\nc\n', ["a"], [0], 2),  # what is open begins after the whole rows
        ('a\n5" b\nc', ["a", '5" b', "c"], [0, 1, 2], 8),
        ("", [], [], 0),
    ],
)
def test_rows_their_lines_and_the_end_of_whole_rows(text, rows, lines, whole):
    assert found(text) == (rows, lines, whole)


def test_another_delimiter():
    assert found('a;"b\nc";d\ne', ";") == (['a;"b\nc";d', "e"], [1, 2], 11)
    assert found('a;"b\nc";d\ne', ",") == (['a;"b', 'c";d', "e"], [0, 1, 2], 11)

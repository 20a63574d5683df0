"""Find the ends of rows in CSV text whose quoted values may contain newlines."""

from craftmaps.loops.compiled import compiled

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


@compiled
def find_rows(text, delimiter, starts, stops, lines):  # type: ignore[no-untyped-def]
    """Find the rows of a text that begins outside of quotes; return their number and their end.

    A quote opens a value only at the beginning of the value, and a doubled quote does not close it.
    Empty lines are not rows. A last row with an open quote is not counted.

    Parameters
    ----------
    text : uint8
    delimiter : int
        The byte between values.
    starts, stops, lines : int64
        Filled with the position of the first byte of each row, the position of its newline, and the
        number of the line in which it ends.
    """
    n_rows = line = start = end = 0
    quoted, closed, begins, empty = False, False, True, True
    for at in range(text.shape[0]):
        byte = text[at]
        if byte == _QUOTE and (quoted or begins or closed):
            quoted, closed = not quoted, quoted
            begins = empty = False
            continue
        closed = False
        if quoted:
            line += byte == _NEWLINE
            continue
        if byte == _NEWLINE:
            if not empty:
                starts[n_rows], stops[n_rows], lines[n_rows] = start, at, line
                n_rows += 1
            line += 1
            start = end = at + 1
            begins = empty = True
            continue
        begins = byte == delimiter
        empty = empty and byte == _RETURN
    if not quoted:
        end = text.shape[0]
        if not empty:
            starts[n_rows], stops[n_rows], lines[n_rows] = start, end, line
            n_rows += 1
    return n_rows, end

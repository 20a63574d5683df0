"""Parse lines `target [qid:n] index:value ... [# comment]` into the arrays of a CSR matrix."""

import numpy as np

from craftmaps.loops.compiled import compiled

# Kinds of bad lines.
BAD_PAIR, BAD_ORDER = 1, 2

_NEWLINE, _TAB, _RETURN, _SPACE, _HASH, _PLUS, _MINUS, _DOT, _COLON = (
    10,
    9,
    13,
    32,
    35,
    43,
    45,
    46,
    58,
)
_POWERS = 10.0 ** np.arange(23)  # exact in float64
_MAX_DIGITS = 18  # numbers with so many digits fit into int64
_MAX_EXACT = 2.0**53  # integers up to this are exact in float64
_SPLIT = 2.0**27 + 1


@compiled
def parse_lines(text, targets, lines, indptr, indices, data, hard, bad):  # type: ignore[no-untyped-def]
    """Parse whole lines; return the numbers of rows, values, hard numbers and bad lines.

    Parameters
    ----------
    text : uint8
    targets, lines : float64 and int64
        Filled with the target and the line of each row.
    indptr, indices, data
        Filled with the CSR matrix, with indices as in the text.
    hard : int64 of shape (n, 3)
        Filled with the numbers that need a slower parser: their place in `data`, or -1 - place in
        `targets`, and their start and stop in the text.
    bad : int64 of shape (n, 3)
        Filled with bad lines: the line, the kind of error, and the position in the text.
    """
    n_rows = n_values = n_hard = n_bad = line = at = 0
    indptr[0] = 0
    while at < text.shape[0]:
        at = _skip_blanks(text, at)
        if not _at_end_of_row(text, at):
            old_hard = n_hard
            stop = _end_of_token(text, at)
            targets[n_rows], easy = _number(text, at, stop)
            if not easy:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = -1 - n_rows, at, stop
                n_hard += 1
            at, n_values, n_hard, fault = _pairs(text, stop, indices, data, hard, n_values, n_hard)
            if fault:
                bad[n_bad, 0], bad[n_bad, 1], bad[n_bad, 2] = line, fault, at
                n_bad += 1
                n_values, n_hard = indptr[n_rows], old_hard
            else:
                lines[n_rows] = line
                n_rows += 1
                indptr[n_rows] = n_values
        while at < text.shape[0] and text[at] != _NEWLINE:
            at += 1
        at += 1
        line += 1
    return n_rows, n_values, n_hard, n_bad


@compiled
def _pairs(text, at, indices, data, hard, n_values, n_hard):  # type: ignore[no-untyped-def]
    """Parse pairs up to the end of a row, or to the first bad pair."""
    last = -1
    at = _skip_blanks(text, at)
    while not _at_end_of_row(text, at):
        stop = _end_of_token(text, at)
        index, colon = _index(text, at, stop)
        if index >= 0:
            if index <= last:
                return at, n_values, n_hard, BAD_ORDER
            last = index
            indices[n_values] = index
            data[n_values], easy = _number(text, colon + 1, stop)
            if not easy:
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2] = n_values, colon + 1, stop
                n_hard += 1
            n_values += 1
        elif not _is_query(text, at, stop):
            return at, n_values, n_hard, BAD_PAIR
        at = _skip_blanks(text, stop)
    return at, n_values, n_hard, 0


@compiled
def _skip_blanks(text, at):  # type: ignore[no-untyped-def]
    while at < text.shape[0] and (text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN):
        at += 1
    return at


@compiled
def _at_end_of_row(text, at):  # type: ignore[no-untyped-def]
    return at >= text.shape[0] or text[at] == _NEWLINE or text[at] == _HASH


@compiled
def _end_of_token(text, at):  # type: ignore[no-untyped-def]
    while not _at_end_of_row(text, at):
        if text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN:
            break
        at += 1
    return at


@compiled
def _index(text, at, stop):  # type: ignore[no-untyped-def]
    """Return the number before a colon and the position of the colon, or -1 and 0."""
    index, start = 0, at
    while at < stop and at - start < _MAX_DIGITS and 48 <= text[at] <= 57:
        index = 10 * index + (text[at] - 48)
        at += 1
    if at == start or at >= stop or text[at] != _COLON:
        return -1, 0
    return index, at


@compiled
def _is_query(text, at, stop):  # type: ignore[no-untyped-def]
    return stop - at > 4 and text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100


@compiled
def _number(text, at, stop):  # type: ignore[no-untyped-def]
    """Return a correctly rounded decimal number, and whether this parser could read it."""
    sign = 1.0
    if at < stop and (text[at] == _PLUS or text[at] == _MINUS):
        sign = -1.0 if text[at] == _MINUS else 1.0
        at += 1
    digits, count, power, start = 0, 0, 0, at
    fraction = False
    while at < stop:
        if 48 <= text[at] <= 57:
            count += count > 0 or text[at] != 48
            if count > _MAX_DIGITS:
                return 0.0, False
            digits = 10 * digits + (text[at] - 48)
            power -= fraction
        elif text[at] == _DOT and not fraction:
            fraction = True
        else:
            break
        at += 1
    seen_digits = at > start and 48 <= text[at - 1] <= 57
    if at < stop and seen_digits and (text[at] == 101 or text[at] == 69):  # e or E
        shift, at = _exponent(text, at + 1, stop)
        power += shift
    if at < stop or not seen_digits or power < -22 or power > 22:
        return 0.0, False
    value, certain = _scaled(digits, power)
    return sign * value, certain


@compiled
def _exponent(text, at, stop):  # type: ignore[no-untyped-def]
    """Return the exponent after an e and where it ends; out of range if there is no number."""
    sign, shift, start = 1, 0, at
    if at < stop and (text[at] == _PLUS or text[at] == _MINUS):
        sign = -1 if text[at] == _MINUS else 1
        at += 1
        start = at
    while at < stop and at - start < 4 and 48 <= text[at] <= 57:
        shift = 10 * shift + (text[at] - 48)
        at += 1
    return (sign * shift if at > start else 10_000), at


@compiled
def _scaled(digits, power):  # type: ignore[no-untyped-def]
    """Return digits * 10^power, and whether it is certainly rounded correctly."""
    high = float(digits)
    scale = _POWERS[abs(power)]
    if high <= _MAX_EXACT:  # one operation on exact operands rounds once
        return (high / scale if power < 0 else high * scale), True
    low = float(digits - int(high))
    if power < 0:
        near = high / scale
        product, error = _exact_product(near, scale)
        rest = (((high - product) - error) + low) / scale
    else:
        near, error = _exact_product(high, scale)
        rest = error + low * scale
    doubt = near * 2.0**-90  # far above the error of `rest`
    return near + rest, near + (rest + doubt) == near + (rest - doubt)


@compiled
def _exact_product(a, b):  # type: ignore[no-untyped-def]
    """Return the product a b as a sum of two floats (Dekker 1971)."""
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low

"""Pairs and triples of neighboring characters in many strings at once.

The number of a character, counted from 1, takes 21 bits, so up to three characters make one exact
64-bit key. A string begins with the mark START and ends with the mark END, so "ab" at the beginning
is a different triple from "ab" elsewhere. Upper and lower case are the same if each is a single
character.
"""

from functools import cache

import numpy as np
from scipy import sparse

from craftmaps.loops.ngrams import contained

START, END = 0x110001, 0x110002  # beyond the last character of Unicode
_BITS = 21
_HIGHEST = 0x110000


def codes_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the characters of all strings with their marks, and the end of each string."""
    ends = np.cumsum([len(text) + 2 for text in texts], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    codes = np.zeros(ends[-1], np.uint64)
    codes[starts], codes[ends - 1] = START, END
    joined = "".join(texts)
    used = sorted(map(ord, set(joined)))
    small = np.zeros(used[-1] + 1 if used else 1, np.uint64)
    small[used] = [lower(code) + 1 for code in used]
    inside = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    codes[codes == 0] = small[inside]
    return codes, ends


def lower(code: int) -> int:
    """Return a character in lower case, or unchanged if its lower case has several characters."""
    text = chr(code).lower()
    return ord(text) if len(text) == 1 else code


def keys_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of all n-grams of all strings, and for each key the number of its string."""
    codes, _ = codes_of(texts)
    string = np.cumsum(codes == START) - 1
    pair = (codes[:-1] << np.uint64(_BITS)) | codes[1:]
    triple = (pair[:-1] << np.uint64(_BITS)) | codes[2:]
    in_one = codes[:-1] != END
    pairs = in_one & (codes[:-1] != START) & (codes[1:] != END)  # pairs without marks
    triples = in_one[:-1] & (codes[1:-1] != END)
    keys = np.concatenate([pair[pairs], triple[triples]])
    return keys, np.concatenate([string[:-1][pairs], string[:-2][triples]])


def presence(texts: list[str], vocabulary: np.ndarray) -> sparse.csr_matrix:
    """Return 1 for each n-gram of a sorted vocabulary of keys that a string contains, else 0."""
    codes, ends = codes_of(texts)
    room = np.minimum(2 * np.diff(ends, prepend=0), len(vocabulary)).sum()
    indices = np.empty(room, np.int64)
    indptr = contained(codes, ends, vocabulary, _BITS, indices)
    indices = indices[: indptr[-1]]
    shape = (len(texts), len(vocabulary))
    return sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape)


def counted(texts: list[str], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all keys, sorted, and for each the total of `counts` over strings that contain it."""
    keys, strings = keys_of(texts)
    distinct, places = np.unique(keys, return_inverse=True)
    cells = np.unique(strings * len(distinct) + places)
    return distinct, np.bincount(
        cells % len(distinct), counts[cells // len(distinct)], len(distinct)
    )


def characters(key: int) -> list[int]:
    """Return the characters of a key."""
    mask = (1 << _BITS) - 1
    parts = [key >> (2 * _BITS), (key >> _BITS) & mask, key & mask]
    return [part if part in (START, END) else part - 1 for part in parts if part]


def pattern(key: int, cases: dict[int, list[int]]) -> str:
    """Return a regular expression for whole strings that contain the n-gram of a key."""
    codes = characters(key)
    before = "" if codes[0] == START else ".*"
    after = "" if codes[-1] == END else ".*"
    inner = "".join(_one_of(cases.get(c, [c])) for c in codes if c not in (START, END))
    return f"(?s){before}{inner}{after}"


@cache
def cases_of() -> dict[int, list[int]]:
    """Return, for each lower-case character, all characters with this lower case."""
    cases: dict[int, list[int]] = {}
    for code in range(_HIGHEST):
        if lower(code) != code:
            cases.setdefault(lower(code), [lower(code)]).append(code)
    return cases


def _one_of(codes: list[int]) -> str:
    return "[" + "".join(rf"\x{{{code:x}}}" for code in codes) + "]"

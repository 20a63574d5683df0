"""Pairs and triples of neighboring characters in many strings at once.

The number of a character, counted from 1, takes 21 bits, so that up to three of them make one exact
64-bit key. A string begins with START and ends with END, which are no characters: "ab" at the
beginning is another triple than "ab" elsewhere. Upper and lower case are the same, where one
character is the other.
"""

from functools import cache

import numpy as np
from scipy import sparse

from craftmaps.loops.ngrams import contained

START, END = 0x110001, 0x110002  # beyond the last character of Unicode
_BITS = 21
_HIGHEST = 0x110000


def codes_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The characters of all strings one after another with their marks, and where each ends."""
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
    """A character in lower case, or the character itself if that would be several."""
    text = chr(code).lower()
    return ord(text) if len(text) == 1 else code


def keys_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The keys of all n-grams of all strings, and the number of the string of each."""
    codes, _ = codes_of(texts)
    string = np.cumsum(codes == START) - 1
    pair = (codes[:-1] << np.uint64(_BITS)) | codes[1:]
    triple = (pair[:-1] << np.uint64(_BITS)) | codes[2:]
    in_one = codes[:-1] != END
    pairs = in_one & (codes[:-1] != START) & (codes[1:] != END)  # of characters alone
    triples = in_one[:-1] & (codes[1:-1] != END)
    keys = np.concatenate([pair[pairs], triple[triples]])
    return keys, np.concatenate([string[:-1][pairs], string[:-2][triples]])


def presence(texts: list[str], vocabulary: np.ndarray) -> sparse.csr_matrix:
    """Which n-grams of a sorted vocabulary of keys each string contains, as 0 and 1."""
    codes, ends = codes_of(texts)
    room = np.minimum(2 * np.diff(ends, prepend=0), len(vocabulary)).sum()
    indices = np.empty(room, np.int64)
    indptr = contained(codes, ends, vocabulary, _BITS, indices)
    indices = indices[: indptr[-1]]
    shape = (len(texts), len(vocabulary))
    return sparse.csr_matrix((np.ones(len(indices)), indices, indptr), shape=shape)


def counted(texts: list[str], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All keys that occur, sorted, and the total of `counts` over the strings that contain each."""
    keys, strings = keys_of(texts)
    distinct, places = np.unique(keys, return_inverse=True)
    cells = np.unique(strings * len(distinct) + places)
    return distinct, np.bincount(
        cells % len(distinct), counts[cells // len(distinct)], len(distinct)
    )


def characters(key: int) -> list[int]:
    """The characters of a key."""
    mask = (1 << _BITS) - 1
    parts = [key >> (2 * _BITS), (key >> _BITS) & mask, key & mask]
    return [part if part in (START, END) else part - 1 for part in parts if part]


def pattern(key: int, cases: dict[int, list[int]]) -> str:
    """A regular expression that a string matches as a whole if it contains the n-gram of a key."""
    codes = characters(key)
    before = "" if codes[0] == START else ".*"
    after = "" if codes[-1] == END else ".*"
    inner = "".join(_one_of(cases.get(c, [c])) for c in codes if c not in (START, END))
    return f"(?s){before}{inner}{after}"


@cache
def cases_of() -> dict[int, list[int]]:
    """For each lower-case character all characters that become it."""
    cases: dict[int, list[int]] = {}
    for code in range(_HIGHEST):
        if lower(code) != code:
            cases.setdefault(lower(code), [lower(code)]).append(code)
    return cases


def _one_of(codes: list[int]) -> str:
    return "[" + "".join(rf"\x{{{code:x}}}" for code in codes) + "]"

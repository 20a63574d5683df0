"""Which n-grams of a vocabulary each of many strings contains."""

import numpy as np

from craftmaps.loops.compiled import compiled


@compiled
def contained(
    codes: np.ndarray, ends: np.ndarray, vocabulary: np.ndarray, bits: int, indices: np.ndarray
) -> np.ndarray:
    """Places in a sorted vocabulary of the pairs and triples of each string, in rising order.

    String i is codes[ends[i - 1] : ends[i]], with marks for its start and its end. A pair or triple
    of codes is the key that their bits make, one code after another; pairs with a mark are left
    out. The places are written into `indices`, and the return value says how many come before those
    of each string. There must be room for all: the lesser of twice the length of a string and the
    size of the vocabulary, added up over the strings.
    """
    indptr = np.zeros(len(ends) + 1, np.int64)
    last_seen = np.full(len(vocabulary), -1, np.int64)
    shift, start, filled = np.uint64(bits), 0, 0
    for i in range(len(ends)):
        first = filled
        for j in range(start + 2, ends[i]):
            pair = (codes[j - 1] << shift) | codes[j]
            triple = (codes[j - 2] << (shift + shift)) | pair
            for key in (triple, pair):
                if key == pair and j == ends[i] - 1:
                    continue  # the last pair has the mark of the end
                place = np.searchsorted(vocabulary, key)
                if place < len(vocabulary) and vocabulary[place] == key and last_seen[place] != i:
                    last_seen[place] = i
                    indices[filled] = place
                    filled += 1
        indices[first:filled].sort()
        indptr[i + 1] = filled
        start = ends[i]
    return indptr

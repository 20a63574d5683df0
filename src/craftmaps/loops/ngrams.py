"""Find the n-grams of a vocabulary in many strings."""

import numpy as np

from craftmaps.loops.compiled import compiled


@compiled
def contained(
    codes: np.ndarray, ends: np.ndarray, vocabulary: np.ndarray, bits: int, indices: np.ndarray
) -> np.ndarray:
    """Find the pairs and triples of each string in a sorted vocabulary.

    String i is codes[ends[i - 1] : ends[i]], with marks for its start and its end. The key of a
    pair or triple consists of the bits of its codes, one after another. Pairs with a mark are left
    out. The places in the vocabulary are written into `indices`, in increasing order for each
    string, and the return value is the first position in `indices` of each string. For each string,
    `indices` needs room for twice the length of the string, or for the vocabulary if it is smaller.
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

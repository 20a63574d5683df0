"""A column of text with many different values, encoded by the characters of its strings."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.utils.extmath import svd_flip

from craftmaps.storage.expect import expect, expect_array
from craftmaps.storage.packing import storable
from craftmaps.tables import ngrams
from craftmaps.tables.categories import given_texts
from craftmaps.tables.numbers import missing_name
from craftmaps.tables.values import Values

_MOST_NGRAMS = 512
_MOST_COLUMNS = 64
_LEAST_SHARE = 1e-6  # directions with a smaller share of the largest eigenvalue are noise
_STRINGS_AT_A_TIME = 16_384


@storable
@dataclass(frozen=True)
class TextColumn:
    """Principal components of the pairs and triples of characters in a string.

    The vocabulary consists of the n-grams that most rows of `fit` contain. A string becomes a
    vector with the weight log((1 + n) / (1 + n_k)) + 1 for each of its n-grams, where n_k of n rows
    contain the n-gram. The vector is divided by its length. Its 64 leading principal components are
    scaled so that the rows of `fit` have a mean squared distance of 1 from their mean, like a
    standardized number. New strings are close to known strings with the same n-grams, and a missing
    string is at the mean.

    Parameters
    ----------
    name : str
    vocabulary : ndarray of shape (n_ngrams,)
        Keys of n-grams, sorted.
    weights : ndarray of shape (n_ngrams,)
    components : ndarray of shape (n_ngrams, n_columns)
    mean : ndarray of shape (n_columns,)
    indicator : bool
        Whether strings were missing in `fit`.
    """

    name: str
    vocabulary: np.ndarray
    weights: np.ndarray
    components: np.ndarray
    mean: np.ndarray
    indicator: bool
    kind: ClassVar[str] = "text"
    onnx_type: ClassVar[str] = "string"

    @classmethod
    def fit(cls, name: str, values: Values) -> Self:
        strings = [text for text in values.texts().tolist() if text is not None]
        texts, rows = _distinct(strings)
        counts = np.bincount(rows).astype(np.float64)
        vocabulary, weights = _vocabulary(texts, counts)
        vectors = _unit_rows(texts, vocabulary, weights)
        total = counts.sum()
        eigenvalues, directions = eigh((vectors.T @ vectors.multiply(counts[:, None])).toarray())
        largest = np.flatnonzero(eigenvalues > _LEAST_SHARE * eigenvalues[-1])[::-1]
        components, _ = svd_flip(directions[:, largest[:_MOST_COLUMNS]], None)
        encoded = vectors @ components
        mean = counts @ encoded / total
        spread = np.sqrt(counts @ np.square(encoded - mean).sum(axis=1) / total)
        scale = spread if spread > 0 else 1.0
        indicator = len(strings) < len(values)
        return cls(name, vocabulary, weights, components / scale, mean / scale, indicator)

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        components = [f"{self.name} text {j}" for j in range(len(self.mean))]
        return components + ([missing_name(self.name)] if self.indicator else [])

    @property
    def described(self) -> str:
        """Describe the encoding of the column."""
        parts = [f"{len(self.mean)} components of {len(self.vocabulary)} character n-grams"]
        return ", ".join(parts + ["indicator of missing"] * self.indicator)

    def fill(self, values: Values, out: np.ndarray) -> None:
        """Write the encoded columns of some rows."""
        if values.kind == "nothing":
            out[:], out[:, len(self.mean) :] = 0, 1
            return
        texts, rows = _distinct(values.texts().tolist())
        encoded = np.empty((len(texts), out.shape[1]), out.dtype)
        for start in range(0, len(texts), _STRINGS_AT_A_TIME):
            some = texts[start : start + _STRINGS_AT_A_TIME]
            self._fill_strings(some, encoded[start : start + len(some)])
        out[:] = encoded[rows]

    def _fill_strings(self, texts: list[str | None], out: np.ndarray) -> None:
        missing = np.array([text is None for text in texts], bool)
        vectors = _unit_rows([text or "" for text in texts], self.vocabulary, self.weights)
        encoded = vectors @ self.components - self.mean
        out[:, : len(self.mean)] = np.where(missing[:, None], 0.0, encoded)
        if self.indicator:
            out[:, -1] = missing

    def given(self, values: Values) -> np.ndarray:
        """Return the input of an ONNX model: strings that are empty if text is missing."""
        return given_texts(values)

    def onnx(self, g: Any, x: str) -> list[str]:
        """Add the encoded columns to an ONNX graph."""
        cases = ngrams.cases_of()
        contained = [
            g.add("RegexFullMatch", x, pattern=ngrams.pattern(int(key), cases))
            for key in self.vocabulary
        ]
        vectors = g.add("Mul", g.double(g.concat(contained, axis=1)), self.weights)
        square = g.add("ReduceSum", g.add("Mul", vectors, vectors), [1], keepdims=1)
        length = g.add("Sqrt", g.add("Max", square, np.float64(1e-300)))
        product = g.add("MatMul", g.add("Div", vectors, length), self.components)
        encoded = g.add("Sub", product, self.mean)
        missing = g.add("Equal", x, np.array([[""]], dtype=object))
        known = g.add("Sub", np.float64(1), g.double(missing))
        columns = [g.single(g.add("Mul", encoded, known))]
        return [*columns, g.single(missing)] if self.indicator else columns

    def _check_stored(self) -> None:
        n, width = len(self.vocabulary), len(self.mean)
        expect(0 < n <= _MOST_NGRAMS and 0 < width <= _MOST_COLUMNS, "some n-grams")
        expect_array("vocabulary", self.vocabulary, "iu", (n,))
        expect(self.vocabulary.dtype == np.uint64, "keys of 64 bits")
        expect(bool((self.vocabulary[1:] > self.vocabulary[:-1]).all()), "keys that rise")
        expect_array("weights", self.weights, "f", (n,))
        expect_array("components", self.components, "f", (n, width))
        expect_array("mean", self.mean, "f", (width,))


def _distinct(texts: list[Any]) -> tuple[list[Any], np.ndarray]:
    """Return the distinct strings in the order of their first rows, and the place of each row."""
    places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return list(places), np.array([places[text] for text in texts], np.int64)


def _vocabulary(texts: list[str], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the n-grams that most rows contain, and their weights."""
    keys, rows = ngrams.counted(texts, counts)
    frequent = np.sort(np.argsort(-rows, kind="stable")[:_MOST_NGRAMS])
    keys, rows = keys[frequent], rows[frequent]
    return keys, np.log((1 + counts.sum()) / (1 + rows)) + 1


def _unit_rows(texts: list[str], vocabulary: np.ndarray, weights: np.ndarray) -> Any:
    """Return the weighted n-grams of each string as rows of length 1.

    Rows are sparse, because products of sparse rows are computed row by row. So the encoding of a
    row does not depend on other rows, to the last bit.
    """
    present = ngrams.presence(texts, vocabulary)
    lengths = np.sqrt(present @ np.square(weights))
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    present.data = weights[present.indices] * np.repeat(inverse, np.diff(present.indptr))
    return present

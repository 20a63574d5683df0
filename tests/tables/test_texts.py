"""Text with many different values: its n-grams, what new text is close to, and its size."""

import numpy as np
import pytest

from craftmaps import TableEncoder
from craftmaps.tables import ngrams


def slow_ngrams(text):
    """Pairs of characters, and triples with marks for the start and the end."""
    marked = [ngrams.START, *(ngrams.lower(ord(c)) for c in text), ngrams.END]
    pairs = {tuple(marked[i : i + 2]) for i in range(1, len(marked) - 2)}
    return pairs | {tuple(marked[i : i + 3]) for i in range(len(marked) - 2)}


TEXTS = [
    "",
    "a",
    "ab",
    "Abba",
    "ABBA",
    "naïve",
    "東京都",
    "a\x00b",
    "😀😀😀",
    "İi",
    "\ud800x",
    "aaaa",
]


def test_ngrams_are_those_of_a_slow_count():
    every = {gram for text in TEXTS for gram in slow_ngrams(text)}
    keys, counts = ngrams.counted(TEXTS, np.ones(len(TEXTS)))
    grams = [tuple(ngrams.characters(int(key))) for key in keys]
    assert set(grams) == every
    assert counts.tolist() == [sum(gram in slow_ngrams(text) for text in TEXTS) for gram in grams]


def test_presence_is_that_of_a_slow_count():
    keys, _ = ngrams.counted(TEXTS, np.ones(len(TEXTS)))
    some = keys[::2]
    grams = [tuple(ngrams.characters(int(key))) for key in some]
    expected = [[gram in slow_ngrams(text) for gram in grams] for text in TEXTS]
    np.testing.assert_array_equal(ngrams.presence(TEXTS, some).toarray(), expected)


def names(n, seed=0):
    rng = np.random.default_rng(seed)
    ranks, trades = ["senior", "junior", "chief"], ["nurse", "miner", "pilot", "baker"]
    return [f"{rng.choice(ranks)} {rng.choice(trades)} {rng.integers(1000)}" for _ in range(n)]


def distance(encoder, one, other):
    Z = encoder.transform({"title": [one, other]}).astype(float)
    return np.linalg.norm(Z[0] - Z[1])


def test_new_text_is_close_to_similar_text():
    encoder = TableEncoder().fit({"title": names(500)})
    assert encoder.columns_[0].kind == "text"
    near = distance(encoder, "senior nurse 555", "Senior  Nurses 556")
    far = distance(encoder, "senior nurse 555", "chief pilot 111")
    assert near < 0.6 * far
    Z = encoder.transform({"title": names(500, seed=1)})
    spread = np.square(Z - Z.mean(axis=0)).sum(axis=1).mean()
    assert 0.7 < spread < 1.3  # of rows like those of fit, 1


def test_a_row_is_encoded_to_the_same_bits_whatever_rows_are_beside_it():
    texts = names(300)
    encoder = TableEncoder().fit({"title": texts})
    whole = encoder.transform({"title": texts})
    for rows in (slice(0, 1), slice(7, 200), slice(None, None, -1)):
        np.testing.assert_array_equal(encoder.transform({"title": texts[rows]}), whole[rows])


def test_missing_text_is_at_the_mean():
    texts = [*names(200), None]
    encoder = TableEncoder().fit({"title": texts})
    Z = encoder.transform({"title": [None, ""]})
    np.testing.assert_array_equal(Z[:, :-1], 0)
    np.testing.assert_array_equal(Z[:, -1], 1)
    assert encoder.get_feature_names_out()[-1] == "title is missing"
    silent = TableEncoder().fit({"title": names(200)})
    np.testing.assert_array_equal(silent.transform({"title": [None]}), np.zeros((1, 64)))


def test_text_with_nothing_known_in_it_is_finite():
    encoder = TableEncoder().fit({"title": names(200)})
    assert np.isfinite(encoder.transform({"title": ["東京", "🜁", "-"]})).all()


@pytest.mark.slow
def test_a_hundred_thousand_levels():
    levels = [f"street {i} in town {i % 317}" for i in range(100_000)]
    encoder = TableEncoder().fit({"street": levels})
    assert encoder.transform({"street": levels}).shape == (100_000, 64)
    forced = TableEncoder({"street": "category"}).fit({"street": levels})
    assert forced.transform({"street": levels}).shape == (100_000, 256)

"""A small table of made-up apartments, with text, dates and missing values."""

from typing import Any

import numpy as np

_DISTRICTS = {"Harbor": 4.0, "Old town": 6.0, "Hill": 3.0, "Station": 0.0, "Meadows": -2.0}
_FLOORS = ("ground floor", "first floor", "second floor", "roof")
_MOODS = ("sunny", "quiet", "bright", "cozy")
_EXTRAS = (("balcony", 1.5), ("garden", 2.5), ("garage", 1.0), ("elevator", 0.5), ("no pets", -1.0))


def flats(n_rows: int, seed: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Return the columns of a table, and the monthly rent of each apartment in tens.

    Rents depend on all columns but the page number, and are not linear in size and age.
    """
    rng = np.random.default_rng(seed)
    size = rng.gamma(6.0, 12.0, n_rows) + 15
    district = rng.choice(list(_DISTRICTS), n_rows).astype(object)
    floor = rng.choice(_FLOORS, n_rows)
    built = rng.integers(1880, 2021, n_rows)
    listed = np.datetime64("2023-01-01") + rng.integers(0, 730, n_rows)
    extras = rng.random((n_rows, len(_EXTRAS))) < 0.4
    moods = rng.choice(_MOODS, n_rows)
    texts = [
        " ".join([mood, *(name for (name, _), has in zip(_EXTRAS, row, strict=True) if has)])
        for mood, row in zip(moods, extras, strict=True)
    ]
    season = np.sin(2 * np.pi * (listed - listed.min()).astype(float) / 365.25)
    rent = 12 * np.sqrt(size) + np.array([_DISTRICTS[name] for name in district]) * size / 20
    rent += 8 * ((built - 1950) / 70) ** 2 + 3 * season + 4 * (floor == "roof")
    rent += 3 * extras @ [value for _, value in _EXTRAS] + 3 * rng.standard_normal(n_rows)
    unknown, nowhere = rng.random((2, n_rows)) < 0.1
    district[nowhere] = None
    return {
        "size": size.round(1),
        "built": np.where(unknown, np.nan, built),
        "district": district,
        "floor": floor,
        "listed": listed,
        "words": np.array(texts),
        "page": rng.integers(1, 40, n_rows),
    }, rent

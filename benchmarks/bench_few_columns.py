"""Maps of few columns: rows one by one and side by side."""

import numpy as np

from benchmarks.harness import alternating, table
from craftmaps import CraftMap, Polynomial, RandomMaclaurin
from craftmaps.maps.parts.hadamard_products import HadamardProducts
from craftmaps.threads import at_most_threads

ROWS = 4000
MAPS = {
    "RandomMaclaurin(degree 10), H0/1": lambda size, d: RandomMaclaurin(
        Polynomial(10), size + d + 1, h01="append", allocation="proportional", random_state=0
    ),
    "CraftMap(degree 10)": lambda size, d: CraftMap(Polynomial(10), size, random_state=0),
}
SHAPES = [(d, size) for d in (2, 4, 8, 16, 32) for size in (64, 256, 512, 1024)]


def report() -> str:
    lines = [line(name, d, size) for name in MAPS for d, size in SHAPES]
    header = ["map", "columns", "features", "us, one by one", "us, side by side", "ratio", "chosen"]
    return (
        "## Few columns\n\n"
        "Time of a float32 row on one thread, with vectors of one row's entries and with vectors "
        "of an entry of several rows (`loops/hadamard.py`), and which of the two the map takes.\n\n"
        + table(header, lines)
    )


def line(name: str, d: int, size: int) -> list[str]:
    X = np.abs(np.random.default_rng(0).normal(size=(ROWS, d))).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fitted = MAPS[name](size, d).fit(X)
    choose = HadamardProducts._in_tiles
    chosen = choose(fitted._products, np.empty((1, fitted._n_features_out), np.float32))

    def work(in_tiles: bool) -> None:
        HadamardProducts._in_tiles = lambda self, out: in_tiles
        fitted.transform(X)

    try:
        with at_most_threads(1):
            times = alternating({"rows": lambda: work(False), "tiles": lambda: work(True)})
    finally:
        HadamardProducts._in_tiles = choose
    rows, tiles = (1e6 * times[way] / ROWS for way in ("rows", "tiles"))
    shown = "side by side" if chosen else "one by one"
    print(name, d, size, rows, tiles, flush=True)
    return [name, str(d), str(size), f"{rows:.2f}", f"{tiles:.2f}", f"{rows / tiles:.1f}", shown]

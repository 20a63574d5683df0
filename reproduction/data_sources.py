"""Where the named data sets are found, and the checksums of their files."""

from typing import NamedTuple

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI = "https://archive.ics.uci.edu"


class Source(NamedTuple):
    """Where a data set is found.

    `openml` is its number there, and `n_train` how many of its rows there, the first ones, are
    training rows, of `n_rows` in all. `sha256` None takes every file.
    """

    file: str
    home: str
    sha256: str | None = None
    openml: int | None = None
    n_train: int | None = None
    n_rows: int | None = None


SOURCES = {
    "mnist": Source(
        "mnist.npz",
        "https://yann.lecun.com/exdb/mnist",
        "58c05ffd9880e3b6ddfe8c74b89ccc40c0da6f6152f4c5203a7c6a12919c2344",
        *(554, 60_000, 70_000),
    ),
    "usps": Source(
        "usps.npz",
        "https://hastie.su.domains/ElemStatLearn/data.html",
        "261d22ee2eb05fc1d9f2d48d475ec4803ad9658a8d4c5abdf31fbd3732c73800",
        *(41082, 7_291, 9_298),
    ),
    "pendigits": Source(
        "pendigits.npz",
        _UCI,
        "8d82b1be944fc7c20572db62c56e26a5778dc77fa9ffe673767501ca49ab3876",
        *(32, 7_494, 10_992),
    ),
    "letter": Source(
        "letter.npz",
        _LIBSVM,
        "d40d59370128a0eea8a2adb0d73ed5abd3e06e0b8fbfc1c6f52902902689a274",
        6,
    ),
    "coil100": Source(
        "coil100_gray32.npz",
        "https://www.cs.columbia.edu/CAVE/software/softlib/coil-100.php",
        "5bfd98de2bebc20eae8abc7140b667a3105facbfd907a299cc54a9e41e6a6698",
    ),
    "a9a": Source(
        "a9a.npz",
        _LIBSVM,
        "1dda86a965005de6f5cdf56a50351505710ebdaa8b41db19caff1131e753e6a9",
        *(1430, 32_561, 48_842),
    ),
    "spambase": Source(
        "spambase.npz",
        _UCI,
        "84aee261a313ea2a776390c0bd86a41dfa5f5d304d6f3c081ac14d8e2c252095",
        44,
    ),
    "nursery": Source(
        "nursery.npz",
        _UCI,
        "4986856dc8a19d00f054598e9afd486022fbc3a318c9ad36207f3df532442e6e",
        26,
    ),
    "cod-rna": Source(
        "cod-rna.npz",
        _LIBSVM,
        "5a421a068ee193bc1eff3298f5bf73fc11797773db90a65cac8e00836ff6c2c6",
    ),
    "ijcnn1": Source(
        "ijcnn1.npz",
        _LIBSVM,
        "7d761a512ada02e3998444a8ed332f1c0d0b377e9941c41ed0b84a71b1d68900",
    ),
    "covertype": Source(
        "covertype.npz",
        _UCI,
        "4bc6ab9d005b454f15c9d671e45869425d88d0d2cdb660be721166bfa4eedb4f",
        1596,
    ),
    "california_housing": Source(
        "california_housing_raw.npz",
        "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html",
        "293e303b4539449d049fb83d38724733001c1b5582a3bf2f79908bfd78534548",
    ),
    "kin8nm": Source(
        "uci_kin8nm.npz",
        "https://www.openml.org",
        "1854befb59e13e2e1d6b70b3e4ceff7208cc4f70f38016bfefa210e527586a20",
        189,
    ),
    "protein": Source(
        "uci_protein.npz",
        _UCI,
        "9d43ad2061673dc67727eac391cc2081724b583c15f6134238e0fe9eb818046c",
    ),
    "gisette": Source("gisette.npz", _LIBSVM),
    "timit": Source("timit.npz", "https://catalog.ldc.upenn.edu/LDC93S1"),
    "flow-cytometry": Source("flow-cytometry.npz", "https://flowrepository.org"),
    "mnist8m": Source("mnist8m.npz", _LIBSVM),
}

"""The named data sets: where their rows come from, and what their archives hold.

Put an archive named `file` into a folder and let the environment variable CRAFTMAPS_DATA name the
folder. An archive is made by `numpy.savez_compressed` with the arrays X_train, y_train, X_test and
y_test, or with X and y where no test set is customary. For the data of LIBSVM's collection, which
are text files in svmlight format, that takes three lines::

    from sklearn.datasets import load_svmlight_files
    X, y, X_test, y_test = load_svmlight_files(["ijcnn1", "ijcnn1.t"], n_features=22)
    np.savez_compressed("ijcnn1.npz", X_train=X.toarray(), y_train=y,
                        X_test=X_test.toarray(), y_test=y_test)

For other sources read the rows with `numpy.loadtxt` or `pandas.read_csv`, in the order of the
files. `contents` says what the arrays must be. Types and compression do not matter: `sha256` is a
checksum of the rows as float32 and of the labels as float64 (`reproduction.datasets.checksum`), so
it tells whether an archive holds the same numbers in the same order as the one that the published
results of this repository were made with.

The checksums were computed from the archives that those results used. The results themselves carry
the SHA-256 of the archive files, which depends on their compression. The sources are where the rows
of these archives came from; whether the servers still deliver the same was not checked again.
"""

from typing import NamedTuple

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI = "https://archive.ics.uci.edu"


class Source(NamedTuple):
    """Where a data set comes from.

    Attributes
    ----------
    file : str
        Name of the archive.
    home : str
        Where the rows come from.
    contents : str
        The arrays of the archive.
    sha256 : str or None
        Checksum of rows and labels; None accepts every archive.
    openml : int or None
        Number of the data set at OpenML.
    n_train : int or None
        Number of training rows at OpenML, which stand before the test rows; None if all are.
    n_rows : int or None
        Number of all rows at OpenML; None if it is not checked.
    """

    file: str
    home: str
    contents: str = "X_train, y_train, X_test and y_test, or X and y"
    sha256: str | None = None
    openml: int | None = None
    n_train: int | None = None
    n_rows: int | None = None


SOURCES = {
    "mnist": Source(
        "mnist.npz",
        "https://yann.lecun.com/exdb/mnist",
        "60,000 training and 10,000 test rows of 784 pixels from 0 to 255, labels 0 to 9",
        "95a7aadbc1be618658d9bfcb3d5e17f50c59b638193f3e31a637faadb47c6477",
        *(554, 60_000, 70_000),
    ),
    "usps": Source(
        "usps.npz",
        "https://hastie.su.domains/ElemStatLearn/data.html",
        "7,291 training and 2,007 test rows of 256 pixels from -1 to 1, labels 0 to 9",
        "5f0d7ea20b23a83297fa21b3e62819c046eba768842794824c3409a8047b331b",
        *(41082, 7_291, 9_298),
    ),
    "pendigits": Source(
        "pendigits.npz",
        _UCI,
        "7,494 training and 3,498 test rows of 16 integers from 0 to 100, labels 0 to 9",
        "c33553aeec569ef23ed29bcedf0b5c1187f4b62d53ce4f1583593138d1917479",
        *(32, 7_494, 10_992),
    ),
    "letter": Source(
        "letter.npz",
        _LIBSVM,
        "15,000 training and 5,000 test rows of 16 integers from 0 to 15 as UCI has them, in "
        "LIBSVM's split and order, labels 1 to 26",
        "a5b38277dd84014d9b658612ec3f9f7d92945ee52de32f6fed9e9e125daddbe4",
        6,
    ),
    "coil100": Source(
        "coil100_gray32.npz",
        "https://www.cs.columbia.edu/CAVE/software/softlib/coil-100.php",
        "X, 7,200 gray images of 32 x 32 pixels from 0 to 255, and y, objects 1 to 100",
        "44f37ff247aac3e2340abc506cab5fc70db727979cf27d57fb586986b4ad0d6f",
    ),
    "a9a": Source(
        "a9a.npz",
        _LIBSVM,
        "32,561 training and 16,281 test rows of 123 columns of 0 and 1, labels -1 and 1",
        "61f3444a60ac716db2334d8661017935ea525b9b2550b0c481f543d82f950726",
        *(1430, 32_561, 48_842),
    ),
    "spambase": Source(
        "spambase.npz",
        _UCI,
        "X, 4,601 rows of 57 columns, and y, labels 0 and 1",
        "78de8784ad0d022fcef4d961fef0587c795f3a908c7d412b9d57eb313123976e",
        44,
    ),
    "nursery": Source(
        "nursery.npz",
        _UCI,
        "X, 12,960 rows of 27 indicators of the values of 8 columns, and y, labels 0 to 4",
        "7deb0456e44847ae9d65eea013103cad1bc4e64737a72e3b2255857218223941",
        26,
    ),
    "cod-rna": Source(
        "cod-rna.npz",
        _LIBSVM,
        "59,535 training and 271,617 test rows of 8 columns, labels -1 and 1",
        "fd8a82f82d3623b2fe0c689ecfd1b352f09c615e7ed339a1afb876814a075784",
    ),
    "ijcnn1": Source(
        "ijcnn1.npz",
        _LIBSVM,
        "49,990 training and 91,701 test rows of 22 columns, labels -1 and 1",
        "36dcec51da9c8fbd023f23f83650f58c5d14b8fd418ddf7dfe16a70c9c708bb7",
    ),
    "covertype": Source(
        "covertype.npz",
        _UCI,
        "X, 581,012 rows of 54 integers, and y, labels 1 to 7",
        "4fad5e3638fe5a9f57196dcb08a5f16cf87a4a197b74ac14028c2819e1cf045e",
        1596,
    ),
    "california_housing": Source(
        "california_housing_raw.npz",
        "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.html",
        "X, 20,640 rows of 8 columns as the file has them, and y, house values in dollars",
        "0541e988e9e21a0d4809017887b60c58de61882b011bf0ddb74ce1163cd573b5",
    ),
    "kin8nm": Source(
        "uci_kin8nm.npz",
        "https://www.openml.org",
        "X, 8,192 rows of 8 columns, and y",
        "588de271c34e801d778ed92445c9205089e606c938fa72d0a3cc3cb7a5943fa8",
        189,
    ),
    "protein": Source(
        "uci_protein.npz",
        _UCI,
        "X, 45,730 rows of 9 columns, and y",
        "4f309ba75486e58cd2692f4e8ca528039073803a0cbbd377e0bd99487f7485a7",
    ),
    "gisette": Source("gisette.npz", _LIBSVM),
    "timit": Source("timit.npz", "https://catalog.ldc.upenn.edu/LDC93S1"),
    "flow-cytometry": Source("flow-cytometry.npz", "https://flowrepository.org"),
    "mnist8m": Source("mnist8m.npz", _LIBSVM),
}

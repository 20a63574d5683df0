"""Spectra of a kernel and of its approximations (the log-scree plot of CRAFT Figure 2a)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from sklearn.utils import check_array

from craftmaps.diagnose.errors import dense, exact_gram, fitted_maps, sample_rows
from craftmaps.plots import finish, new_figure

_ROUNDING_FLOOR = 1e-12  # relative to the largest eigenvalue; smaller ones are rounding errors


@dataclass(frozen=True)
class Scree:
    """Eigenvalues of Gram matrices in descending order, for the kernel and for each map.

    Attributes
    ----------
    exact : ndarray of shape (n_rows,)
        Eigenvalues of the exact Gram matrix.
    approximate : dict of str to ndarray
        Eigenvalues of the approximation by each map.
    """

    exact: np.ndarray
    approximate: dict[str, np.ndarray]

    def effective_ranks(self) -> dict[str, float]:
        """Return the effective rank of the kernel ("exact") and of each map."""
        return {
            name: effective_rank(values)
            for name, values in ({"exact": self.exact} | self.approximate).items()
        }

    def __str__(self) -> str:
        ranks = (f"{name} {rank:.1f}" for name, rank in self.effective_ranks().items())
        return "effective rank: " + ", ".join(ranks)

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the eigenvalues on a logarithmic scale; returns the figure."""
        figure, axes = new_figure()
        floor = _ROUNDING_FLOOR * self.exact[0]
        ranks = self.effective_ranks()
        for name, values in ({"exact": self.exact} | self.approximate).items():
            seen = np.where(values > floor, values, np.nan)
            style = {"color": "black", "linewidth": 2} if name == "exact" else {}
            label = f"{name} (effective rank {ranks[name]:.1f})"
            axes.plot(np.arange(1, len(values) + 1), seen, label=label, **style)
        axes.set_yscale("log")
        axes.set_xlabel("number of the eigenvalue")
        axes.set_ylabel("eigenvalue of the Gram matrix")
        axes.legend(frameon=False)
        return finish(figure, path)


def scree(
    maps: Any, X: Any, *, kernel: Any = None, n_rows: int = 1000, random_state: Any = 0
) -> Scree:
    """Compute the eigenvalues of an exact Gram matrix and of its approximations by maps.

    Parameters
    ----------
    maps : map or dict of str to map
        Unfitted maps. Clones are fitted on X, and all of them are compared with the same kernel.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to draw the sample from.
    kernel : kernel, default=None
        The exact kernel. None uses the kernel of the first map.
    n_rows : int, default=1000
        Size of the sample.
    random_state : int, RandomState instance, Generator or None, default=0
        Seed for drawing the sample, and for maps whose own random_state is None.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import CraftMap, Polynomial
    >>> from craftmaps.diagnose import scree
    >>> X = np.random.default_rng(0).random((200, 5))
    >>> spectra = scree(CraftMap(Polynomial(3), 100, random_state=0), X)
    >>> spectra.exact.shape, list(spectra.approximate)
    ((200,), ['CraftMap'])
    """
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    rows = sample_rows(X, n_rows, random_state)
    named = maps if isinstance(maps, dict) else {type(maps).__name__: maps}
    exact, approximate = None, {}
    for name, feature_map in named.items():
        own = getattr(feature_map, "random_state", None)
        (fitted,) = fitted_maps(feature_map, X, [random_state if own is None else own])
        if exact is None:
            exact = spectrum(exact_gram(fitted, rows, kernel))
        Z = dense(fitted.transform(rows))
        values = np.zeros(len(exact))
        nonzero = spectrum(Z.T @ Z if Z.shape[1] < len(Z) else Z @ Z.T)
        values[: len(nonzero)] = nonzero
        approximate[name] = values
    if exact is None:
        raise ValueError("maps is empty: give a map, or a dict of maps by name.")
    return Scree(exact, approximate)


def spectrum(gram: np.ndarray) -> np.ndarray:
    """Compute the eigenvalues of a positive semi-definite matrix, clipped at 0, largest first."""
    values: np.ndarray = eigvalsh((gram + gram.T) / 2)
    return np.asarray(np.maximum(values[::-1], 0.0))


def effective_rank(values: Any) -> float:
    """Compute the effective rank, the exponential of the entropy of the eigenvalues' shares.

    If n eigenvalues are equal and the others are 0, the effective rank is n (Roy and Vetterli, "The
    Effective Rank", 2007).

    Examples
    --------
    >>> from craftmaps.diagnose import effective_rank
    >>> round(effective_rank([1.0, 1.0, 1.0, 0.0]), 6)
    3.0
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or (values < 0).any() or not values.any():
        raise ValueError(
            "effective_rank needs eigenvalues: a list of numbers, none negative, not all 0."
        )
    shares = values[values > 0] / values.sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))

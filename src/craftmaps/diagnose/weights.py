"""Which features a model uses: histograms of its weights (CRAFT Figure 2b and c)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from craftmaps.plots import finish, new_figure

_IDLE_BELOW = 0.1  # relative to the root mean square weight


@dataclass(frozen=True)
class WeightHistogram:
    """Histograms of learned weights, in units of their root mean square, one for each model.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
    shares : dict of ndarrays of shape (n_bins,), by the name of the model
        Share of the weights in each bin.
    idle : dict of floats
        Share of the weights that are smaller than a tenth of the root mean square. If it is large,
        the model does not use many of the features.
    """

    edges: np.ndarray
    shares: dict[str, np.ndarray]
    idle: dict[str, float]

    def __str__(self) -> str:
        return "\n".join(
            f"{name}: {share:.0%} of weights idle" for name, share in self.idle.items()
        )

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot all histograms in one figure; returns the figure."""
        figure, axes = new_figure()
        for name, shares in self.shares.items():
            axes.stairs(shares, self.edges, label=f"{name} ({self.idle[name]:.0%} idle)", alpha=0.9)
        axes.set_xlabel("weight, in units of the root mean square of all")
        axes.set_ylabel("share of weights")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
        return finish(figure, path)


def weight_histogram(models: Any, *, n_bins: int = 101, reach: float = 4.0) -> WeightHistogram:
    """Compute histograms of the weights of fitted linear models on features.

    Parameters
    ----------
    models : a fitted model with `coef_`, a pipeline that ends in one, or a dict of these by name
    n_bins : int, default=101
    reach : float, default=4.0
        Bins cover [-reach, reach] root mean squares; larger weights count in the outer bins.

    Examples
    --------
    >>> import numpy as np
    >>> from craftmaps import OnePassRegressor, Polynomial, RandomMaclaurin
    >>> from craftmaps.diagnose import weight_histogram
    >>> X = np.random.default_rng(0).random((200, 5))
    >>> feature_map = RandomMaclaurin(Polynomial(3), 64, random_state=0)
    >>> histogram = weight_histogram(OnePassRegressor(feature_map).fit(X, X[:, 0]))
    >>> histogram.shares["RandomMaclaurin"].shape
    (101,)
    """
    named = models if isinstance(models, dict) else {_name(models): models}
    edges = np.linspace(-reach, reach, n_bins + 1)
    shares, idle = {}, {}
    for name, model in named.items():
        weights = np.ravel(_last_step(model).coef_)
        weights = weights / (np.sqrt(np.mean(weights**2)) or 1.0)
        counts, _ = np.histogram(np.clip(weights, -reach, reach), edges)
        shares[name] = counts / len(weights)
        idle[name] = float(np.mean(np.abs(weights) < _IDLE_BELOW))
    return WeightHistogram(edges, shares, idle)


def _last_step(model: Any) -> Any:
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if not hasattr(last, "coef_"):
        raise ValueError(
            f"{type(last).__name__} has no coef_: give a fitted linear model on features, such as "
            f"OnePassClassifier(feature_map).fit(X, y)."
        )
    return last


def _name(model: Any) -> str:
    feature_map = getattr(_last_step(model), "feature_map", None)
    return type(model if feature_map is None else feature_map).__name__

"""The methods of the papers by the names that the tables use, and ours beside them."""

from collections.abc import Callable
from typing import Any

from craftmaps.kernels import Gaussian, Kernel, Polynomial
from craftmaps.maps import (
    CraftMap,
    FourierFeatures,
    ImageMap,
    MetricMap,
    Nystroem,
    RandomMaclaurin,
    TensorSketch,
)
from reproduction.pooled_products import PooledMaclaurin

LOG_LOSS = ", log-loss"  # behind the name of a map: learned by KernelClassifier
GAUSSIAN = ("FastFood", "RKS", "RFF", "QRFF", "NystroR", "NystroKmeans")  # not of the polynomial
CRAFT_DISCRIMINANT = "CRAFT discriminant"  # CRAFT v2, with another decoding in the learner
# as we would do it; they learn one-vs-rest
OURS = (
    "CRAFT v2",
    CRAFT_DISCRIMINANT,
    "CRAFT auto",
    "CRAFT principal",
    "CRAFT metric",
    "CRAFT images",
    "Nystroem k-means",
    "Nystroem metric",
)


def feature_map(
    method: str, kernel: Any, size: int, *, n_columns: int, seed: int, n_up: int | None = None
) -> Any:
    """The map of that name with `size` components.

    Parameters
    ----------
    method : str
        A name of the papers or of `OURS`; ", D = 2^k" behind it sets `n_up`. `LOG_LOSS` behind it
        speaks of the learner, not of the map.
    kernel : Kernel
        Gaussian for the methods of `GAUSSIAN`, a dot-product kernel for the others.
    size : int
        E.
    n_columns : int
        Of the rows: H0/1 needs more components than that.
    seed : int
    n_up : int or None, default=None
        D of the two CM maps; None is 8 E.
    """
    method, _, power = method.removesuffix(LOG_LOSS).partition(", D = 2^")
    n_up = 2 ** int(power) if power else n_up or 8 * size
    same: dict[str, Any] = {"n_components": size, "random_state": seed}
    if method in ("RFM", "CM RFM"):
        # Kar and Karnick's Algorithm 1 with p = 2; H0/1 where it fits (CRAFT s.5)
        printed: dict[str, Any] = {"allocation": "geometric", "p": 2.0}
        if method == "RFM":
            h01 = "append" if size > n_columns + 1 else "none"
            return RandomMaclaurin(kernel, projection="rademacher", h01=h01, **printed, **same)
        up = PooledMaclaurin(kernel, h01="append" if n_up > n_columns + 1 else "none", **printed)
        return CraftMap(kernel, n_up=n_up, up=up, down="srht", **same)
    if method == "CM TS":
        return CraftMap(kernel, n_up=n_up, up="tensor-sketch", down="srht", **same)
    if method == "RMFM":
        return RandomMaclaurin(kernel, projection="rademacher", allocation="geometric", **same)
    if method == "CRFM":
        up = RandomMaclaurin(kernel, projection="rademacher", allocation="geometric")
        return CraftMap(kernel, n_up=n_up, up=up, down="gaussian", **same)

    def kmeans() -> Nystroem:
        return Nystroem(kernel, landmarks="kmeans", unit_norm=True, **same)

    maps: dict[str, Callable[[], Any]] = {
        "FastFood": lambda: FourierFeatures(kernel, sampling="fastfood", **same),
        "RKS": lambda: FourierFeatures(kernel, sampling="iid", **same),
        "RFF": lambda: FourierFeatures(kernel, sampling="iid", **same),
        "QRFF": lambda: FourierFeatures(kernel, sampling="qmc", **same),
        "TS": lambda: TensorSketch(kernel, **same),
        "Exact": lambda: Nystroem(kernel, landmarks="uniform", **same),
        "NystroR": lambda: Nystroem(kernel, landmarks="uniform", **same),
        "NystroKmeans": lambda: Nystroem(kernel, landmarks="kmeans", **same),
        "CRAFT v2": lambda: CraftMap(kernel, **same),
        CRAFT_DISCRIMINANT: lambda: CraftMap(kernel, **same),
        "CRAFT auto": lambda: CraftMap("auto", **same),
        "CRAFT principal": lambda: CraftMap(kernel, down="principal", **same),
        "CRAFT metric": lambda: MetricMap(CraftMap(kernel, down="auto", **same)),
        "CRAFT images": lambda: ImageMap(CraftMap(kernel, down="auto", **same)),
        "Nystroem k-means": kmeans,
        "Nystroem metric": lambda: MetricMap(kmeans()),
    }
    return maps[method]()


def kernel_of(run: dict[str, Any]) -> Kernel:
    """The kernel that a run names: (1 + t)^degree, t^degree, or a Gaussian."""
    if run.get("kernel") == "gaussian":
        return Gaussian(run["gamma"])
    return Polynomial(run["degree"], coef0=0.0 if run.get("kernel") == "homogeneous" else 1.0)

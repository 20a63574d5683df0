"""Where `feature_map` takes a series and where it takes Fourier features, as a picture.

Run `python -m benchmarks.map_regions docs/maps/regions.png`. Nothing is measured: the picture shows
the variance formulas and the model of time by which `craftmaps.feature_map` chooses.
"""

import sys

import matplotlib as mpl
import numpy as np

from craftmaps import CraftMap, FourierFeatures, Gaussian
from craftmaps.maps.choose import best_sampling, gaussian_candidates

mpl.use("Agg")
import matplotlib.pyplot as plt

COLUMNS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
WIDTHS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # of the median distance
SIZES = (64, 256, 1024, 4096)


def compared(n_columns: int, width: float, size: int) -> tuple[float, bool]:
    """Error of Fourier features over the error of a series, and whether the series is chosen."""
    X = np.random.default_rng(0).normal(size=(1000, n_columns))
    median = Gaussian("median").resolved(X).gamma
    kernel = Gaussian(median / width**2)
    craft = CraftMap(kernel, size)
    fourier = FourierFeatures(kernel, size, sampling=best_sampling(kernel, n_columns))
    one, other = gaussian_candidates(kernel, X, craft, fourier)
    return other.error / max(one.error, 1e-9), one.cost() < other.cost()


def main(path: str) -> None:
    figure, axes = plt.subplots(1, len(SIZES), figsize=(13, 3.7), sharey=True, layout="constrained")
    for axis, size in zip(axes, SIZES, strict=True):
        cells = [[compared(d, width, size) for d in COLUMNS] for width in WIDTHS]
        ratio = np.array([[cell[0] for cell in row] for row in cells])
        series = np.array([[cell[1] for cell in row] for row in cells])
        image = axis.imshow(
            np.log10(np.clip(ratio, 0.1, 100)),
            origin="lower",
            aspect="auto",
            cmap="RdBu",
            vmin=-2,
            vmax=2,
        )
        for i, j in np.argwhere(~series):
            axis.text(j, i, "F", ha="center", va="center", fontsize=8)
        axis.set_xticks(range(len(COLUMNS)), COLUMNS, fontsize=8)
        axis.set_yticks(range(len(WIDTHS)), WIDTHS, fontsize=8)
        axis.set_title(f"{size:,} components", fontsize=10)
        axis.set_xlabel("columns")
    axes[0].set_ylabel("width of the kernel / median")
    bar = figure.colorbar(image, ax=axes, ticks=[-1, 0, 1, 2])
    bar.ax.set_yticklabels(["1/10", "1", "10", "100"])
    bar.set_label("error of Fourier features / error of CraftMap", fontsize=9)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])

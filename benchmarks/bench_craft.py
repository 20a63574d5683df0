"""CraftMap: speed against peers and against the machine, growth, memory, accuracy."""

import time
from pathlib import Path

import numpy as np
from numba.core import config
from scipy.linalg.blas import ssyrk
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.preprocessing import normalize

from benchmarks.bench_maps import PEAK
from benchmarks.harness import DATA, alternating, peak_bytes, seconds, table
from craftmaps import CraftMap, Polynomial, RandomMaclaurin, TensorSketch
from craftmaps.loops.hadamard import SIDE, Blocks, hadamard_rows, product_rows
from craftmaps.maps.parts.rotations import moves_of
from craftmaps.threads import at_most_threads

KERNEL = Polynomial(7)
E = 4096
PAGE = 4096  # bytes of memory that the system gives at a time


def report() -> str:
    text = "## CraftMap: speed and memory\n\nfloat32, 784 columns, (1 + t)^7, E = 4,096.\n\n"
    text += against_peer() + "\nCPU time of one thread.\n\n"
    with at_most_threads(1):
        lines = list(speed())
    text += table(["work", "measured", "bar", "aim"], lines)
    text += "\n" + parts()
    text += "\n" + growth()
    if DATA:
        text += "\n### Accuracy on 1,000 unit-norm MNIST rows, (1 + t)^7\n\n" + accuracy()
    return text


def against_peer() -> str:
    """Time of `transform` as a user waits for it, and CPU time, in turns with the peer.

    The peer works on one thread. Its time depends on the bandwidth of memory, which other processes
    use too.
    """
    X = normalize(np.random.default_rng(0).random((2048, 784), dtype=np.float32))
    ours = CraftMap(KERNEL, E, n_up=8 * E, random_state=0).fit(X)
    theirs = PolynomialCountSketch(degree=7, coef0=1, n_components=E, random_state=0).fit(X)

    def alone():
        with at_most_threads(1):
            ours.transform(X)

    works = {
        "PolynomialCountSketch": lambda: theirs.transform(X),
        "CraftMap, D = 8E, one thread": alone,
        f"CraftMap, D = 8E, all threads ({config.NUMBA_NUM_THREADS})": lambda: ours.transform(X),
    }
    waited = alternating(works, repeats=7)
    used = alternating(works, repeats=7, clock=time.process_time)
    peer = waited["PolynomialCountSketch"]
    lines = [
        [
            name,
            f"{1e6 * waited[name] / len(X):.1f} us",
            f"{1e6 * used[name] / len(X):.1f} us",
            f"{peer / waited[name]:.0f} x",
        ]
        for name in works
    ]
    lines[-1][-1] += " (bar 100 x, aim 250 x)"
    return table(["`transform` of 2,048 rows", "time", "CPU time", "rows per second"], lines)


def speed():
    X = normalize(np.random.default_rng(0).random((1024, 784), dtype=np.float32))
    out = np.empty((len(X), E), dtype=np.float32)
    hessian = np.zeros((E, E), dtype=np.float32, order="F")
    small = CraftMap(KERNEL, E, n_up=8 * E, random_state=0).fit(X)
    double = CraftMap(KERNEL, E, n_up=16 * E, random_state=0).fit(X)
    large = CraftMap(KERNEL, E, n_up=32 * E, random_state=0).fit(X)
    times = alternating(
        {
            "craft": lambda: small.transform_into(X, out),
            "craft16": lambda: double.transform_into(X, out),
            "craft32": lambda: large.transform_into(X, out),
            "syrk": lambda: ssyrk(1.0, out.T, beta=1.0, c=hessian, overwrite_c=1, lower=1),
        },
        repeats=9,
        clock=time.process_time,
    )
    us = {name: 1e6 * value / len(X) for name, value in times.items()}
    yield [
        f"D = 8E ({us['craft']:.1f} us/row) against the rank-k update of its output "
        f"({us['syrk']:.0f} us/row)",
        f"{100 * times['craft'] / times['syrk']:.1f} %",
        "8 %",
        "4 %",
    ]
    yield ["D = 16E against D = 8E", f"{times['craft16'] / times['craft']:.2f} x", "", ""]
    yield ["D = 32E against D = 8E", f"{times['craft32'] / times['craft']:.2f} x", "3.5 x", "2.5 x"]
    yield [
        "Hadamard transform, 16384 rows of 2^10 points",
        f"{copies(16384, 2**10):.2f} copies",
        "5 copies",
        "2 copies",
    ]
    yield [
        "Hadamard transform, 512 rows of 2^15 points",
        f"{copies(512, 2**15):.2f} copies",
        "8 copies",
        "3 copies",
    ]
    code = f"CraftMap(Polynomial(7), {E}, n_up={8 * E})"
    extra = peak_bytes(PEAK.format(map=code, rows=20000, columns=784)) / 2**20
    yield ["peak memory of `transform` beyond its output", f"{extra:.1f} MB", "16 MB", ""]


def parts() -> str:
    """Where the CPU time of a row goes on one thread, by leaving parts of the loop out."""
    X = normalize(np.random.default_rng(0).random((512, 784), dtype=np.float32))
    out = np.empty((len(X), E), dtype=np.float32)
    drawn = CraftMap(KERNEL, E, n_up=8 * E, random_state=0).fit(X)._products
    scale, signs = drawn.scale.astype(np.float32), drawn.signs.astype(np.float32)
    moves = moves_of(drawn.gather, 784)
    padded = np.zeros((16, 1024), dtype=np.float32)  # few rows, as the rotations of one row

    def run(rotations=drawn.rotations, blocks=drawn.blocks, n_squares=drawn.n_squares):
        head = (drawn.gather, rotations, blocks, drawn.degree, drawn.length, drawn.column)
        product_rows(X, Blocks(*head, scale, drawn.offset, 256, n_squares), *moves, signs, out)

    none = 0 * drawn.blocks
    in_squares = np.minimum(drawn.blocks, drawn.n_squares * SIDE**2)
    works = {
        "all": run,
        "zeroed": lambda: run(0 * drawn.rotations, none, 0),
        "rotated": lambda: run(blocks=none, n_squares=0),
        "squares": lambda: run(blocks=in_squares),
        "transformed": lambda: [hadamard_rows(padded) for _ in range(7 * len(X) // 16)],
        "new memory": lambda: np.empty(4 * out.size, np.float32)[:: PAGE // 4].fill(0),
    }
    times = {name: [] for name in works}
    for _ in range(16):
        for name, work in works.items():
            start = time.process_time()
            work()
            times[name].append(time.process_time() - start)
    us = {name: 1e6 * min(values[1:]) / len(X) for name, values in times.items()}
    rotated = us["rotated"] - us["zeroed"]
    share = drawn.length[: in_squares[-1]].sum() / drawn.length.sum()
    rows = {
        "arrangement of the row, cleared output": us["zeroed"],
        "permutations of the seven rotations": rotated - us["transformed"],
        "Hadamard transforms of the seven rotations": us["transformed"],
        f"{share:.0%} of the features, in squares": us["squares"] - us["rotated"],
        "other features": us["all"] - us["squares"],
        "all": us["all"],
    }
    lines = [[name, f"{value:.2f} us", f"{value / us['all']:.0%}"] for name, value in rows.items()]
    text = "Where the CPU time of a row goes, D = 8E, one thread. Arithmetic takes most of it: the "
    text += (
        "rotated rows\nfit into the first-level cache. On 2,048 rows, `transform` also takes new "
    )
    text += f"memory, which the system\nclears: {us['new memory'] / 4:.2f} us.\n\n"
    return text + table(["part", "time", "share"], lines)


def copies(n_rows: int, n_points: int) -> float:
    """CPU time of the transform of all rows in units of np.copyto of the same array."""
    source = np.random.default_rng(0).standard_normal((n_rows, n_points), dtype=np.float32)
    target = source.copy()
    works = {
        "copy": lambda: np.copyto(target, source),
        "transform": lambda: hadamard_rows(target),
    }
    times = alternating(works, repeats=9, clock=time.process_time)
    return times["transform"] / times["copy"]


def growth() -> str:
    """Times that should grow linearly in rows, in D, and in d log d, with a plot."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rng = np.random.default_rng(0)
    sweeps = {
        "rows": [(n, 784, 8 * E) for n in (512, 1024, 2048, 4096, 8192)],
        "D": [(2048, 784, ratio * E) for ratio in (4, 8, 16, 32, 64)],
        "d": [(2048, d, 2 * E) for d in (1024, 2048, 4096, 8192, 16384)],
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    lines = []
    for axis, (name, cases) in zip(axes, sweeps.items(), strict=True):
        sizes, times = [], []
        for n_rows, d, n_up in cases:
            X = normalize(rng.random((n_rows, d), dtype=np.float32))
            out = np.empty((n_rows, E), dtype=np.float32)
            feature_map = CraftMap(KERNEL, E, n_up=n_up, random_state=0, h01="none").fit(X)
            times.append(seconds(lambda m=feature_map, X=X, out=out: m.transform_into(X, out)))
            sizes.append({"rows": n_rows, "D": n_up, "d": d * np.log2(d)}[name])
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        label = "d log d" if name == "d" else name
        lines.append([label, f"{slope:.2f}"])
        axis.loglog(sizes, times, marker="o")
        axis.loglog(sizes, times[0] * np.array(sizes) / sizes[0], "--", color="0.6", label="linear")
        axis.set_xticks(sizes[::2], [f"{size:,.0f}" for size in sizes[::2]])
        axis.minorticks_off()
        axis.set_xlabel(label)
        axis.set_ylabel("seconds")
        axis.legend(frameon=False)
    figure.savefig(Path(__file__).parent / "growth.png", dpi=120)
    plt.close(figure)
    text = "Growth: slope of log time against log size (1 is linear).\n\n"
    return text + table(["in", "slope"], lines) + "\n![growth](growth.png)\n"


def accuracy() -> str:
    with np.load(Path(DATA) / "mnist.npz") as data:
        X = data["X_train"].reshape(60000, -1)
    chosen = np.random.default_rng(0).choice(60000, 1000, replace=False)
    X = normalize(X[chosen].astype(np.float32))
    K = KERNEL(X.astype(np.float64))

    def errors(make, seeds=5):
        frobenius, nrmse = [], []
        for seed in range(seeds):
            Z = make(seed).fit_transform(X)
            difference = Z @ Z.T - K
            frobenius.append(np.linalg.norm(difference) / np.linalg.norm(K))
            nrmse.append(np.sqrt(np.mean(difference**2)) / K.mean())
        return np.mean(frobenius), np.mean(nrmse)

    rows = []
    for size, bar in ((2**10, 0.29), (2**12, 0.15), (2**14, 0.075)):
        maps = {
            "RandomMaclaurin": lambda s, n=size: RandomMaclaurin(KERNEL, n, random_state=s),
            "TensorSketch": lambda s, n=size: TensorSketch(KERNEL, n, random_state=s),
            "CraftMap 8E": lambda s, n=size: CraftMap(KERNEL, n, n_up=8 * n, random_state=s),
            "CraftMap auto": lambda s, n=size: CraftMap(KERNEL, n, random_state=s),
        }
        rows.append([size, *(f"{errors(make)[0]:.3f}" for make in maps.values()), bar])
    text = "Relative Frobenius error, mean of 5 seeds.\n\n"
    text += table(["E", *maps, "bar for 8E"], rows)
    text += (
        "\nRMSE / mean of K (the NRMSE of CRAFT Figure 5), mean of 3 seeds; the paper's value in "
    )
    text += "brackets.\n\n"
    sizes = [2**10, 2**11, 2**12, 2**13, 2**14]
    lines = []
    for n_up, printed in FIGURE_5.items():
        line = [f"D = 2^{n_up.bit_length() - 1}"]
        for size, value in zip(sizes, printed, strict=True):
            ours = errors(lambda s, n=size, D=n_up: CraftMap(KERNEL, n, n_up=D, random_state=s), 3)[
                1
            ]
            line.append(f"{ours:.3f} ({value:.3f})")
        lines.append(line)
    return text + table(["", *(f"E = 2^{size.bit_length() - 1}" for size in sizes)], lines)


FIGURE_5 = {  # Hamid et al. 2014, rows D = 2^15 .. 2^17, columns E = 2^10 .. 2^14
    2**15: (0.485, 0.356, 0.256, 0.206, 0.186),
    2**16: (0.429, 0.343, 0.236, 0.182, 0.154),
    2**17: (0.416, 0.332, 0.218, 0.158, 0.123),
}

"""What a fit costs, as formulas in the sizes of the work and a few measured rates.

n rows of d columns in float32, E features, k targets, P partitions, W tasks at a time.
"""

import math
from dataclasses import dataclass

SAMPLE = 1024  # rows that a classifier keeps for probabilities
FAN_IN = 4


@dataclass(frozen=True)
class Work:
    """The sizes of a fit."""

    n: float
    d: int
    E: int
    k: int
    P: int
    W: int

    def flops(self) -> dict[str, float]:
        """Of the three parts that grow with E, in units of one addition or multiplication."""
        return {
            "sums": self.n * self.E * (self.E + 2 * self.k),
            "solve, alpha searched": 4 / 3 * self.E**3,
            "solve, alpha given": self.E**3 / 3,
        }

    def bytes_read(self) -> float:
        return self.n * (4 * self.d + 8)

    def sum_bytes(self) -> float:
        """What travels for each partition: a triangle, a gradient, and the sample of rows."""
        return 4 * self.E**2 + 8 * self.E * self.k + 4 * min(self.n / self.P, SAMPLE) * self.E

    def levels(self) -> int:
        return math.ceil(round(math.log(max(self.P, 1), FAN_IN), 9))

    def bytes_moved(self) -> float:
        """At most: every sum of every level goes to another worker, the last one here."""
        parts, moved = self.P, 1
        while parts > 1:
            moved += parts
            parts = -(-parts // FAN_IN)
        return moved * self.sum_bytes()

    def task_bytes(self, block_rows: int = 4096) -> float:
        """The peak of a task that makes sums: H, work matrix, packed, pickled; features; sample."""
        return 20 * self.E**2 + 4 * block_rows * self.E + 4 * SAMPLE * self.E

    def merge_bytes(self) -> float:
        """The peak of a task that merges: its inputs, a total, one unpacked, and its result."""
        return FAN_IN * self.sum_bytes() + 20 * self.E**2 + 4 * self.E**2


@dataclass(frozen=True)
class Rates:
    """Seconds and rates of one task, measured while W of them run."""

    flops: float  # per second, of the rank-k update
    map_row: float  # seconds to make the features of a row
    pack: float  # seconds to pack and pickle sums, per byte
    merge: float  # seconds to merge one sum into another, per byte
    network: float  # bytes per second between two workers
    solve: float  # flops per second of the solve


def seconds(work: Work, rates: Rates, solve: str = "solve, alpha searched") -> dict[str, float]:
    """Where the time of a fit goes, if tasks are shared evenly among W."""
    flops = work.flops()
    sums = work.P - 1  # merges of one sum into another, whatever the tree
    return {
        "rank-k updates": flops["sums"] / rates.flops / work.W,
        "features": work.n * rates.map_row / work.W,
        "packing": work.P * work.sum_bytes() * rates.pack / work.W,
        "merging": sums * work.sum_bytes() * rates.merge / min(work.W, max(sums, 1)),
        "moving": work.bytes_moved() / rates.network / work.W,
        "solve": flops[solve] / rates.solve,
    }

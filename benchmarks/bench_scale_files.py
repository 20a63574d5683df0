"""Fits from files against the same rows in memory; memory of a large set; the price of checkpoints."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import alternating, peak_bytes, table
from craftmaps import CraftMap, OnePassClassifier, Polynomial
from craftmaps.scale import blocks

SIZE, DEGREE, COLUMNS, BLOCK = 2048, 4, 256, 4096
ROWS = 200_000
LARGE_ROWS = 4_000_000  # of 4 GB in float32
LONG_ROWS = 1_500_000  # whose fit lasts for several checkpoints
EVERY = 10.0

LARGE = """
import resource
from benchmarks.bench_scale_files import learner
from craftmaps.scale import blocks

rows = blocks.read({path!r}, target={target!r})
learner().fit_blocks(rows, classes=[0, 1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""

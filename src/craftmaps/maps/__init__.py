"""Rows in, features out: one algorithm per file."""

from craftmaps.maps.craft import CraftMap
from craftmaps.maps.maclaurin import RandomMaclaurin
from craftmaps.maps.tensor_sketch import TensorSketch

__all__ = ["CraftMap", "RandomMaclaurin", "TensorSketch"]

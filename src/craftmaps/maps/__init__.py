"""Feature maps, which turn rows into features; each algorithm has its own file."""

from craftmaps.maps.base import FeatureMap
from craftmaps.maps.choose import feature_map
from craftmaps.maps.compositional import CompositionalMap
from craftmaps.maps.craft import CraftMap
from craftmaps.maps.fourier import FourierFeatures
from craftmaps.maps.image import ImageMap
from craftmaps.maps.levels import LevelsMap
from craftmaps.maps.maclaurin import RandomMaclaurin
from craftmaps.maps.metric import MetricMap
from craftmaps.maps.nystroem import Nystroem
from craftmaps.maps.scaled import ScaledMap
from craftmaps.maps.tensor_sketch import TensorSketch

__all__ = [
    "CompositionalMap",
    "CraftMap",
    "FeatureMap",
    "FourierFeatures",
    "ImageMap",
    "LevelsMap",
    "MetricMap",
    "Nystroem",
    "RandomMaclaurin",
    "ScaledMap",
    "TensorSketch",
    "feature_map",
]

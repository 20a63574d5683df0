"""The search for a preparation, a kernel and a map, behind feature_map="auto"."""

from craftmaps.search.auto_map import AutoMap
from craftmaps.search.report import Report as Report

__all__ = ["AutoMap"]

"""Model files: what may be stored, and how it is written and read."""

from craftmaps.storage.fields import storable

__all__ = ["storable"]

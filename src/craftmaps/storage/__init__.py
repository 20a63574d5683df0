"""Values of the library as files: what may be stored, and how."""

from craftmaps.storage.fields import storable

__all__ = ["storable"]

"""Columns of any type in, numbers out: one kind of column per file."""

from craftmaps.tables.encoder import TableEncoder

__all__ = ["TableEncoder"]

"""Encoding of tables as numbers, with one file for each kind of column."""

from craftmaps.tables.encoder import TableEncoder

__all__ = ["TableEncoder"]

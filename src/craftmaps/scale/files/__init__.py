"""Blocks of rows from files, one format per file."""

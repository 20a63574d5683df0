"""Readers of rows from files, with one module for each format."""

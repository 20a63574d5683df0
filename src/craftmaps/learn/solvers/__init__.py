"""Solvers for the coefficients, one per file."""

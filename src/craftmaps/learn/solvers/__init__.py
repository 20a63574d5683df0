"""Ways to solve for coefficients, one per file."""

"""Measurements against peers and against the limit of the machine; `make benchmarks` runs them."""

"""Who gets how many features: moments of the data, allocation, plans."""

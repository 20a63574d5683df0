"""Which preparation, kernel and map suit these rows: the search behind feature_map="auto"."""

"""The search behind `craftmaps.diagnose.recommend`."""

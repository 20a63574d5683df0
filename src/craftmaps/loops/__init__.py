"""All compiled loops."""

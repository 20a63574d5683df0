"""What every cluster engine shares."""

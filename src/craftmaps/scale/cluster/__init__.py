"""Code that all cluster engines share."""

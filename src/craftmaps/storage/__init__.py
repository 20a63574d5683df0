"""Values of the library as files: what may be stored, and how."""

"""The same learner on more data than memory: rows from files, block by block."""

"""The same learner on more data than memory, and on more than one machine."""

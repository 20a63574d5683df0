"""Planning of maps: moments of the data, features per degree, expected errors."""

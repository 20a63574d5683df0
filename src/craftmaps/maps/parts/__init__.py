"""What a map draws: values that fill features."""

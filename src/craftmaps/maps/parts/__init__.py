"""The drawn parts of maps, which compute their features."""

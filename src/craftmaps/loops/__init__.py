"""Every compiled loop, and how rows are handed to them."""

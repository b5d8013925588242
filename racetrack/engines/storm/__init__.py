"""Apache Storm."""

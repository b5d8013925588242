"""Its services as plain processes."""

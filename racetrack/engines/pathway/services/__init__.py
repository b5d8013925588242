"""Service of Pathway as a native process."""

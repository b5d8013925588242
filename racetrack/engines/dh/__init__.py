"""Deephaven, one of the two published engines."""

"""Materialize, one of the two published engines."""

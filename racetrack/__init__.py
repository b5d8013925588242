"""Racetrack: puts streaming engines on the same track and says which keep up, at what cost."""

__version__ = "0.1.0"

"""Racetrack: a benchmark of streaming engines that measures which keep up, and at what cost."""

__version__ = "0.1.0"

"""Fixtures for tests of verification, from a synthetic shop."""

from racetrack.workloads.shop.tests.conftest import db

__all__ = ["db"]

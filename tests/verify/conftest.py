"""Verification is tested on the sources of a synthetic shop."""

from racetrack.workloads.shop.tests.conftest import db

__all__ = ["db"]

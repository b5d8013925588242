"""The harness is tested on the sources of a shop that was made up."""

from racetrack.workloads.shop.tests.conftest import db

__all__ = ["db"]

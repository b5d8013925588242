"""The harness is tested on the sources of a shop that was made up."""

from workloads.shop.tests.conftest import db

__all__ = ["db"]

"""Tests of workloads run as all others do."""

from tests.conftest import pytest_configure

__all__ = ["pytest_configure"]

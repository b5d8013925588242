"""Tests of Deephaven in the README's experiment, in particular of its server's log."""

import pytest

from tests.e2e.shared import Door, run_folder

pytestmark = pytest.mark.e2e


def test_the_server_logs_its_cycles(experiment: Door) -> None:
    log = (run_folder(experiment.output) / "stack" / "deephaven.log").read_text()
    assert "cycleTime=" in log

"""Tests that a stack left running reports its own engine and workload, whatever the settings."""

import os
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from racetrack.config import Settings, load
from racetrack.stack import processes, runtime
from racetrack.stack.native.stack import NativeStack


@pytest.fixture
def settings() -> Iterator[Settings]:
    """Return the settings of a stack with a unique name."""
    settings = load({"STACK_NAME": f"test-{uuid.uuid4().hex[:8]}", "WORKLOAD": "ads"})
    yield settings
    processes.clear(settings.stack_name, 0.1)


def test_it_keeps_the_workload_that_it_was_put_up_with(settings: Settings) -> None:
    assert runtime.running_stack(settings) is None
    processes.work_root(settings.stack_name).mkdir(parents=True)
    environment = {**os.environ, **processes.mark(settings.stack_name, "mysql")}
    with subprocess.Popen(["sleep", "60"], env=environment) as service:
        NativeStack(settings).leave_running("fake")
        found = runtime.running_stack(settings.model_copy(update={"workload": "shop"}))
        service.kill()
    assert found
    stack, standing = found
    assert (standing.runtime, standing.engine, standing.workload) == ("native", "fake", "ads")
    assert standing.services == {"mysql": [service.pid]}
    assert stack.settings.workload == "ads"
    assert runtime.running_stack(settings) is None  # none of its processes lives


def test_nothing_is_looked_for_in_docker_where_no_stack_stands(settings: Settings) -> None:
    changed = settings.model_copy(update={"runtime": "compose"})
    assert runtime.running_stack(changed) is None

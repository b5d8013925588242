"""Tests that processes outside containers that a killed run leaves are ended, and no others."""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping

import pytest

from racetrack.stack import processes
from racetrack.stack.compose import orphans

Start = Callable[[Mapping[str, str]], "subprocess.Popen[bytes]"]


@pytest.fixture
def stack_name() -> str:
    return f"test-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts processes with environment variables that identify them."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(mark: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen(["sleep", "600"], env={**os.environ, **mark}))
        return started[-1]

    yield begin
    for each in started:
        each.kill()
        each.wait()


def test_every_command_of_the_harness_is_ended_and_no_native_service(
    stack_name: str, start: Start, program: Callable[[str], None]
) -> None:
    program("#!/bin/sh\n")  # a fake Docker: there, nothing is left
    commands = [
        start(processes.mark_command(stack_name, "top")),
        start(processes.mark_command(stack_name, "psql")),
        start(orphans.mark(stack_name)),
    ]
    service = start(processes.mark(stack_name, "broker"))
    others = start(processes.mark_command(f"{stack_name}-b", "top"))
    assert orphans.clear_at_once(stack_name) == "`docker compose`, `psql`, `top`"
    assert [each.wait(30) for each in commands] == [-9, -9, -9]
    assert service.poll() is None
    assert others.poll() is None
    assert orphans.clear_at_once(stack_name) is None

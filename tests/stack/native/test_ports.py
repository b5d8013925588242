"""Tests of a port in use: the process that holds it, and the setting that changes it."""

import os
import socket

import pytest

from racetrack.errors import BusyError
from racetrack.stack import resources
from tests.ports import free_ports


def test_the_holder_and_the_setting_are_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BusyError, match=rf"{port} .*pid {os.getpid()} .*set KAFKA_PORT"):
            resources.require_free_ports("127.0.0.1", [{"KAFKA_PORT": port}])


def test_a_port_that_was_just_given_up_is_free() -> None:
    (port,) = free_ports(1)
    with (
        socket.create_server(("127.0.0.1", port)) as server,
        socket.create_connection(("127.0.0.1", port)),
    ):
        server.accept()[0].close()  # leaves a connection in TIME_WAIT
    resources.require_free_ports("127.0.0.1", [{"KAFKA_PORT": port}])


@pytest.mark.parametrize(
    ("address", "ports", "says"),
    [
        (
            "127.0.0.1",
            [{"KAFKA_PORT": 19098}, {"MYSQL_PORT": 19098}],
            "MYSQL_PORT and KAFKA_PORT are both 19098",
        ),
        ("192.0.2.1", [{"KAFKA_PORT": 19099}], "BIND_ADDRESS"),  # no address of this machine
    ],
)
def test_settings_that_can_not_be_used_are_named(
    address: str, ports: list[dict[str, int]], says: str
) -> None:
    with pytest.raises(BusyError, match=says):
        resources.require_free_ports(address, ports)

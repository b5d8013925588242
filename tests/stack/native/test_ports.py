"""A taken port: which process holds it, and which setting moves it."""

import os
import socket

import pytest

from racetrack.errors import BusyError
from racetrack.stack import resources


def test_the_holder_and_the_setting_are_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BusyError, match=rf"{port} .*pid {os.getpid()} .*set KAFKA_PORT"):
            resources.require_free_ports("127.0.0.1", [{"KAFKA_PORT": port}])


def test_a_port_that_was_just_given_up_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            server.accept()[0].close()  # leaves a connection in TIME_WAIT
    resources.require_free_ports("127.0.0.1", [{"KAFKA_PORT": port}])


def test_two_settings_with_one_port() -> None:
    with pytest.raises(BusyError, match="MYSQL_PORT and KAFKA_PORT are both 9"):
        resources.require_free_ports("127.0.0.1", [{"KAFKA_PORT": 9}, {"MYSQL_PORT": 9}])


def test_an_address_that_is_not_ours() -> None:
    with pytest.raises(BusyError, match="BIND_ADDRESS"):
        resources.require_free_ports("192.0.2.1", [{"KAFKA_PORT": 19099}])

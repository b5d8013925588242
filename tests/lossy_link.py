"""A link that delays and loses packets, in its own network namespace, which ends with the link.

The namespace has a loopback interface only. Connections to a port on it go through a relay, which
adds the delay, and then through a Unix socket to a port outside.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from racetrack.config import REPO
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.contract import ServiceClock
from racetrack.stack.own_kafka_check import check
from tests.relay import Relay

NAMESPACE = ("unshare", "--net", "--map-root-user")
WITHIN_S = 30.0


def clock_over_lossy_link(
    folder: Path, port: int, target: int, prefix: str, delay_s: float, loss: float
) -> ServiceClock:
    """Check the Kafka at `target`, which advertises `port`, over a link that delays by `delay_s`
    each way and loses a share of the packets; return the clock of the broker. Skip the test if the
    kernel or its tools can't do this."""
    _require("ip link set lo up && iptables " + " ".join(_rule(port, loss)))
    socket = folder / "link"
    arguments = (str(port), prefix, str(delay_s), str(loss))
    with Relay(socket, target).running():
        done = subprocess.run(
            [*NAMESPACE, sys.executable, "-m", __name__, socket, *arguments],
            cwd=REPO,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return ServiceClock(**json.loads(done.stdout))


def _rule(port: int, loss: float) -> list[str]:
    at_random = f"-m statistic --mode random --probability {loss}".split()
    return [*f"-A INPUT -i lo -p tcp --dport {port}".split(), *at_random, "-j", "DROP"]


def _require(commands: str) -> None:
    """Skip the test, with the reason, unless these commands work in a namespace."""
    if missing := [name for name in ("unshare", "ip", "iptables") if not shutil.which(name)]:
        pytest.skip(f"{missing[0]} is missing")
    tried = subprocess.run(
        [*NAMESPACE, "sh", "-c", commands], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"no packets can be dropped here: {tried.stderr.strip()}")


def main(socket: str, port: str, prefix: str, delay_s: str, loss: str) -> None:
    """Check the Kafka from inside the namespace, and print the broker's clock."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    rule = _rule(int(port), float(loss))
    back = ["--sport" if word == "--dport" else word for word in rule]
    for each in (rule, back):
        subprocess.run(["iptables", *each], check=True)
    with Relay(int(port), Path(socket), float(delay_s)).running():
        clock = check(KafkaEndpoint(f"localhost:{port}", prefix)).clock
    assert clock
    print(json.dumps(asdict(clock)), flush=True)
    os._exit(0)  # without waiting for connections over the link


if __name__ == "__main__":
    main(*sys.argv[1:])

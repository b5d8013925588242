"""What docker-compose.yml asks of the published images is what they have."""

import shutil
import subprocess
from typing import Any

import pytest

from tests.stack.compose.conftest import Describe

# Of Kafka's own start script (bin/kafka-run-class.sh), unless KAFKA_JVM_PERFORMANCE_OPTS is set.
KAFKA_JVM_DEFAULTS = "-server -XX:+UseG1GC -XX:MaxGCPauseMillis=20"


@pytest.fixture(scope="module")
def services(described: Describe) -> dict[str, Any]:
    found: dict[str, Any] = described("docker-compose.yml")["services"]
    return found


def java_starts_with(flags: str) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no `java` on PATH")
    done = subprocess.run(
        [java, *flags.split(), "-version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_kafka_connect_s_jvm_starts_with_our_flags(services: dict[str, Any]) -> None:
    told = services["debezium"]["environment"]
    tuned = told.get("KAFKA_JVM_PERFORMANCE_OPTS", KAFKA_JVM_DEFAULTS)
    java_starts_with(f"{told['HEAP_OPTS']} {tuned} {told.get('KAFKA_OPTS', '')}")


def test_deephaven_s_health_is_asked_by_what_its_image_has(services: dict[str, Any]) -> None:
    (_, program, *_) = services["deephaven"]["healthcheck"]["test"]
    assert program == "/opt/grpc_health_probe/grpc_health_probe"

"""What is looked at before a stack is started for an engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from engines import find_engine
from racetrack.errors import UsageError
from racetrack.run.session import make_ready
from racetrack.settings import Settings, load
from racetrack.stack import heeded
from racetrack.stack.contract import Say, Stack

MakeReady = Callable[..., bool]


@dataclass
class Installed:
    """A stack that is asked whether all is installed, and nothing else."""

    settings: Settings
    runtime: str
    prepared: list[str] = field(default_factory=list)

    def prepare(self, services: Sequence[str], say: Say) -> None:
        self.prepared += services


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> MakeReady:
    """Whether a stack is prepared for an engine, with these variables in the environment."""
    for name in heeded.CHANGES_RESULTS_OF:
        monkeypatch.delenv(name, raising=False)

    def make(engine: str, runtime: str, **variables: str) -> bool:
        with monkeypatch.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            stack = Installed(load(), runtime)
            make_ready(find_engine(engine), cast(Stack, stack), print)
        return bool(stack.prepared)

    return make


@pytest.mark.parametrize(
    ("engine", "runtime", "variables"),
    [
        ("dh", "native", {"REDPANDA_SMP": "2", "REDPANDA_MEMORY": "2G"}),
        ("dh", "native", {"mysql_tmpfs": "2g"}),
        ("cal", "native", {"REDPANDA_TMPFS": "1g"}),
        ("pg", "native", {"POSTGRES_TMPFS": "1g"}),
        ("mz", "native", {"MATERIALIZE_WORKERS": "7", "MZ_URL": "postgres://a@b:1/c"}),
        ("dh", "compose", {"KAFKA_HEAP": "7g"}),
        ("dh", "compose", {"SCHEMA_REGISTRY_HEAP": "7g"}),
        ("dh", "compose", {"REDPANDA_MEMORY": "7G", "AIRGAP": "true"}),
    ],
)
def test_a_setting_of_this_run_that_does_nothing_is_refused(
    engine: str, runtime: str, variables: dict[str, str], ready: MakeReady
) -> None:
    setting = next(iter(variables)).upper()
    where = "natively" if runtime == "native" else "in containers"
    with pytest.raises(
        UsageError, match=rf"^{setting} does nothing .* runs {where}: .+\. Unset it .*\(RUNTIME"
    ) as refusal:
        ready(engine, runtime, **variables)
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize(
    ("engine", "runtime", "variables"),
    [
        ("dh", "native", {"REDPANDA_SMP": "1"}),  # as it stands in .env
        ("dh", "native", {"KAFKA_HEAP": "7g", "DEEPHAVEN_HEAP": "7g"}),
        ("dh", "native", {"FLINK_HEAP": "7g", "POSTGRES_TMPFS": "7g", "MATERIALIZE_WORKERS": "7"}),
        ("dh", "native", {"MATERIALIZE_PORT": "1", "REDPANDA_VERSION": "9", "STACK_NAME": "other"}),
        ("dh", "compose", {"CAL_DELAY_MS": "7", "KAFKA_CONTROLLER_PORT": "1"}),
        ("dh", "compose", {"KAFKA_VERSION": "9", "REDPANDA_MEMORY": "7G"}),
        ("cal", "native", {"SCHEMA_REGISTRY_HEAP": "7g", "CAL_DELAY_MS": "7"}),
        ("dh", "compose", {"AIRGAP": "true", "KAFKA_HEAP": "7g", "MYSQL_TMPFS": "7g"}),
    ],
)
def test_one_that_does_something_or_is_for_others_is_not(
    engine: str, runtime: str, variables: dict[str, str], ready: MakeReady
) -> None:
    assert ready(engine, runtime, **variables)

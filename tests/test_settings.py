"""Settings: `.env` gives the defaults, the environment wins, a bad value is named."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from racetrack import settings
from racetrack.errors import UsageError


def test_the_env_file_in_the_repo_is_complete() -> None:
    assert settings.load().bind_address == "127.0.0.1"


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PORT", "19092")
    assert settings.load().kafka_port == 19092


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("KAFKA_PORT", "0"),
        ("KAFKA_PORT", "70000"),
        ("MYSQL_PORT", "abc"),
        ("KAFKA_HEAP", "4 gigabytes"),
        ("KAFKA_HEAP", "-1g"),
        ("STACK_NAME", "../../etc"),
        ("BIND_ADDRESS", "::1"),
        ("BIND_ADDRESS", ""),
        ("BIND_ADDRESS", "localhost"),
        ("KAFKA_ADVERTISED_ADDRESS", "kafka:9092"),
        ("LOADGEN_ACKS", "2"),
        ("PAGEVIEWS_PARTITIONS", "0"),
        ("LOGS_FOLDER", " "),
    ],
)
def test_a_bad_value_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=variable):
        settings.load()


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"REDPANDA_MEMORY": "2g"}, "capital"),
        ({"REDPANDA_MEMORY": "512m"}, "capital"),
        ({"REDPANDA_MEMORY": "2GB"}, "capital"),
        ({"REDPANDA_MEMORY": "1023M"}, "make it 1G or more"),
        ({"REDPANDA_MEMORY": "1G", "REDPANDA_SMP": "2"}, "REDPANDA_SMP is 2: make it 2G or more"),
        ({"REDPANDA_MEMORY": "4095M", "REDPANDA_SMP": "4"}, "make it 4G or more"),
    ],
)
def test_memory_that_redpanda_would_not_start_with_is_refused(
    knobs: dict[str, str], why: str
) -> None:
    with pytest.raises(UsageError, match=rf"REDPANDA_MEMORY: .*{why}"):
        settings.load(knobs)


@pytest.mark.parametrize(
    ("memory", "cores"), [("1G", "1"), ("1024M", "1"), ("1500M", "1"), ("4G", "4")]
)
def test_memory_that_redpanda_starts_with(memory: str, cores: str) -> None:
    loaded = settings.load({"REDPANDA_MEMORY": memory, "REDPANDA_SMP": cores})
    assert loaded.redpanda_memory == memory


@pytest.mark.parametrize(
    ("bind", "advertised", "told"),
    [
        ("127.0.0.1", "", "127.0.0.1"),
        ("0.0.0.0", "", "127.0.0.1"),  # noqa: S104
        ("192.0.2.1", "", "192.0.2.1"),
        ("0.0.0.0", "kafka.example", "kafka.example"),  # noqa: S104
    ],
)
def test_clients_of_the_broker_are_sent_where_the_settings_say(
    bind: str, advertised: str, told: str
) -> None:
    knobs = {"BIND_ADDRESS": bind, "KAFKA_ADVERTISED_ADDRESS": advertised}
    assert settings.load(knobs).advertised_address == told


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        (None, settings.REPO / "logs"),
        ("runs/mine", settings.REPO / "runs/mine"),
        ("/mnt/runs", Path("/mnt/runs")),
        ("~/runs", Path.home() / "runs"),
    ],
)
def test_runs_go_to_logs_or_where_it_is_said(
    monkeypatch: pytest.MonkeyPatch, value: str | None, folder: Path
) -> None:
    if value is None:
        monkeypatch.delenv("LOGS_FOLDER")  # which the tests set for themselves
    else:
        monkeypatch.setenv("LOGS_FOLDER", value)
    loaded = settings.load()
    assert loaded.logs_folder == folder
    assert "logs_folder" not in settings.for_record(loaded)


def test_an_override_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HEAP", "2g")
    assert settings.load({"KAFKA_HEAP": "3g"}).kafka_heap == "3g"


def test_an_override_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="KAFKA_HAEP"):
        settings.load({"KAFKA_HAEP": "3g"})


def test_secrets_are_masked_in_the_record() -> None:
    loaded = settings.load()
    record = settings.for_record(loaded)
    assert record["kafka_port"] == loaded.kafka_port
    secrets = {name: value for name, value in loaded if isinstance(value, SecretStr)}
    assert {"mysql_root_password", "mysql_shop_password"} < secrets.keys()
    for name, value in secrets.items():
        if secret := value.get_secret_value():
            assert secret not in str(record[name])

"""Settings: `.env` gives the defaults, the environment wins, a bad value is named."""

import pytest

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
        ("DEEPHAVEN_HEAP", "4 gigabytes"),
        ("DEEPHAVEN_HEAP", "-1g"),
        ("STACK_NAME", "../../etc"),
        ("BIND_ADDRESS", "::1"),
        ("BIND_ADDRESS", ""),
        ("BIND_ADDRESS", "localhost"),
        ("LOADGEN_ACKS", "2"),
        ("PAGEVIEWS_PARTITIONS", "0"),
    ],
)
def test_a_bad_value_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=variable):
        settings.load()


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
    for name in ("mysql_root_password", "mysql_shop_password", "deephaven_psk"):
        assert getattr(loaded, name).get_secret_value() not in str(record[name])

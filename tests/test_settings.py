"""Tests of settings: `.env` has the defaults, the environment overrides them, errors are named."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from dotenv import dotenv_values
from pydantic import SecretStr

from racetrack import config as settings
from racetrack.errors import UsageError


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ({"REDPANDA_MEMORY": "1023M"}, "1G or more"),
        ({"REDPANDA_MEMORY": "4095M", "REDPANDA_SMP": "4"}, "4G or more"),
    ],
)
def test_memory_that_redpanda_would_not_start_with_is_refused(
    overrides: dict[str, str], why: str
) -> None:
    with pytest.raises(UsageError, match=rf"REDPANDA_MEMORY: .*{why}"):
        settings.load(overrides)


@pytest.mark.parametrize(
    ("memory", "cores", "passed"),
    [("1G", "1", "1G"), ("1024m", "1", "1G"), ("1500m", "1", "1500M"), ("4g", "4", "4G")],
)
def test_memory_is_written_as_redpanda_reads_it(memory: str, cores: str, passed: str) -> None:
    loaded = settings.load({"REDPANDA_MEMORY": memory, "REDPANDA_SMP": cores})
    assert loaded.redpanda_memory == passed


@pytest.mark.parametrize(
    ("setting", "written", "becomes"),
    [
        ("KAFKA_HEAP", "8G", "8g"),
        ("KAFKA_HEAP", "1.5g", "1536m"),
        ("PURCHASES_PER_SECOND_START", "1.5k", 1_500),
        ("KAFKA_RETENTION_BYTES", "2g", 2 << 30),
        ("KAFKA_RETENTION_BYTES", "-1", -1),
    ],
)
def test_rates_and_sizes_are_taken_as_people_write_them(
    setting: str, written: str, becomes: object
) -> None:
    assert getattr(settings.load({setting: written}), setting.lower()) == becomes


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("KAFKA_HEAP", "8", "'8' is a size without a unit: write 8m or 8g"),
        ("KAFKA_PORT", "70000", ""),
        ("RUNTIME", "podman", "'podman' is not one of 'auto', 'compose', 'native'"),
        ("ENGINE_CPUS", "all", ""),
        ("STACK_NAME", "../../etc", ""),
        ("BIND_ADDRESS", "::1", ""),
        ("BIND_ADDRESS", "", ""),
        ("KAFKA_ADVERTISED_ADDRESS", "kafka:9092", ""),
        ("LOGS_FOLDER", " ", ""),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_the_reason(
    setting: str, value: str, why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        settings.load({setting: value})
    assert f"{setting}: " in str(refused.value) and why in str(refused.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("KAFKA_HEAP=9g\nCOMPOSE_PROJECT_NAME=mine", ""),
        ("KAFKA_HAEP=9g", r"no setting KAFKA_HAEP\. Did you mean KAFKA_HEAP\?"),
        ("DECIDE_WITHIN=0", r"DECIDE_WITHIN .* environment only"),
        ("KAFKA_SASL_PASSWORD_FILE=f", r"sasl\.password=… .*KAFKA_CLIENT_PROPERTIES"),
        ("FLINK_PODS=a/b=c", r"FLINK_PODS"),
        ("CONNECT_HEAP=1g", r"jvm\.py"),
    ],
)
def test_a_file_of_settings_has_known_names_and_those_of_docker_compose(
    line: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(line + "\n")
    with pytest.raises(UsageError, match=says) if says else nullcontext():
        settings.refuse_unknown_in_files([tmp_path / ".env"])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("KAFKA_HAEP", " Did you mean KAFKA_HEAP?"),
        ("LOG_FOLDER", " Did you mean LOGS_FOLDER?"),
        ("KAFKA_MEMORY", ""),
    ],
)
def test_a_name_in_the_environment_that_looks_like_a_setting_is_found(name: str, hint: str) -> None:
    assert settings.unknown_in([name, "PATH"]) == {name: hint}


def test_a_replaced_setting_in_the_environment_is_refused() -> None:
    given = {"KAFKA_CLIENT_SOCKET_TIMEOUT_MS": "1", "KAFKA_CLIENT_PROPERTIES": "f", "MYSQL_URL": ""}
    with pytest.raises(UsageError, match=r"socket\.timeout\.ms=… .*KAFKA_CLIENT_PROPERTIES"):
        settings.refuse_replaced_in(given)
    settings.refuse_replaced_in({"KAFKA_SASL_MECHANISM": "", "KAFKA_CLIENT_PROPERTIES": "f"})


def test_a_setting_in_two_files_is_refused(tmp_path: Path) -> None:
    files = [tmp_path / ".env", tmp_path / "engine.env"]
    for file in files:
        file.write_text("DEEPHAVEN_HEAP=8g\n")
    settings.refuse_unknown_in_files(files[:1])
    with pytest.raises(UsageError, match="DEEPHAVEN_HEAP"):
        settings.refuse_unknown_in_files(files)


def test_the_file_of_all_engines_and_workloads_stays_short() -> None:
    assert len(dotenv_values(settings.ENV_FILE)) <= 60


def test_variables_of_other_programs_are_no_settings() -> None:
    others = ["KAFKA_HOME", "MYSQL_HOST", "REDIS_URL", "PYTHON_VERSION", "MAVEN_OPTS", "TMPDIR"]
    assert settings.unknown_in([*others, "MACHINE_LOCK", "KAFKA_PORT", "REDPANDA_VERSION"]) == {}


@pytest.mark.parametrize(
    ("bind", "advertised", "address"),
    [
        ("127.0.0.1", "", "127.0.0.1"),
        ("0.0.0.0", "", "127.0.0.1"),  # noqa: S104
        ("192.0.2.1", "", "192.0.2.1"),
        ("0.0.0.0", "kafka.example", "kafka.example"),  # noqa: S104
    ],
)
def test_clients_of_the_broker_are_sent_where_the_settings_say(
    bind: str, advertised: str, address: str
) -> None:
    overrides = {"BIND_ADDRESS": bind, "KAFKA_ADVERTISED_ADDRESS": advertised}
    assert settings.load(overrides).advertised_address == address


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        (None, settings.REPO / "logs"),
        ("runs/mine", settings.REPO / "runs/mine"),
        ("/mnt/runs", Path("/mnt/runs")),
        ("~/runs", Path.home() / "runs"),
    ],
)
def test_runs_go_to_logs_or_to_the_folder_that_is_set(
    monkeypatch: pytest.MonkeyPatch, value: str | None, folder: Path
) -> None:
    if value is None:
        monkeypatch.delenv("LOGS_FOLDER")  # which conftest.py sets for all tests
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


def test_settings_are_read_again_after_a_change_only(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings.load()
    assert settings.load() is before
    monkeypatch.setenv("KAFKA_PORT", "9999")
    assert settings.load().kafka_port == 9999

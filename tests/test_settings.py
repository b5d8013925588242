"""Tests of settings: `.env` has the defaults, the environment overrides them, errors are named."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from dotenv import dotenv_values
from pydantic import SecretStr

from racetrack import config as settings
from racetrack.errors import UsageError


@pytest.mark.parametrize(
    ("setting", "written", "becomes"),
    [
        ("KAFKA_HEAP", "8G", "8g"),
        ("PURCHASES_PER_SECOND_START", "1.5k", 1_500),
        ("KAFKA_RETENTION_BYTES", "2g", 2 << 30),
        ("KAFKA_RETENTION_BYTES", "-1", -1),
        # As Redpanda reads it.
        ("REDPANDA_MEMORY", "1024m", "1G"),
        ("REDPANDA_MEMORY", "1500m", "1500M"),
        ("LOGS_FOLDER", "runs/mine", settings.REPO / "runs/mine"),
        ("LOGS_FOLDER", "/mnt/runs", Path("/mnt/runs")),
        ("LOGS_FOLDER", "~/runs", Path.home() / "runs"),
    ],
)
def test_values_are_taken_as_people_write_them(
    setting: str, written: str, becomes: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDPANDA_SMP", "1")
    monkeypatch.setenv(setting, written)
    assert getattr(settings.load(), setting.lower()) == becomes


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("KAFKA_HAEP", "3g", ""),
        ("REDPANDA_VERSION", "v26", "the version of an image: set it in the environment"),
        ("KAFKA_HEAP", "8", "'8' is a size without a unit: write 8m or 8g"),
        ("KAFKA_PORT", "70000", ""),
        ("RUNTIME", "podman", "'podman' is not one of 'auto', 'compose', 'native'"),
        ("ENGINE_CPUS", "all", ""),
        ("STACK_NAME", "../../etc", ""),
        ("BIND_ADDRESS", "::1", ""),
        ("BIND_ADDRESS", "", ""),
        ("KAFKA_ADVERTISED_ADDRESS", "kafka:9092", ""),
        ("LOGS_FOLDER", " ", ""),
        # Redpanda would not start.
        ("REDPANDA_MEMORY", "1023M", "1G or more"),
        ("REDPANDA_MEMORY", "4095M", "4G or more"),
    ],
)
def test_what_is_wrong_is_refused_with_its_name_and_the_reason(
    setting: str, value: str, why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        settings.load({"REDPANDA_SMP": "4" if "4G" in why else "1", setting: value})
    assert setting in str(refused.value) and why in str(refused.value)


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


def test_names_in_the_environment_that_look_like_settings_are_found() -> None:
    others = ["KAFKA_HOME", "MYSQL_HOST", "REDIS_URL", "PYTHON_VERSION", "MAVEN_OPTS", "TMPDIR"]
    own = ["MACHINE_LOCK", "KAFKA_PORT", "REDPANDA_VERSION", "PATH"]
    assert settings.unknown_in([*others, *own, "KAFKA_HAEP", "LOG_FOLDER", "KAFKA_MEMORY"]) == {
        "KAFKA_HAEP": " Did you mean KAFKA_HEAP?",
        "LOG_FOLDER": " Did you mean LOGS_FOLDER?",
        "KAFKA_MEMORY": "",
    }


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


@pytest.mark.parametrize(
    ("bind", "advertised", "address"),
    [
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


def test_runs_go_to_logs_by_default_which_is_no_setting_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LOGS_FOLDER")  # which conftest.py sets for all tests
    loaded = settings.load()
    assert loaded.logs_folder == settings.REPO / "logs"
    assert "logs_folder" not in settings.for_record(loaded)


def test_a_change_of_the_environment_is_read_and_an_override_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = settings.load()
    assert settings.load() is before
    monkeypatch.setenv("KAFKA_HEAP", "7g")
    assert settings.load().kafka_heap == "7g"
    assert settings.load({"KAFKA_HEAP": "3g"}).kafka_heap == "3g"


def test_secrets_are_masked_in_the_record() -> None:
    loaded = settings.load()
    record = settings.for_record(loaded)
    assert record["kafka_port"] == loaded.kafka_port
    secrets = {name: value for name, value in loaded if isinstance(value, SecretStr)}
    assert {"mysql_root_password", "mysql_shop_password"} < secrets.keys()
    for name, value in secrets.items():
        if secret := value.get_secret_value():
            assert secret not in str(record[name])

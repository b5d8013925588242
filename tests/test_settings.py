"""Tests of settings: `.env` has the defaults, the environment overrides them, errors are named."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import SecretStr

from racetrack import config as settings
from racetrack.errors import UsageError


@pytest.mark.parametrize(
    ("setting", "written", "becomes"),
    [
        ("KAFKA_HEAP", "8G", "8g"),
        ("PURCHASES_PER_SECOND_START", "1.5k", 1_500),
        ("REDPANDA_MEMORY", "1024m", "1G"),  # as Redpanda reads it
        ("LOGS_FOLDER", "runs/mine", settings.REPO / "runs/mine"),
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
        ("KAFKA_HEAP", "8", "'8' is a size without a unit: write 8m or 8g"),
        ("RUNTIME", "podman", "'podman' is not one of 'auto', 'compose', 'native'"),
        ("STACK_NAME", "../../etc", ""),
        ("REDPANDA_MEMORY", "4095M", "4G or more"),  # Redpanda would not start
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
    ],
)
def test_a_file_of_settings_has_known_names_and_those_of_docker_compose(
    line: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(line + "\n")
    with pytest.raises(UsageError, match=says) if says else nullcontext():
        settings.refuse_unknown_in_files([tmp_path / ".env"])


def test_a_setting_in_two_files_is_refused(tmp_path: Path) -> None:
    files = [tmp_path / ".env", tmp_path / "engine.env"]
    for file in files:
        file.write_text("DEEPHAVEN_HEAP=8g\n")
    settings.refuse_unknown_in_files(files[:1])
    with pytest.raises(UsageError, match="DEEPHAVEN_HEAP"):
        settings.refuse_unknown_in_files(files)


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

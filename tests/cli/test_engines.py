"""`./race engines` lists whatever engines there are, and shows no secret."""

import pytest
from click.testing import CliRunner
from pydantic import SecretStr

from racetrack import cli, engines
from racetrack.cli.engines import MASKED, engine_settings
from racetrack.config import every_setting
from racetrack.install.versions import in_env_files


def shown(*arguments: str) -> str:
    """What the command prints into a pipe."""
    result = CliRunner().invoke(cli.race, ["engines", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [
        setting
        for name in engines.engine_names()
        for setting in engine_settings(name)
        if (field := every_setting().get(setting.name.lower())) and field.annotation is SecretStr
    ]
    assert secrets
    monkeypatch.setenv(secrets[0].name, "s3cret")
    output = shown()
    assert "s3cret" not in output
    assert f"{MASKED} (another)" in output
    files = in_env_files()
    assert not [setting for setting in secrets if files[setting.name] and setting.default != MASKED]

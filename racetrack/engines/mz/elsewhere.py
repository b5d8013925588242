"""A Materialize that runs elsewhere, at MZ_URL."""

from pydantic import SecretStr

from racetrack.config import Settings
from racetrack.engines.mz.settings import MaterializeSettings
from racetrack.engines.shared.own_schema import OwnSchema


def _url(settings: Settings) -> SecretStr:
    return MaterializeSettings.of(settings).mz_url


ELSEWHERE = OwnSchema("materialized", "Materialize", "MZ_URL", _url)

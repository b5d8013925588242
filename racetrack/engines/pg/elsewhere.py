"""A PostgreSQL that runs elsewhere, at POSTGRES_URL."""

from pydantic import SecretStr

from racetrack.config import Settings
from racetrack.engines.pg.settings import PostgresSettings
from racetrack.engines.shared.own_schema import OwnSchema


def _url(settings: Settings) -> SecretStr:
    return PostgresSettings.of(settings).postgres_url


ELSEWHERE = OwnSchema("postgres", "PostgreSQL", "POSTGRES_URL", _url)

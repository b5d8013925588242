"""A PostgreSQL that the user provides, at POSTGRES_URL."""

from racetrack.engines.shared.own_schema import OwnSchema

ELSEWHERE = OwnSchema("postgres", "PostgreSQL", "POSTGRES_URL")

"""A Materialize that the user provides, at MZ_URL."""

from racetrack.engines.shared.own_schema import OwnSchema

ELSEWHERE = OwnSchema("materialized", "Materialize", "MZ_URL")

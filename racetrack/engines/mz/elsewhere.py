"""A Materialize that runs elsewhere, at MZ_URL."""

from racetrack.engines.shared.own_schema import OwnSchema

ELSEWHERE = OwnSchema("materialized", "Materialize", "MZ_URL")

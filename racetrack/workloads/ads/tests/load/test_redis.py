"""Tests of the content of a real Redis after the generator has seeded it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from loadgen.config import Reader
from loadgen.config import load as load_config
from racetrack.workloads.ads.load import make
from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.tests.load.ads_settings import load
from tests.redis_server import running_redis


def seed(*, deadline_s: float = 0.0, given: Mapping[str, str]) -> list[str]:
    """Seed Redis as the generator does; return the lines that it logs."""
    env = {"MYSQL_PASSWORD": "x", "WORKLOAD": "ads", **given}
    lines: list[str] = []
    make(load_config(env), Reader(env)).seed_beside(deadline_s, lines.append)
    return lines


@pytest.mark.slow
def test_it_holds_what_mysql_holds(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        given = {"ADS_CAMPAIGNS": "70", "ADS_PER_CAMPAIGN": "30"}  # more ads than one command sends
        (message,) = seed(given={"LOADGEN_REDIS": server.endpoint, **given})
        campaigns, ads = seeded(load(**given))
        assert f"{len(campaigns.rows)} campaigns" in message
        assert server.client.smembers("campaigns") == {name for (name,) in campaigns.rows}
        for name, campaign in ads.rows:
            assert server.client.get(str(name)) == campaign
        assert server.client.dbsize() == len(ads.rows) + 1
        seed(given={"LOADGEN_REDIS": server.endpoint, **given})
        assert server.client.dbsize() == len(ads.rows) + 1

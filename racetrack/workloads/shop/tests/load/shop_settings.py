"""Settings of the shop's generator, for tests."""

from loadgen.config import Reader
from loadgen.config import load as load_config
from racetrack.workloads.shop.load import settings
from racetrack.workloads.shop.load.settings import ShopSettings


def load(**given: str) -> ShopSettings:
    """Return the defaults, changed by the given environment variables."""
    env = {"MYSQL_PASSWORD": "x", **given}
    return settings.load(load_config(env), Reader(env))

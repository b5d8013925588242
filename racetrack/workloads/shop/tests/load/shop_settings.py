"""The shop's settings as its generator reads them, for tests."""

from loadgen.config import Reader
from loadgen.config import load as load_config
from racetrack.workloads.shop.load import settings
from racetrack.workloads.shop.load.settings import ShopSettings


def load(**given: str) -> ShopSettings:
    """The defaults, but for what is given by the names in the environment."""
    env = {"MYSQL_PASSWORD": "x", **given}
    return settings.load(load_config(env), Reader(env))

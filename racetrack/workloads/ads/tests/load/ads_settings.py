"""The settings of the ads as their generator reads them, for tests."""

from loadgen.config import Reader
from loadgen.config import load as load_config
from racetrack.workloads.ads.load import settings
from racetrack.workloads.ads.load.settings import AdsSettings


def load(**given: str) -> AdsSettings:
    """The defaults, but for what is given by the names in the environment."""
    env = {"MYSQL_PASSWORD": "x", "WORKLOAD": "ads", **given}
    return settings.load(load_config(env), Reader(env))

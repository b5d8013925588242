"""Settings of the ads' generator, for tests."""

from loadgen.config import Reader
from loadgen.config import load as load_config
from racetrack.workloads.ads.load import settings
from racetrack.workloads.ads.load.settings import AdsSettings


def load(**given: str) -> AdsSettings:
    """Return the defaults, changed by the given environment variables."""
    env = {"MYSQL_PASSWORD": "x", "WORKLOAD": "ads", **given}
    return settings.load(load_config(env), Reader(env))

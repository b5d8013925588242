"""Names of existing engines, for tests that work with any."""

from racetrack import engines, plugins

EXAMPLE = engines.example_engine().name
CALIBRATION = engines.calibration_engine().name
# Two engines that run natively on the default workload.
TWO = tuple(
    engine.name
    for engine in engines.all_engines()
    if plugins.default_workload() in engine.scripts and "native" in engine.runtimes
)[:2]

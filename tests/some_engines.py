"""Names of engines that there are, for tests that need one and do not care which."""

import engines

EXAMPLE = engines.example_engine().name
CALIBRATION = engines.calibration_engine().name
TWO = tuple(engines.engine_names()[:2])

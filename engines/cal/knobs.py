"""The flaws of the calibration engine; the `.env` beside this file says what they do."""

from typing import Annotated

from pydantic import Field

from racetrack.settings import Rate, Settings
from racetrack.stack.heeded import Heed

NATIVE_ONLY = "the calibration engine runs natively only"


class Knobs(Settings):
    """See `racetrack.settings`."""

    cal_delay_ms: Annotated[int, Field(ge=0)]
    cal_capacity_per_s: Rate
    cal_stalled_partition: Annotated[int, Field(ge=-1)]
    cal_stall_after_s: Annotated[float, Field(ge=0)]
    cal_stall_for_s: Annotated[float, Field(ge=0)]
    cal_cycle_ms: Annotated[int, Field(ge=1)]


FLAWS = tuple(name.upper() for name in Knobs.__annotations__)
HEED = Heed(
    not_heeded={where: dict.fromkeys(FLAWS, NATIVE_ONLY) for where in ("compose", "airgap")},
    changes_results_of=dict.fromkeys(FLAWS, "cal"),
)

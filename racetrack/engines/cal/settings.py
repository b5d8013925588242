"""Settings of the calibration engine: its observation path and its defects. The `.env` in this
folder describes them."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from racetrack.config import Milliseconds, Rate, Seconds, Settings


class CalibrationSettings(Settings):
    """Settings of the calibration engine."""

    cal_delay_ms: Milliseconds
    cal_capacity_per_s: Rate
    cal_stalled_partition: Annotated[int, Field(ge=-1)]
    cal_stall_after_s: Seconds
    cal_stall_for_s: Seconds
    cal_cycle_ms: Annotated[Milliseconds, Field(ge=1)]
    cal_spread_ms: Milliseconds
    cal_capacity_noise_pct: Annotated[float, Field(ge=0, le=50)]
    cal_capacity_noise_tau_s: Annotated[Seconds, Field(ge=0.5)]
    cal_pause_ms: Milliseconds
    cal_pause_every_s: Annotated[Seconds, Field(gt=0)]
    cal_view_behind_ms: Milliseconds
    cal_answer_ms: Milliseconds
    cal_cpu_us_per_event: Annotated[float, Field(ge=0, le=1000)]
    cal_scaling_exponent: Annotated[float, Field(ge=-1, le=2)]
    cal_seed: Annotated[int, Field(ge=0)]
    cal_path: Literal["topic", "postgres", "deephaven", "redis"]

    @field_validator("cal_pause_every_s")
    @classmethod
    def _leaves_time_to_work(cls, every_s: float, info: ValidationInfo) -> float:
        if every_s * 1000 <= info.data.get("cal_pause_ms", 0):
            raise ValueError("has to be more than CAL_PAUSE_MS")
        return every_s


NAMES = tuple(name.upper() for name in CalibrationSettings.__annotations__)

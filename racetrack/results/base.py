"""Base model and shared types of the records in the run folder."""

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from racetrack.metrics import Metric

Utc = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
Scalar = str | int | float | bool | None
# JSON can't represent infinity, so an infinite lag is written as null.
InfinityAsNull = Annotated[
    float,
    BeforeValidator(lambda value: math.inf if value is None else value),
    WithJsonSchema({"type": ["number", "null"]}),
]


class StrictModel(BaseModel):
    """Base of all records: rejects unknown keys and writes infinity as null."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, ser_json_inf_nan="null")


def figure(metric: Metric, **more: Any) -> Any:
    """Return a field that is a registered figure, with the figure's meaning and unit."""
    return Field(description=f"{metric.means} Unit: {metric.unit}.", **more)

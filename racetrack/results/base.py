"""What all typed models of files share: strict parts, and values that JSON has no word for."""

import math
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

Utc = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
Scalar = str | int | float | bool | None
# JSON has no infinity: a lag without end is null there.
Endless = Annotated[
    float,
    BeforeValidator(lambda value: math.inf if value is None else value),
    WithJsonSchema({"type": ["number", "null"]}),
]


class Part(BaseModel):
    """A part of the record: nothing beside what is described, and nothing of another type."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, ser_json_inf_nan="null")

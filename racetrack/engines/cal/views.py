"""The views of the calibration engine, as its service describes them to its consumer."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class TracedRows:
    """A traced view: its columns, the column with due times, and its key column with the key of
    each partition's row."""

    view: str
    columns: Sequence[str]
    column: str
    key: str
    keys: Sequence[int]


@dataclass(frozen=True)
class Views:
    """The views of a workload that the engine has. The names of the progress views are empty if the
    workload has none."""

    progress: str
    summary: str
    traced: Sequence[TracedRows] = ()

    def as_text(self) -> str:
        """Return the views as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> "Views":
        """Return the views in a text from `as_text`."""
        values = json.loads(text)
        return cls(**{**values, "traced": [TracedRows(**rows) for rows in values["traced"]]})

    @property
    def names(self) -> list[str]:
        """Names of all views."""
        counts = [name for name in (self.progress, self.summary) if name]
        return [*counts, *(rows.view for rows in self.traced)]

"""What `run.json` holds under `verified`, and `verified.json` of `./race verify`."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from racetrack.results.base import Scalar, StrictModel

Row = dict[str, Scalar]


class WrongRow(StrictModel):
    """A row that is not right."""

    finding: Literal["missing", "extra", "different"] = Field(description="What is wrong.")
    source: Row | None = Field(
        description="What the sources say. Column → value; times in ISO 8601, decimals as text."
        " null: there is no such row."
    )
    engine: Row | None = Field(
        description="What the engine has. Column → value; times in ISO 8601, decimals as text."
        " null: there is no such row."
    )


class ViewStatus(StrEnum):
    """What was found of a view."""

    RIGHT = "right"
    WRONG = "wrong"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    NOT_COMPARED = "not compared"


class Miscounted(StrictModel):
    """What is wrong with a view that counts messages of the main topic, told in messages."""

    events: int = Field(ge=0, description="How many the sources have.")
    twice: int = Field(ge=0, description="How many the engine counted too often, row by row.")
    lost: int = Field(ge=0, description="How many it did not count, row by row.")
    still_counting: bool = Field(
        description="Whether its counts still changed while it was looked at: what it has not"
        " counted may come."
    )


class ViewFinding(StrictModel):
    """A view. `right`: every row is as the sources say, and no other is there. `wrong`: not so.
    `absent`: this engine's demo has no such view. `unreadable`: what the engine has could not be
    read or compared. `not compared`: what it should hold is beyond what the verifier can compute.
    """

    status: ViewStatus = Field(description="What was found.")
    reason: str = Field(default="", description="Why it is unreadable, or not compared.")
    compared: int = Field(
        default=0,
        ge=0,
        description="Rows that the sources demand and rows that the engine has, taken together.",
    )
    missing: int = Field(default=0, ge=0, description="Rows that the engine lacks.")
    extra: int = Field(
        default=0, ge=0, description="Rows that should not be there, or are there twice."
    )
    different: int = Field(default=0, ge=0, description="Rows with another value in some column.")
    miscounted: Miscounted | None = Field(
        default=None, description="Absent if the view counts no messages, or all of them right."
    )
    first: tuple[WrongRow, ...] = Field(
        default=(),
        description="The first rows that are not right; more stand in verify/<view>.csv.",
    )
    from_ms: int | None = Field(
        default=None,
        description="Before it was read, epoch milliseconds; for a view of the last ten minutes,"
        " the earliest time that the engine's clock may have shown.",
    )
    until_ms: int | None = Field(
        default=None, description="When it had been read, epoch milliseconds."
    )

    @property
    def is_wrong(self) -> bool:
        """Whether it counts against the engine; a view that its demo does not have does not."""
        return self.status in (ViewStatus.WRONG, ViewStatus.UNREADABLE)


class CdcVerified(StrictModel):
    """The tables as their topics have them against MySQL: what CDC delivered. In their rows,
    `engine` is what the topic has.
    """

    caught_up_after_s: float | None = Field(
        description="Seconds from the pause until the topics were seen to equal MySQL; null if they"
        " never did."
    )
    tables: dict[str, ViewFinding] = Field(description="By table.")
    statements: tuple[str, ...] = Field(
        default=(),
        description="Statements in MySQL's log that change rows though Debezium sends no message of"
        " it, such as TRUNCATE; only where tables differ.",
    )

    @property
    def differing(self) -> list[str]:
        """The tables whose topics differ from MySQL."""
        return [name for name, found in self.tables.items() if found.is_wrong]

    @property
    def differing_rows(self) -> int:
        """How many rows differ, of all tables."""
        found = [self.tables[name] for name in self.differing]
        return sum(table.missing + table.extra + table.different for table in found)


class UnfitMessages(StrictModel):
    """Messages of a topic that are none of its events. Views are computed without them."""

    count: int = Field(ge=1, description="How many there are.")
    first: tuple[str, ...] = Field(description="The first of them: where each is, and why.")


class Verified(StrictModel):
    """The views against the sources, with the load paused, in two steps: the topics of CDC against
    MySQL, then the views against the topics. See racetrack/verify/."""

    drained_after_s: float | None = Field(
        description="Seconds from the pause until the engine was seen to hold all of the sources;"
        " null if it did not in time."
    )
    drain_within_s: float = Field(description="How long it was given.")
    source_read_s: float = Field(description="Seconds to read the topics.")
    took_s: float = Field(description="Seconds to read topics and views and to compare them.")
    harness_peak_rss_gib: float = Field(
        description="The harness's highest resident memory so far, GiB; kcat has its own."
    )
    end_offsets: tuple[int, ...] = Field(
        description="The pageviews that the views were compared with: those before these offsets,"
        " by partition."
    )
    source_rows: dict[str, int] = Field(description="Rows or messages of each source.")
    relative_error: float = Field(
        description="How much two floating point numbers may differ and be equal."
    )
    cdc: CdcVerified | None = Field(
        default=None,
        description="What CDC delivered; absent if the engine reads none of it: its views are then"
        " compared with MySQL itself.",
    )
    unfit: dict[str, UnfitMessages] = Field(
        default={}, description="By topic that has any; those of tables too."
    )
    views: dict[str, ViewFinding] = Field(description="By view.")

    def named(self, *statuses: ViewStatus) -> list[str]:
        """The views of these statuses, status by status."""
        return [n for status in statuses for n, v in self.views.items() if v.status is status]

"""Models of `verified` in `run.json`, and of `verified.json` of `./race verify`."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from racetrack.results.base import Scalar, StrictModel

Row = dict[str, Scalar]


class WrongRow(StrictModel):
    """A wrong row."""

    finding: Literal["missing", "extra", "different"] = Field(description="Kind of error.")
    source: Row | None = Field(
        description="Row of the sources: column → value; times in ISO 8601, decimals as text. null:"
        " no such row."
    )
    engine: Row | None = Field(
        description="Row of the engine: column → value; times in ISO 8601, decimals as text. null:"
        " no such row."
    )


class ViewStatus(StrEnum):
    """Result for a view."""

    RIGHT = "right"
    WRONG = "wrong"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    NOT_COMPARED = "not compared"


class Miscounted(StrictModel):
    """Errors of a view that counts messages of the main topic, in messages."""

    events: int = Field(ge=0, description="Number of messages in the sources.")
    twice: int = Field(ge=0, description="Messages counted too often, summed over rows.")
    lost: int = Field(ge=0, description="Messages not counted, summed over rows.")
    still_counting: bool = Field(
        description="Whether counts still changed during the check: missing messages may still be"
        " counted."
    )


class ViewFinding(StrictModel):
    """Result for a view. `right`: the rows are those of the sources. `wrong`: they are not.
    `absent`: the engine's demo has no such view. `unreadable`: the view could not be read or
    compared. `not compared`: the verifier can't compute the expected rows."""

    status: ViewStatus = Field(description="Result.")
    reason: str = Field(default="", description="Why the view is unreadable, or not compared.")
    compared: int = Field(
        default=0,
        ge=0,
        description="Union of expected rows and rows of the engine.",
    )
    missing: int = Field(default=0, ge=0, description="Rows that the engine lacks.")
    extra: int = Field(default=0, ge=0, description="Unexpected or duplicate rows.")
    different: int = Field(default=0, ge=0, description="Rows with another value in some column.")
    miscounted: Miscounted | None = Field(
        default=None, description="Absent if the view counts no messages, or is right."
    )
    first: tuple[WrongRow, ...] = Field(
        default=(),
        description="The first wrong rows; more are in verify/<view>.csv.",
    )
    from_ms: int | None = Field(
        default=None,
        description="Time before the read, epoch milliseconds; for a view of the last ten minutes,"
        " the earliest possible time of the engine's clock.",
    )
    until_ms: int | None = Field(
        default=None, description="Time after the read, epoch milliseconds."
    )

    @property
    def is_wrong(self) -> bool:
        """True if the view counts against the engine; an absent view does not."""
        return self.status in (ViewStatus.WRONG, ViewStatus.UNREADABLE)


class CdcVerified(StrictModel):
    """Comparison of CDC topics with MySQL's tables. In wrong rows, `engine` is the topic."""

    caught_up_after_s: float | None = Field(
        description="Seconds from the pause until topics equalled MySQL; null if they never did."
    )
    tables: dict[str, ViewFinding] = Field(description="By table.")
    statements: tuple[str, ...] = Field(
        default=(),
        description="Statements in MySQL's log for which Debezium sends no message, such as"
        " TRUNCATE; only if tables differ.",
    )

    @property
    def differing(self) -> list[str]:
        """Tables whose topics differ from MySQL."""
        return [name for name, found in self.tables.items() if found.is_wrong]

    @property
    def differing_rows(self) -> int:
        """Number of different rows of all tables."""
        found = [self.tables[name] for name in self.differing]
        return sum(table.missing + table.extra + table.different for table in found)


class UnfitMessages(StrictModel):
    """Messages of a topic that are not valid events. Views are computed without them."""

    count: int = Field(ge=1, description="Number of messages.")
    first: tuple[str, ...] = Field(description="The first of them: position and reason.")


class Verified(StrictModel):
    """Comparison of views with their sources, with the load paused, in two steps: CDC topics with
    MySQL, then views with topics."""

    drained_after_s: float | None = Field(
        description="Seconds from the pause until the engine had processed all input; null if it"
        " did not in time."
    )
    drain_within_s: float = Field(description="Time limit for that.")
    source_read_s: float = Field(description="Seconds to read the topics.")
    took_s: float = Field(description="Seconds to read topics and views and to compare them.")
    harness_peak_rss_gib: float = Field(
        description="The harness's highest resident memory so far, GiB; kcat has its own."
    )
    end_offsets: tuple[int, ...] = Field(
        description="End offsets of the compared pageviews, by partition."
    )
    source_rows: dict[str, int] = Field(description="Rows or messages of each source.")
    relative_error: float = Field(description="Relative tolerance for floating point numbers.")
    cdc: CdcVerified | None = Field(
        default=None,
        description="Result of CDC; absent if the engine does not use it: its views are then"
        " compared with MySQL.",
    )
    unfit: dict[str, UnfitMessages] = Field(default={}, description="By topic, if any.")
    views: dict[str, ViewFinding] = Field(description="By view.")

    def named(self, *statuses: ViewStatus) -> list[str]:
        """Return the views with these statuses, in the order of the statuses."""
        return [n for status in statuses for n, v in self.views.items() if v.status is status]

"""Models of `verified` in `run.json` and of `verified.json`, which `./race verify` writes."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from racetrack.results.base import Scalar, StrictModel

Row = dict[str, Scalar]


class WrongRow(StrictModel):
    """A row in which the engine's view and the sources differ."""

    finding: Literal["missing", "extra", "different"] = Field(description="Kind of error.")
    source: Row | None = Field(
        description="Expected row, computed from the sources: column → value; times in ISO 8601,"
        " decimals as text. null: no such row."
    )
    engine: Row | None = Field(
        description="Row of the engine: column → value; times in ISO 8601, decimals as text. null:"
        " no such row."
    )


class ViewStatus(StrEnum):
    """Result of verifying a view."""

    RIGHT = "right"
    WRONG = "wrong"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    NOT_COMPARED = "not compared"


class Miscounted(StrictModel):
    """Counting errors of a view that counts messages of the main topic."""

    events: int = Field(ge=0, description="Number of messages in the sources.")
    twice: int = Field(ge=0, description="Messages counted too often, summed over rows.")
    lost: int = Field(ge=0, description="Messages not counted, summed over rows.")
    still_counting: bool = Field(
        description="Whether counts still changed during the check, so that missing messages may be"
        " counted later."
    )


class ViewFinding(StrictModel):
    """Result of verifying a view.

    `right`: the view's rows are the expected rows. `wrong`: they are not. `absent`: the engine's
    demo does not create the view. `unreadable`: the view could not be read or compared. `not
    compared`: the verifier can't compute the expected rows, or the view differs and reads a topic
    with messages that engines read differently."""

    status: ViewStatus = Field(description="Result.")
    reason: str = Field(
        default="", description="Reason why the view is unreadable or was not compared."
    )
    compared: int = Field(
        default=0,
        ge=0,
        description="Number of rows that are expected or in the engine's view.",
    )
    missing: int = Field(default=0, ge=0, description="Expected rows that the engine's view lacks.")
    extra: int = Field(default=0, ge=0, description="Unexpected or duplicate rows.")
    different: int = Field(default=0, ge=0, description="Rows with a wrong value in some column.")
    miscounted: Miscounted | None = Field(
        default=None, description="Absent if the view counts no messages, or is right."
    )
    first: tuple[WrongRow, ...] = Field(
        default=(),
        description="The first wrong rows; more are in verify/<view>.csv.",
    )
    from_ms: int | None = Field(
        default=None,
        description="Time before the view was read, epoch milliseconds. For a view of the last ten"
        " minutes: the earliest possible time of the engine's clock.",
    )
    until_ms: int | None = Field(
        default=None, description="Time after the view was read, epoch milliseconds."
    )

    @property
    def is_wrong(self) -> bool:
        """True if the view is wrong or unreadable. An absent view is neither."""
        return self.status in (ViewStatus.WRONG, ViewStatus.UNREADABLE)


class CdcVerified(StrictModel):
    """Comparison of CDC topics with MySQL's tables. In wrong rows, `engine` is the row of the
    topic."""

    caught_up_after_s: float | None = Field(
        description="Seconds from the pause of the load until the topics equalled MySQL; null if"
        " they never did."
    )
    tables: dict[str, ViewFinding] = Field(description="By table.")
    statements: tuple[str, ...] = Field(
        default=(),
        description="Statements in MySQL's binary log for which Debezium sends no message, such as"
        " TRUNCATE. Only searched if tables differ.",
    )

    @property
    def differing(self) -> list[str]:
        """Tables whose topics differ from MySQL."""
        return [name for name, table in self.tables.items() if table.is_wrong]

    @property
    def differing_rows(self) -> int:
        """Number of rows in which topics and MySQL differ, over all tables."""
        tables = [self.tables[name] for name in self.differing]
        return sum(table.missing + table.extra + table.different for table in tables)


class UnfitMessages(StrictModel):
    """Messages of a topic that are not valid events. Views are computed without them."""

    count: int = Field(ge=1, description="Number of messages.")
    first: tuple[str, ...] = Field(description="Position and fault of the first messages.")


class Verified(StrictModel):
    """Comparison of views with their sources while the load is paused. CDC topics are compared with
    MySQL first, and then views with topics."""

    drained_after_s: float | None = Field(
        description="Seconds from the pause of the load until the engine had processed all input;"
        " null if it had not by drain_within_s."
    )
    drain_within_s: float = Field(description="Time limit for draining, in seconds.")
    source_read_s: float = Field(description="Seconds to read the topics.")
    took_s: float = Field(description="Seconds to read topics and views and to compare them.")
    harness_peak_rss_gib: float = Field(
        description="Highest resident memory of the harness so far, GiB, without kcat."
    )
    end_offsets: tuple[int, ...] = Field(
        description="End offsets of the compared events, by partition."
    )
    source_rows: dict[str, int] = Field(description="Rows or messages of each source.")
    relative_error: float = Field(description="Relative tolerance for floating point numbers.")
    cdc: CdcVerified | None = Field(
        default=None,
        description="Comparison of CDC topics with MySQL; absent if the engine does not use CDC."
        " Its views are then compared with MySQL.",
    )
    unfit: dict[str, UnfitMessages] = Field(default={}, description="Invalid messages by topic.")
    first_rows_of: tuple[str, ...] = Field(
        default=(),
        description="Tables whose updates the engine ignores: views were compared with the rows"
        " that it read first.",
    )
    views: dict[str, ViewFinding] = Field(description="Results by view.")

    def named(self, *statuses: ViewStatus) -> list[str]:
        """Return the names of the views with these statuses, in the order of `statuses`."""
        return [n for status in statuses for n, v in self.views.items() if v.status is status]

"""The workload `nexmark` on Pathway: the events, which all queries read. Each query is a module
beside this one. docs/nexmark.md describes the workload.

The changes of each result are written to the topic `pathway.<query>`. If rows are only added, each
is a message without a key; otherwise rows are keyed by what identifies them.

The program is started again for each run, so changes of these files take effect then."""

import importlib
from typing import Any, NamedTuple

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import INTEGER, TEXT, Dataflow

# The records by `event_type`, and those of their fields that queries use.
RECORDS: dict[str, dict[str, Any]] = {
    "person": {"id_": INTEGER, "name": TEXT, "city": TEXT, "state": TEXT},
    "auction": {"id_": INTEGER, "seller": INTEGER, "category": INTEGER, "expires": INTEGER},
    "bid": {"auction": INTEGER, "bidder": INTEGER, "price": INTEGER, "extra": TEXT},
}


class Events(NamedTuple):
    """Tables of the events of each kind, with the columns in RECORDS that queries use."""

    persons: pw.Table
    auctions: pw.Table
    bids: pw.Table


def build(flow: Dataflow) -> None:
    """Build the dataflow of the selected queries, which reads the topic once."""
    events = read_events(flow)
    for query in flow.selected:
        importlib.import_module(f"{__name__}.{query}").build(flow, events)
    flow.create_topics()


def read_events(flow: Dataflow) -> Events:
    """Return the events. A message has one nested record, so the columns of the others are NULL.
    Pathway logs messages that it can't parse, and goes on without them."""
    columns = {
        "event_type": pw.column_definition(dtype=int),
        "dateTime": pw.column_definition(dtype=int),
    }
    paths = {}
    for record, fields in RECORDS.items():
        for field, type_ in fields.items():
            columns[f"{record}_{field}"] = pw.column_definition(dtype=type_, default_value=None)
            paths[f"{record}_{field}"] = f"/{record}/{field.rstrip('_')}"
    schema = pw.schema_builder(columns)
    messages = flow.messages("nexmark", format="json", schema=schema, json_field_paths=paths)
    return Events(*(_of_kind(messages, kind, name) for kind, name in enumerate(RECORDS)))


def _of_kind(messages: pw.Table, kind: int, record: str) -> pw.Table:
    """Return the events of a kind, without those that lack a field."""
    fields = RECORDS[record]
    events = messages.filter(pw.this.event_type == kind)
    for field in fields:
        events = events.filter(pw.this[f"{record}_{field}"].is_not_none())
    return events.select(
        pw.this.dateTime,
        **{field: pw.unwrap(pw.this[f"{record}_{field}"]) for field in fields},
    )

"""The views of the workload `shop` on Pathway. `scripts/demo.py` defines each view exactly; the
comments here only explain where Pathway needs a different formulation.

Pathway has no server that answers queries: its programs write their results. So the changes of each
view are written to the topic `pathway.<view>`, as rows keyed by what identifies them. A topic does
not keep rows in order, so readers of an ordered view sort it themselves.

Between minibatches, Pathway merges the rows that its operators keep, so with a long history it is
busy at any rate. The program keeps few of them:
- Joins have no `id=`: Pathway would keep rows to check that these ids are unique.
- Where rows are only added, `any` reads a column by which they are grouped: it keeps one value.
- Reducers of our own keep one value for each group.

The program is started again for each run, so changes of this file take effect then."""

import re
from collections.abc import Iterable, Sequence

import pathway as pw  # type: ignore[import-not-found]

from racetrack.engines.pathway.program.dataflow import INTEGER, TEXT, Dataflow, function
from racetrack.engines.pathway.program.outputs import decimal

FLAGS, SINK = "dd_flagged_profiles", "high_value_users_sink"
WINDOW_MS, MINUTE_MS = 600_000, 60_000
LAST, TOP = 10, 20
HIGH_VALUE_CENTS = 1_000_000
# Pathway's integers have 64 bits, but a price times a quantity in cents may have 72. So such values
# are the sum of two integers: the first one times UNIT, and the second one.
UNIT = 1_000_000_000
FLAG = re.compile(rb'"?([0-9]{1,18})"?')


def build(flow: Dataflow) -> None:
    """Build the dataflow of all views."""
    users, items, purchases = read_tables(flow)
    pageviews = read_pageviews(flow)
    flow.write_progress("pageviews_progress", "pageviews_summary", pageviews, "received_at")
    summarize_items(flow, items, purchases, pageviews)
    profiles = pageviews.filter(pw.this.pageview_type == "profiles").select(
        owner_id=pw.unwrap(pw.this.target_id),
        viewer_id=pw.this.user_id,
        received_at=pw.this.received_at,
        partition=pw.this.partition,
        offset=pw.this.offset,
    )
    show_recent_views(flow, profiles)
    show_last_views(flow, profiles, users)
    show_flagged(flow, pageviews)
    show_high_value_users(flow, purchases, users)
    flow.create_topics(FLAGS)


def read_tables(flow: Dataflow) -> tuple[pw.Table, pw.Table, pw.Table]:
    """Return users, items and purchases; each is also written, unchanged, as a view."""
    times = {"created_at": TEXT, "updated_at": INTEGER}
    users = flow.table("mysql.shop.users", id_=int, email=TEXT, is_vip=INTEGER, **times)
    items = flow.table(
        "mysql.shop.items",
        id_=int,
        name=TEXT,
        category=TEXT,
        price=INTEGER,
        inventory=INTEGER,
        inventory_updated_at=TEXT,
        **times,
    )
    purchases = flow.table(
        "mysql.shop.purchases",
        id_=int,
        user_id=INTEGER,
        item_id=INTEGER,
        status=INTEGER,
        quantity=INTEGER,
        purchase_price=INTEGER,
        deleted=INTEGER,
        **times,
    )
    flow.write("users", users, "id_")
    flow.write("items", items, "id_", money=("price",))
    flow.write("purchases", purchases, "id_", money=("purchase_price",))
    return users, items, purchases


def read_pageviews(flow: Dataflow) -> pw.Table:
    """Return the pageviews, with the type and the target of each URL."""
    events = flow.events("pageviews", user_id=int, url=str, channel=str, received_at=int)
    # One call of Python for each pageview; Pathway's methods of strings are one call each, too.
    located = events.select(*pw.this, page=function(page_of)(pw.this.url))
    return located.select(
        *(located[name] for name in events.column_names()),
        pageview_type=pw.this.page[0],
        target_id=pw.this.page[1],
    )


def page_of(url: str) -> tuple[str | None, int | None]:
    """Return type and target of a URL."""
    if url.startswith(("/products/", "/profiles/")):
        return url[1:9], int(url[10:])
    return None, None


def summarize_items(
    flow: Dataflow, items: pw.Table, purchases: pw.Table, pageviews: pw.Table
) -> None:
    """Write the views of sales and pageviews per item."""
    known = purchases.select(
        pw.this.item_id,
        cents=pw.coalesce(pw.this.purchase_price, 0),
        prices=pw.if_else(pw.this.purchase_price.is_none(), 0, 1),
        quantity=pw.coalesce(pw.this.quantity, 0),
        quantities=pw.if_else(pw.this.quantity.is_none(), 0, 1),
    )
    sums = known.groupby(pw.this.item_id).reduce(
        pw.this.item_id,
        cents=pw.reducers.sum(pw.this.cents),
        prices=pw.reducers.sum(pw.this.prices),
        orders=pw.reducers.count(),
        quantity=pw.reducers.sum(pw.this.quantity),
        quantities=pw.reducers.sum(pw.this.quantities),
    )
    # As in SQL, a sum ignores NULL, and a sum of nothing else is NULL.
    sold = sums.select(
        pw.this.item_id,
        revenue=pw.if_else(pw.this.prices > 0, pw.this.cents, None),
        orders=pw.this.orders,
        items_sold=pw.if_else(pw.this.quantities > 0, pw.this.quantity, None),
    )
    flow.write("purchases_by_item", sold, "item_id", money=("revenue",))

    products = pageviews.filter(pw.this.pageview_type == "products").select(
        item_id=pw.unwrap(pw.this.target_id)
    )
    viewed = products.groupby(pw.this.item_id).reduce(
        item_id=pw.reducers.any(pw.this.item_id), pageviews=pw.reducers.count()
    )
    flow.write("pageviews_by_item", viewed, "item_id")

    with_sales = items.join_left(sold, items.id_ == sold.item_id).select(
        item_id=items.id_,
        name=items["name"],
        category=items.category,
        revenue=pw.coalesce(sold.revenue, 0),
        orders=pw.coalesce(sold.orders, 0),
        items_sold=pw.coalesce(sold.items_sold, 0),
    )
    counted = with_sales.join_left(viewed, with_sales.item_id == viewed.item_id).select(
        *pw.left, pageviews=pw.coalesce(viewed.pageviews, 0)
    )
    summary = counted.select(
        *pw.this,
        conversion_rate=pw.if_else(
            pw.this.pageviews == 0,
            None,
            pw.this.orders / pw.if_else(pw.this.pageviews == 0, 1, pw.this.pageviews),
        ),
    )
    flow.write("item_summary", summary, "item_id", money=("revenue",))
    rate = pw.coalesce(pw.this.conversion_rate, -1.0)  # lower than any rate: nulls come last
    for view, order in (
        ("top_viewed_items", -pw.this.pageviews),
        ("top_converting_items", -rate),
    ):
        flow.write(view, best(summary, order), "item_id", money=("revenue",))


def best(summary: pw.Table, order: pw.ColumnExpression) -> pw.Table:
    """Return the TOP items in this order. Pathway has no top-k, so a reducer sorts all items."""
    ranked = summary.select(place=pw.make_tuple(order, pw.this.item_id))
    first = ranked.reduce(places=pw.reducers.sorted_tuple(pw.this.place)).select(
        place=pw.make_tuple(*(pw.this.places.get(nth) for nth in range(TOP)))
    )
    places = first.flatten(pw.this.place).filter(pw.this.place.is_not_none())
    top = places.select(item_id=pw.unwrap(pw.this.place)[1])
    return summary.join(top, summary.item_id == top.item_id).select(*pw.left)


def show_recent_views(flow: Dataflow, profiles: pw.Table) -> None:
    """Write the view of a time window. Pathway's windows follow the times of events, not a clock.
    So each profile view meets the step of the clock at which it leaves the window, and counts 1
    until then, and 1 − 1 afterwards. A group is left out as soon as it has no views."""
    begin, clock = flow.clock()
    recent = profiles.select(
        user_id=pw.this.owner_id,
        received_at_minute=pw.this.received_at // MINUTE_MS * MINUTE_MS,
        last_step=(pw.this.received_at + WINDOW_MS + flow.clock_ms - 1) // flow.clock_ms,
    ).filter(pw.this.last_step > begin)
    counted = ("user_id", "received_at_minute")
    met = recent.join(clock, recent.last_step == clock.step, left_exactly_once=True)
    gone = met.select(*(recent[name] for name in counted), count=-1)
    changes = recent.select(*(recent[name] for name in counted), count=1).concat_reindex(gone)
    counts = changes.groupby(pw.this.user_id, pw.this.received_at_minute).reduce(
        row=COUNTS(pw.this.user_id, pw.this.received_at_minute, pw.this["count"])
    )
    typed = counts.select(row=pw.declare_type(tuple[int, int, int], pw.this.row))
    view = typed.select(
        user_id=pw.this.row[0], received_at_minute=pw.this.row[1], pageviews=pw.this.row[2]
    )
    flow.write("profile_views_per_minute_last_10", view, *counted)


def add_counts(
    row: tuple[int, int, int] | None, changes: Sequence[tuple[Sequence[int], int]]
) -> tuple[int, int, int] | None:
    """Return a group's row after changes of its count; None removes the group."""
    user, minute, pageviews = row or (*changes[0][0][:2], 0)
    pageviews += sum(count * times for (_, _, count), times in changes)
    return (user, minute, pageviews) if pageviews else None


COUNTS = pw.reducers.stateful_many(add_counts)


def show_last_views(flow: Dataflow, profiles: pw.Table, users: pw.Table) -> None:
    """Write the last views of each profile. A reducer of our own keeps them: one of Pathway's would
    keep all views, and sort them again for each new one."""
    newest = profiles.groupby(pw.this.owner_id).reduce(
        views=LAST_VIEWS(
            pw.this.received_at,
            pw.this.partition,
            pw.this.offset,
            pw.this.owner_id,
            pw.this.viewer_id,
        )
    )
    typed = newest.select(view=pw.declare_type(list[tuple[int, int, int, int, int]], pw.this.views))
    single = typed.flatten(pw.this.view)
    last = single.select(
        owner_id=pw.this.view[3],
        viewer_id=pw.this.view[4],
        received_at=pw.this.view[0],
        partition=pw.this.view[1],
        offset=pw.this.view[2],
    ).with_id_from(pw.this.partition, pw.this.offset)
    flow.write("profile_views", last, "partition", "offset")
    emails = users.select(pw.this.id_, pw.this.email)
    with_owner = last.join_left(emails, last.owner_id == emails.id_).select(
        *pw.left, owner_email=emails.email
    )
    enriched = with_owner.join_left(emails, with_owner.viewer_id == emails.id_).select(
        *pw.left, viewer_email=emails.email
    )
    flow.write("profile_views_enriched", enriched, "partition", "offset")


def add_views(
    last: tuple[tuple[int, ...], ...] | None, rows: Iterable[tuple[Sequence[int], int]]
) -> tuple[tuple[int, ...], ...]:
    """Return the last views after new rows. A pageview is never deleted, so each count is 1. A new
    view takes the place of the oldest one, since Pathway identifies views by their places: if all
    were moved, all would have changed."""
    views = list(last or ())
    for view in (tuple(row) for row, _ in rows):
        if len(views) < LAST:
            views.append(view)
            continue
        oldest = min(range(LAST), key=views.__getitem__)
        views[oldest] = max(view, views[oldest])
    return tuple(views)


LAST_VIEWS = pw.reducers.stateful_many(add_views)


def show_flagged(flow: Dataflow, pageviews: pw.Table) -> None:
    """Write the views of flagged users. People send the messages by hand, so messages that are not
    numbers are ignored."""
    messages = flow.messages(FLAGS, format="raw", autogenerate_key=True)
    flags = messages.select(user_id=function(flag_of)(pw.this.data))
    known = flags.filter(pw.this.user_id.is_not_none()).select(user_id=pw.unwrap(pw.this.user_id))
    flagged = known.groupby(pw.this.user_id).reduce(user_id=pw.reducers.any(pw.this.user_id))
    flow.write("dd_flagged_profiles", flagged, "user_id")
    seen = pageviews.join(flagged, pageviews.user_id == flagged.user_id)
    flow.write("dd_flagged_profile_view", seen.select(*pw.left), "partition", "offset")


def flag_of(message: bytes) -> int | None:
    """Return the id in a message; None if there is none."""
    match = FLAG.fullmatch(message)
    return int(match[1]) if match else None


def show_high_value_users(flow: Dataflow, purchases: pw.Table, users: pw.Table) -> None:
    """Write the high-value users, and those that are read back from the topic SINK."""
    worth = purchases.select(
        pw.this.user_id,
        worth=function(worth_of)(pw.this.purchase_price, pw.this.quantity),
    )
    parts = worth.select(pw.this.user_id, units=pw.this.worth[0], rest=pw.this.worth[1])
    sums = parts.groupby(pw.this.user_id).reduce(
        pw.this.user_id,
        units=pw.reducers.sum(pw.this.units),
        rest=pw.reducers.sum(pw.this.rest),
        purchases=pw.reducers.count(),
    )
    whole = sums.select(
        pw.this.user_id,
        units=pw.this.units + pw.this.rest // UNIT,
        rest=pw.this.rest % UNIT,
        purchases=pw.this.purchases,
    )
    high = whole.filter(
        (pw.this.units > 0) | ((pw.this.units == 0) & (pw.this.rest > HIGH_VALUE_CENTS))
    )
    best_users = high.join_left(users, high.user_id == users.id_).select(
        id_=high.user_id,
        email=users.email,
        lifetime_value=function(amount)(high.units, high.rest),
        purchases=high.purchases,
    )
    flow.write("high_value_users", best_users, "id_")
    sent = best_users.select(
        key=function(str)(pw.this.id_),
        user_id=pw.this.id_,
        email=pw.this.email,
        lifetime_value=pw.this.lifetime_value,
        purchases=pw.this.purchases,
    )
    flow.write_differences(SINK, sent, sent.key)
    flow.write("hvu_test", read_back(flow), "id_")


def worth_of(cents: int | None, quantity: int | None) -> tuple[int, int]:
    """Return the two parts of a purchase's value; see UNIT."""
    return divmod((cents or 0) * (quantity or 0), UNIT)


def amount(units: int, rest: int) -> str:
    """Return a value as decimal text."""
    return decimal(units * UNIT + rest)


def read_back(flow: Dataflow) -> pw.Table:
    """Return the content of the topic SINK. Pathway does not read a message without a value as a
    deletion, but it writes differences: of a row that is still valid, they sum up to one."""
    differences = flow.messages(
        SINK,
        format="json",
        schema=pw.schema_from_types(
            user_id=INTEGER, email=TEXT, lifetime_value=str, purchases=int, diff=int
        ),
    )
    row = (pw.this.user_id, pw.this.email, pw.this.lifetime_value, pw.this.purchases)
    sums = differences.groupby(*row).reduce(*row, count=pw.reducers.sum(pw.this["diff"]))
    return sums.filter(pw.this["count"] > 0).select(
        id_=pw.this.user_id,
        email=pw.this.email,
        lifetime_value=pw.this.lifetime_value,
        purchases=pw.this.purchases,
    )

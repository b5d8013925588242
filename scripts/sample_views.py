# Logs continuously which tracer events the views of demo.py contain, in the server's log:
#
#   RACETRACK seen timestamp=<ms>, view=<view>.<column>, partition=<k>, value=<count, or ms>
#
# A tracer event is a pageview or a purchase of a reserved customer or product (docs/views.md).
# `timestamp` is the time at which the view has completed its update cycle. `value` is a count, or
# the newest time in epoch milliseconds.
#
# Load this script after sample_dt.py, with `traced_views` set to a list of (name, view, key column,
# first key, last key, value column, whether the value is a time).


def say_seen(name):
    newest = {}

    def report(update, _is_replay):
        timestamp, changed = now_ms(), {}
        for rows in (update.added(), update.modified()):
            for partition, value in rows_of(rows, "partition", "value"):
                if value > newest.get(partition, -1):
                    newest[partition] = changed[partition] = value
        say(
            f"seen timestamp={timestamp}, view={name}, partition={partition}, value={value}"
            for partition, value in sorted(changed.items())
        )

    return report


for name, view, key, first, last, column, is_time in traced_views:
    sampling.append(
        listen(
            globals()[view]
            .where(f"{key} >= {first} && {key} <= {last}")
            .view(
                [
                    f"partition = (int) ({key} - {first})",
                    f"value = epochMillis({column})" if is_time else f"value = {column}",
                ]
            ),
            say_seen(name),
            description=f"sample_views {name}",
            do_replay=True,
            on_error=say_failed(name),
        )
    )

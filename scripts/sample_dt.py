# Says in the server's log when the views of a workload have taken in how much, as it happens:
#
#   RACETRACK dt timestamp=<ms>, total=<n>, max_received_at=<ms>, dt_ms=<ms>
#   RACETRACK progress timestamp=<ms>, partition=<k>, total=<n>, max_received_at=<ms>
#   RACETRACK failed timestamp=<ms>, listener=<dt or progress>, error=<one line>
#
# Times are epoch milliseconds. A `dt` line comes for each cycle that changed the summary, a
# `progress` line for each partition that such a cycle changed, and the state at the start comes at
# once. `timestamp` is taken when ALL views are through with that cycle, not just the two that are
# listened to: what is reported has arrived everywhere. `dt_ms` is the summary's.
#
# Load it after a workload's script, such as demo.py, which says at its end in `sampled` which views
# these are. Loading it again replaces the listeners; stop_sampling() ends them.

import os
import time

from deephaven.table_listener import listen


# Straight to the process's standard output: print() here goes to the IDE's console as well, and in
# another order than what the server logs. One write for all lines of a cycle: they stay together.
def say(lines):
    os.write(1, "".join(f"RACETRACK {line}\n" for line in lines).encode())


def now_ms():
    return time.time_ns() // 1_000_000


def say_dt(update, _is_replay):
    for rows in (update.added(), update.modified()):
        say(
            f"dt timestamp={now_ms()}, total={total}, max_received_at={newest}, dt_ms={dt_ms:.3f}"
            for total, newest, dt_ms in rows_of(rows, "total", "max_received_at", "dt_ms")
        )


def say_progress(update, _is_replay):
    timestamp = now_ms()
    for rows in (update.added(), update.modified()):
        say(
            f"progress timestamp={timestamp}, partition={partition}, total={total}, "
            f"max_received_at={newest}"
            for partition, total, newest in rows_of(rows, "partition", "total", "max_received_at")
        )


# Rows as tuples, from a dict of columns; the dict is empty when there are none.
def rows_of(columns, *names):
    return zip(*(columns.get(name, ()) for name in names), strict=True)


def say_failed(listener):
    def report(error):
        one_line = " ".join(str(error).split())
        # Of several causes the first: the others follow from it, a stack trace each.
        first = one_line.partition("Cause 0: ")[2].partition(" Cause 1: ")[0] or one_line
        say([f"failed timestamp={now_ms()}, listener={listener}, error={first[:500]}"])

    return report


def stop_sampling():
    while sampling:
        sampling.pop().stop()


sampling = globals().get("sampling", [])
stop_sampling()

sampling.append(
    listen(
        sampled["summary"],
        say_dt,
        description="sample_dt",
        do_replay=True,
        dependencies=sampled["last_views"],
        on_error=say_failed("dt"),
    )
)
sampling.append(
    listen(
        sampled["progress"],
        say_progress,
        description="sample_dt progress",
        do_replay=True,
        dependencies=sampled["last_views"],
        on_error=say_failed("progress"),
    )
)

# Logs continuously how many events the views of a workload have processed, in the server's log:
#
#   RACETRACK dt timestamp=<ms>, total=<n>, max_received_at=<ms>, dt_ms=<ms>
#   RACETRACK progress timestamp=<ms>, partition=<k>, total=<n>, max_received_at=<ms>
#   RACETRACK failed timestamp=<ms>, listener=<dt or progress>, error=<one line>
#
# Times are epoch milliseconds. There is a `dt` line for each update cycle that changed the summary,
# and a `progress` line for each partition that a cycle changed. The state at the start is logged
# immediately. `timestamp` is the time at which ALL views have completed the cycle, not only the two
# views that are logged, so all views contain the reported events. `dt_ms` is that of the summary.
#
# Load this script after that of a workload, such as demo.py, which defines the views to log as
# `sampled`. Loading it again replaces the listeners; stop_sampling() ends them.

import os
import time

from deephaven.table_listener import listen


# Write directly to the standard output of the process: print() would also write to the IDE's
# console, and its lines could be out of order with the rest of the server's log. A single write
# keeps the lines of one update cycle together.
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


# Return rows as tuples from a dict of columns, which is empty if there are no rows.
def rows_of(columns, *names):
    return zip(*(columns.get(name, ()) for name in names), strict=True)


def say_failed(listener):
    def report(error):
        one_line = " ".join(str(error).split())
        # Log only the first of several causes: the others result from it, and each is a stack
        # trace.
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

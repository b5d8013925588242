"""A fake worker. It counts the events that it should send, but sends nothing.

python -m tests.loadgen.fake_worker CONTROL_FD COUNTERS_FD NUMBER WORKERS CLOCK_OFFSET_NS
"""

import select
import socket
import sys

from loadgen import config
from loadgen import counters as c
from loadgen.clock import Clock
from loadgen.control_link import ControlLink


def main(argv: list[str]) -> int:
    """Run the worker. Return 3 on a stop order, like a real worker that has unsent messages left;
    return 0 if the pool has closed the link."""
    control_fd, counters_fd, number, workers, offset_ns = map(int, argv)
    control = socket.socket(fileno=control_fd)
    link = ControlLink(control)
    counters = c.Counters(counters_fd, config.load().partitions, workers)
    link.report(event="ready")
    link.log(f"{Clock(offset_ns).now_ns()}")
    while True:
        select.select([control], [], [])
        try:
            order = link.order() or {"do": ""}
        except ConnectionError:
            return 0
        if order["do"] == "assign":
            counters.word[counters.partition(order["partition"]) + c.POSITION] += 1000
            counters.late(number, 5, 1)
        elif order["do"] == "flush":
            counters.word[counters.partition(2) + c.HANDED] = 7
            link.report(event="flushed", token=order["token"], left=0)
        elif order["do"] == "stop":
            return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

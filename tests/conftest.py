"""What all tests need: signals as a terminal's child has them, however the tests were started."""

import os
import signal


def pytest_configure() -> None:
    """A background job or nohup has them ignored, and every child would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A Docker engine that happens to answer changes no test. Tests of containers ask for them.
    os.environ["RUNTIME"] = "native"

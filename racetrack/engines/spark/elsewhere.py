"""A standalone cluster of Spark that the user provides, reached through its master at
SPARK_MASTER_URL.

The program runs here as the cluster's driver. When it ends, the cluster ends its executors. State
and classes are in the folder RUN_NAME in SPARK_SHARED_FOLDER; this folder is removed at the end of
the run.
"""

import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from racetrack.clock import wait_until
from racetrack.config import Settings
from racetrack.engines.spark.settings import SparkSettings
from racetrack.stack.elsewhere import RUN_NAME, Failure, Passed, refused, why_out_of_reach

CONNECTED_WITHIN_S = 5.0
REMOVED_WITHIN_S = 20.0
# Wait this long before the folder is removed: executors may write for a moment after their driver
# has ended.
QUIET_S = 1.0
CHECK = f"racetrack_check_{os.getpid()}"
FOLDER = "SPARK_SHARED_FOLDER"
NO_MASTER = "Check the address, and that a standalone master runs there"
NO_FOLDER = "Set it to a folder that this user and the workers' user may write, by the same path"
ON_WORKERS = (
    "left on Spark's workers: the working folders, with logs, of the application {name}. Workers"
    " remove them if spark.worker.cleanup.enabled is set"
)


class _Spark:
    """See `racetrack.stack.elsewhere.Elsewhere`."""

    service, title, setting, starts_here = "spark", "Spark", "SPARK_MASTER_URL", True

    def address(self, settings: Settings) -> str:
        return SparkSettings.of(settings).spark_master_url

    def check(self, settings: Settings) -> Passed:
        """Connect to the master, and make a folder in the shared folder."""
        url = urlsplit(self.address(settings))
        failures = []
        try:
            socket.create_connection((url.hostname, url.port), CONNECTED_WITHIN_S).close()
        except OSError as error:
            answer = f"can't reach the master: {error}"
            failures.append(Failure(self.setting, answer, NO_MASTER))
        try:
            (_shared(settings) / CHECK).mkdir()
            (_shared(settings) / CHECK).rmdir()
        except OSError as error:
            failures.append(Failure(FOLDER, f"can't write to the folder: {error}", NO_FOLDER))
        if failure := why_out_of_reach(self.title, url.hostname or "", settings):
            failures.append(failure)
        if failures:
            raise refused(self.title, self.address(settings), failures)
        return Passed(("reach the master", "write to the shared folder"))

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Remove the run's folder."""
        folder = _shared(settings) / run_name
        if not run_name or not folder.exists():
            return ()

        def is_gone() -> bool:
            was_there = folder.exists()
            shutil.rmtree(folder, ignore_errors=True)
            return not was_there

        left = ON_WORKERS.format(name=run_name)
        if not wait_until(is_gone, REMOVED_WITHIN_S, QUIET_S):
            return (f"{folder} was not removed. Remove it yourself: rm -r {folder}", left)
        return (f"removed {folder}", left)

    def remarks(self, settings: Settings) -> list[str]:
        """Return which folder is used, and which folders earlier runs may have left."""
        shared = _shared(settings)
        others = sorted(path for path in shared.glob("racetrack_*") if path.name != RUN_NAME)
        return [
            f"its state is in {shared / RUN_NAME}, which will be removed",
            *(
                f"there is also {path}, of another run. If that run was killed, remove it:"
                f" rm -r {path}"
                for path in others
            ),
        ]


def _shared(settings: Settings) -> Path:
    """Return the shared folder; if it is not set, a path that can't exist."""
    return Path(SparkSettings.of(settings).spark_shared_folder or "/dev/null/SPARK_SHARED_FOLDER")


ELSEWHERE = _Spark()

"""A Deephaven that the user provides, at DEEPHAVEN_URL.

The names of a run's variables there begin with RUN_NAME. At the end of the run, they are deleted,
and all tables, consumers and producers of the run are closed.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from racetrack.config import Settings
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.errors import RacetrackError
from racetrack.stack.elsewhere import (
    RUN_NAME,
    Failure,
    Passed,
    measure_clock,
    refused,
    why_out_of_reach,
)

if TYPE_CHECKING:
    from pydeephaven import Session

IN_SERVER = Path(__file__).with_name("in_server.py")
CHECK = f"{RUN_NAME}_check"
TRIED = f"{CHECK}_table"
# The uploaded table contains the code and its input, which may contain secrets: the server logs the
# text of commands, but not the content of tables.
UPLOADED = f"{RUN_NAME}_uploaded"
LOAD = f"""
{RUN_NAME} = dict(next({UPLOADED}.iter_dict()))
del {UPLOADED}
exec({RUN_NAME}["code"], {RUN_NAME})
{RUN_NAME}["load"]({RUN_NAME!r}, globals(), {RUN_NAME}.pop("given"))
"""
REMOVE = """
def {name}_remove(variables):
    for each in [each for each in variables if each.startswith("{name}_")]:
        del variables[each]
    run = variables.pop("{name}", {{}})
    if "remove" in run:
        run["remove"](run)

{name}_remove(globals())
"""
STEPS = {
    "run Python": f"{TRIED} = __import__('deephaven').empty_table(1)",
    "use Kafka": f"{CHECK}_kafka = __import__('deephaven.stream.kafka.consumer')",
}


class _Deephaven:
    """See `racetrack.stack.elsewhere.Elsewhere`."""

    service, title, setting, starts_here = "deephaven", "Deephaven", "DEEPHAVEN_URL", False

    def address(self, settings: Settings) -> str:
        return urlsplit(DeephavenSettings.of(settings).deephaven_url).netloc

    def check(self, settings: Settings) -> Passed:
        """Log in, create a table with Python, read the clock through it, and delete it."""
        # Imported only here, because every run imports this module, but few use pydeephaven.
        from racetrack.engines.dh.connection import Refused, opened

        host = urlsplit(DeephavenSettings.of(settings).deephaven_url).hostname or ""
        if failure := why_out_of_reach(self.title, host, settings):
            raise refused(self.title, self.address(settings), [failure])
        try:
            with opened(settings) as session:
                return self._try_out(session, settings)
        except Refused as why:
            failure = Failure(why.setting, f"can't log in: {why}", why.remedy)
            raise refused(self.title, self.address(settings), [failure]) from why

    def _try_out(self, session: "Session", settings: Settings) -> Passed:
        from pydeephaven import DHError

        from racetrack.engines.dh.connection import cause_of

        passed = ["log in"]
        what = ""
        try:
            for what, script in STEPS.items():
                session.run_script(script)
                passed.append(what)
            what = "read tables"
            now = session.open_table(TRIED).update_view(["now_ns = epochNanos(now())"])

            def read_ms() -> float:
                return float(now.to_arrow().column("now_ns")[0].as_py()) / 1e6

            read_ms()  # do not use the first reading: the server compiles the formula meanwhile
            clock = measure_clock(self.title, read_ms)
            passed.append(what)
            what = "delete them"
            session.run_script(REMOVE.format(name=CHECK))
            passed.append(what)
        except DHError as error:
            remedy = (
                "It must be a Deephaven whose console runs Python, and whose users may use it"
                " (deephaven.console.disable is not set)"
            )
            failure = Failure(self.setting, f"can't {what}: {cause_of(error)}", remedy)
            raise refused(self.title, self.address(settings), [failure]) from error
        return Passed(tuple(passed), clock)

    def load(self, session: "Session", given: dict[str, Any]) -> None:
        """Load the demo in this session; `given` is described in `in_server.load`.

        Raises:
            DHError: the server refused a script.
        """
        import pyarrow as pa

        code = IN_SERVER.read_text()
        session.console_service.start_console()  # `bind_table` needs a console
        rows = pa.table({"code": [code], "given": [json.dumps(given)]})
        session.bind_table(UPLOADED, session.import_table(rows))
        session.run_script(LOAD)

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Delete the run's variables, and close what they contain."""
        if not run_name:
            return ()
        from racetrack.engines.dh.connection import reading

        where = self.address(settings)
        try:
            with reading(settings) as session:
                names = _names_of(session, run_name)
                session.run_script(REMOVE.format(name=run_name))
                left = _names_of(session, run_name)
        except RacetrackError as error:
            by_hand = f"Remove them yourself, in its console:\n{REMOVE.format(name=run_name)}"
            return (f"not removed from {where}: the variables {run_name}*: {error}\n  {by_hand}",)
        if left:
            return (f"not removed from {where}: {', '.join(left)}. Delete these variables.",)
        return (f"removed {len(names)} tables named {run_name}_… from {where}",) if names else ()

    def remarks(self, session: "Session", settings: Settings) -> list[str]:
        """Return where the run's tables are, and which tables of other runs exist."""
        prefix = "racetrack_"
        others = {
            "_".join(name.split("_")[:4]) for name in session.tables if name.startswith(prefix)
        }
        return [
            f"its tables are named {RUN_NAME}_… at {self.address(settings)}, and will be removed",
            *(
                f"there are also tables named {name}_…, of another run. If that run was killed,"
                f" remove them in the console:\n{REMOVE.format(name=name)}"
                for name in sorted(others - {RUN_NAME})
            ),
        ]


def _names_of(session: "Session", run_name: str) -> list[str]:
    return sorted(name for name in session.tables if name.startswith(f"{run_name}_"))


ELSEWHERE = _Deephaven()

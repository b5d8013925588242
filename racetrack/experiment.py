"""One experiment in six steps, to be read from top to bottom."""

import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Protocol

from racetrack import __version__, interrupts, machine
from racetrack.analysis import figures, outcome
from racetrack.engines.contract import Engine
from racetrack.errors import RacetrackError
from racetrack.probes import top
from racetrack.probes.broker import BrokerProbe
from racetrack.probes.delay import DelayProbe
from racetrack.probes.loadgen import ArrivalsProbe, Control
from racetrack.probes.usage import CpuAccount, UsageProbe
from racetrack.report import terminal
from racetrack.runfolder import RunFolder, read_run
from racetrack.screen import Screen
from racetrack.settings import for_record
from racetrack.stack.contract import Stack

STEPS = (
    "start the stack and the load generator",
    "run the demo in the engine and begin to sample its delay",
    "set the pageview rate",
    "wait for things to settle",
    "take samples of the engine and the broker",
    "stop everything",
)
# Where every engine's input comes from; an engine names what it needs beside them.
ALWAYS = ("mysql", "broker", "loadgen")
PAGEVIEWS_TOPIC = "pageviews"
FIRST_UPDATE_WITHIN_S = 60.0
PUBLISHED_WITHIN_S = 5.0
DRAIN_WITHIN_S = 30.0
LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class Asked:
    """What the command line asked for; the rate is in pageviews per second."""

    pageviews_per_s: int
    wait_s: float
    samples: int
    delay_s: float


def services_of(engine: Engine) -> list[str]:
    """The services that an experiment with this engine needs, and no others."""
    return [*ALWAYS, *engine.needs, *engine.services]


class Probe(Protocol):
    """A thread that writes into the run folder while the experiment goes on."""

    def start(self) -> None:
        """Begin."""

    def check(self) -> None:
        """Raise what ended the thread, if anything did."""

    def stop(self) -> None:
        """End the thread."""


class Experiment:
    """One engine, one rate, one run folder."""

    def __init__(
        self, asked: Asked, engine: Engine, stack: Stack, folder: RunFolder, screen: Screen
    ) -> None:
        self._asked, self._engine, self._stack = asked, engine, stack
        self._folder, self._screen = folder, screen
        self._sampled = (*engine.services, "broker", "loadgen")
        self._probes = ExitStack()
        self._delay: DelayProbe | None = None
        self._watched: list[Probe] = []

    def run(self, guard: interrupts.Guard) -> str:
        """Do the six steps; returns the outcome, which `run.json` holds too: `ok` or what failed.

        Raises:
            Interrupted: by a signal; everything has been stopped, and `run.json` says so.
        """
        with self._screen.copied_to(self._folder.open_for_lines("start.log")):
            self._announce()
            result = "unfinished"
            try:
                result = self._do_steps()
                guard.disarm()
            except RacetrackError as error:
                result = str(error)
            except BaseException as error:
                result = str(error) or repr(error)
                raise
            finally:
                guard.disarm()
                self._folder.record({"outcome": result})
                with self._step(6):
                    self._stop()
            self._report(result)
        return result

    def _announce(self) -> None:
        self._folder.record(
            {
                "runtime": self._stack.runtime,
                "asked": asdict(self._asked),
                "outcome": "unfinished",
                "settings": for_record(self._stack.settings),
                "machine": machine.describe(),
                "versions": {"racetrack": __version__, "python": platform.python_version()},
            }
        )
        asked = self._asked
        self._screen.heading(
            f"{self._engine.title} at {asked.pageviews_per_s:,} pageviews/s"
            f" ({self._stack.runtime}), into {self._folder.path}"
        )
        for number, name in enumerate(STEPS, start=1):
            self._screen.say(f"  {number}. {name}{self._how_long(number)}")

    def _how_long(self, number: int) -> str:
        asked = self._asked
        return {
            3: f" to {asked.pageviews_per_s:,}/s",
            4: f", {asked.wait_s:g} s",
            5: f", {asked.samples} of them {asked.delay_s:g} s apart",
        }.get(number, "")

    def _do_steps(self) -> str:
        with self._step(1):
            self._start_stack()
        with self._step(2):
            self._run_demo()
        with self._step(3):
            self._set_rate()
        with self._step(4):
            self._settle()
        with self._step(5):
            self._take_samples()
            self._account_for_pageviews()
        return self._judge()

    @contextmanager
    def _step(self, number: int) -> Iterator[None]:
        name = STEPS[number - 1]
        self._screen.heading(f"[{number}/{len(STEPS)}] {name}{self._how_long(number)}")
        with self._folder.step(name):
            yield

    def _start_stack(self) -> None:
        services = services_of(self._engine)
        self._screen.say(f"  {', '.join(services)}, side by side")
        self._stack.start(services, self._folder.stack, self._screen.say)
        self._folder.record({"versions": dict(self._stack.versions())})

    def _run_demo(self) -> None:
        began = time.monotonic()
        self._engine.load_demo(self._stack)
        self._screen.say(f"  demo loaded after {time.monotonic() - began:.1f} s")
        self._delay = DelayProbe(self._engine, self._stack, self._folder)
        self._begin(self._delay)
        if not self._delay.wait_until(lambda _: True, FIRST_UPDATE_WITHIN_S, self._check):
            raise RacetrackError(
                f"{self._engine.title} told no progress within {FIRST_UPDATE_WITHIN_S:.0f} s of"
                f" loading the demo. Its logs are in {self._folder.stack}."
            )
        where = self._stack.endpoints
        self._begin(ArrivalsProbe(where.loadgen_host, where.loadgen_port, self._folder))
        self._begin(UsageProbe(self._stack, self._sampled, self._asked.delay_s, self._folder))

    def _begin(self, probe: Probe) -> None:
        self._probes.callback(probe.stop)
        self._watched.append(probe)
        probe.start()

    def _set_rate(self) -> None:
        with self._talk_to_loadgen() as control:
            control.ask(f"set pageviews_per_second {self._asked.pageviews_per_s}")

    def _talk_to_loadgen(self) -> Control:
        where = self._stack.endpoints
        return Control(
            where.loadgen_host, where.loadgen_port, lambda line: self._screen.say(f"  {line}")
        )

    def _settle(self) -> None:
        give_up = time.monotonic() + self._asked.wait_s
        with self._screen.live("settling") as status:
            while (left_s := give_up - time.monotonic()) > 0:
                self._check()
                status.update(f"settling, {left_s:.0f} s left; {self._progress()}")
                time.sleep(min(LOOK_EVERY_S, left_s))

    def _take_samples(self) -> None:
        sampled = {name: self._stack.pids(name) for name in self._sampled}
        shown = {name: pids for name, pids in sampled.items() if name != "loadgen"}
        with self._screen.live("sampling") as status:

            def meanwhile() -> None:
                self._check()
                status.update(f"sampling; {self._progress()}")

            start_ms, before = _now_ms(), CpuAccount.read(sampled)
            top.take(shown, self._asked.samples, self._asked.delay_s, self._folder, meanwhile)
            end_ms, used = _now_ms(), CpuAccount.read(sampled).since(before)
        self._folder.record(
            {
                "measured": {
                    "window": {"start_ms": start_ms, "end_ms": end_ms},
                    "cpu_s": used.by_service,
                    "harness_cpu_s": used.harness_s,
                }
            }
        )

    def _account_for_pageviews(self) -> None:
        """Pause the load, let the engine drain, and write down who counted what."""
        assert self._delay  # noqa: S101  # step 2 has begun it
        with self._talk_to_loadgen() as control:
            control.ask("set purchases_per_second 0")
            control.ask("set pageviews_per_second 0")
            counts = control.settled_counts()
        broker = BrokerProbe(self._stack.endpoints.kafka, PAGEVIEWS_TOPIC)
        end_offsets = broker.end_offsets_reaching(counts["handed"], PUBLISHED_WITHIN_S)
        published = sum(end_offsets)
        with self._screen.live("letting the engine drain"):
            drained = self._delay.wait_until(
                lambda newest: newest.total >= published, DRAIN_WITHIN_S, self._check
            )
        self._folder.record(
            {
                "measured": {
                    "handed_over": counts["handed"],
                    "refused": counts["refused"],
                    "end_offsets": end_offsets,
                    "engine_total": self._delay.newest.total if self._delay.newest else None,
                    "engine_drained": drained,
                }
            }
        )

    def _judge(self) -> str:
        self._folder.record({"results": figures.results(self._folder.path)})
        return outcome.of(read_run(self._folder.path))

    def _check(self) -> None:
        """Raise if a part of the experiment is no longer there."""
        for name, how in self._stack.died().items():
            raise RacetrackError(f"{name} ended in mid-run: {how}")
        for probe in self._watched:
            probe.check()

    def _progress(self) -> str:
        newest = self._delay.newest if self._delay else None
        return f"engine total {newest.total:,}, dt {newest.dt_ms:,.0f} ms" if newest else ""

    def _stop(self) -> None:
        self._probes.close()
        self._stack.stop(self._screen.say)

    def _report(self, result: str) -> None:
        run = read_run(self._folder.path)
        if "results" in run:
            for line in terminal.sample_lines(run["results"]):
                self._screen.say(line)
            for line in terminal.summary(run, self._folder.path):
                self._screen.say(line)
        elif result != "ok":
            self._screen.say(f"The experiment failed: {result}\nLogs: {self._folder.path}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

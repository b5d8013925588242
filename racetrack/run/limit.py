"""The highest rate that an engine keeps up with: found live in one run, confirmed by fresh ones."""

import time
from dataclasses import dataclass

import engines
from racetrack import interrupts, machine
from racetrack.analysis import curves
from racetrack.analysis.outcome import RATE_TOLERANCE
from racetrack.analysis.verdict import judge
from racetrack.errors import RacetrackError
from racetrack.json_file import write_json
from racetrack.limit_record import FreshRun, LimitRecord, LiveLook
from racetrack.results_record import Verdict, VerdictKind
from racetrack.run import bracket as search
from racetrack.run.experiment import describe_run
from racetrack.run.readiness import make_ready, services_of
from racetrack.run.session import Session
from racetrack.run.single import run_once
from racetrack.run_record import RunArguments
from racetrack.runfolder import RunFolder, named_folder, read_run
from racetrack.screen import Screen
from racetrack.settings import Settings, for_record
from racetrack.stack.runtime import open_stack

TOLERANCE = 0.05
START_RATE = 1_000
RECOVER_WITHIN_S = 60.0
LONGEST_MORE_S = 45.0
MOST_SAMPLES = 120


@dataclass(frozen=True)
class Pace:
    """How long each look takes, in seconds; what an engine needs to be decided on."""

    warm_up_s: float
    climb_settle_s: float
    climb_window_s: float
    confirm_settle_s: float
    confirm_samples: int

    def expected_minutes(self) -> tuple[float, float]:
        """How long a search takes if every run decides: for an engine that keeps up with 2 to 100
        times the start rate. Starting and stopping are reckoned with 15 s a run."""
        look_s = self.climb_settle_s + self.climb_window_s
        begin_s = 15 + self.warm_up_s
        run_s = begin_s + self.confirm_settle_s + self.confirm_samples
        return (begin_s + 5 * look_s + 5 * run_s) / 60, (begin_s + 28 * look_s + 8 * run_s) / 60


# Real engines: a Java machine compiles for about a minute, and 100 ms of noise need 30 s to be told
# from a growth of 1 %.
PACE = Pace(
    warm_up_s=60, climb_settle_s=5, climb_window_s=15, confirm_settle_s=15, confirm_samples=30
)
# The calibration engine has no noise of its own.
QUICK = Pace(
    warm_up_s=2, climb_settle_s=2, climb_window_s=10, confirm_settle_s=3, confirm_samples=12
)


class LimitSearch:
    """One search; leaves `logs/<stamp>_UTC_<engine>_limit/limit.json` beside the runs it made."""

    def __init__(
        self,
        engine_name: str,
        settings: Settings,
        screen: Screen,
        guard: interrupts.Guard,
        pace: Pace = PACE,
    ) -> None:
        self._pace, self._samples = pace, pace.confirm_samples
        self._engine = engines.find_engine(engine_name)
        self._settings, self._screen, self._guard = settings, screen, guard
        services = services_of(self._engine, settings)
        self._stack = open_stack(settings, services, screen.say)
        self.folder = named_folder(settings.logs_folder, f"{engine_name}_limit")
        self._found = LimitRecord(
            engine=engine_name,
            runtime=self._stack.runtime,
            machine=machine.describe(),
            settings=for_record(settings),
            tolerance_pct=100 * TOLERANCE,
            warm_up_s=pace.warm_up_s,
        )
        self._began = time.monotonic()
        self._live = True

    def run(self, start: int = START_RATE) -> LimitRecord:
        """Climb, then confirm.

        Raises:
            RacetrackError: a run failed, of which nothing can be said.
            Interrupted: by a signal. Either way, what was found so far stands in `limit.json`.
        """
        try:
            return self._search(start)
        except RacetrackError as error:
            self._write(str(error))
            raise

    def _search(self, start: int) -> LimitRecord:
        found = self._climb(start)
        if found.stopped_by is None:
            self._screen.heading(
                f"== probably between {found.keeps_up:,} and {found.falls_behind:,}/s; fresh runs"
                " decide"
            )
            found = search.confirm(self._fresh_run, found, TOLERANCE)
        self._found.keeps_up_with_pageviews_per_s = found.keeps_up
        self._found.falls_behind_at_pageviews_per_s = found.falls_behind
        self._write(found.stopped_by or "ok")
        return self._found

    def _climb(self, start: int) -> search.Bracket:
        """Within one run: the stack stays up, only the rate changes."""
        make_ready(self._engine, self._stack, self._screen.say)
        folder = RunFolder.create(self._settings.logs_folder, self._engine.name, "climb")
        asked = RunArguments(
            pageviews_per_s=start, wait_s=self._pace.climb_settle_s, samples=1, delay_s=1.0
        )
        describe_run(folder, self._engine, self._stack, asked)
        session = Session(self._engine, self._stack, folder, self._screen, 1.0)
        outcome = "unfinished"
        try:
            session.start_stack()
            session.run_demo()
            session.set_rate(start)
            session.watch(self._pace.warm_up_s, "warming up")
            found = search.climb(lambda rate: self._look(session, folder, rate), start, TOLERANCE)
            outcome = "ok"
            return found
        except BaseException as error:
            outcome = str(error) or repr(error)
            raise
        finally:
            self._guard.disarm()
            with folder.recording() as run:
                run.outcome = outcome
            session.stop()
            self._guard.rearm()

    def _look(self, session: Session, folder: RunFolder, rate: int) -> VerdictKind:
        """Observe live for as long as that run lives. What an engine keeps of a whole climb may be
        more than its memory holds; then each rate gets a run of its own."""
        if self._live:
            try:
                return self._observe(session, folder, rate)
            except RacetrackError as error:
                self._live = False
                self._screen.say(f"  {error}\n  Going on with fresh runs.")
                session.stop()
        return self._fresh_run(rate)

    def _observe(self, session: Session, folder: RunFolder, rate: int) -> VerdictKind:
        """The verdict on one rate, from a window of its own; a longer one where it is undecided."""
        self._screen.heading(f"== {rate:,} pageviews/s")
        session.recover(RECOVER_WITHIN_S)
        session.set_rate(rate)
        session.watch(self._pace.climb_settle_s, "settling")
        start_ms = time.time_ns() / 1e6
        session.watch(self._pace.climb_window_s, "watching")
        verdict = self._judge(folder, start_ms, rate)
        if verdict.kind is VerdictKind.UNDECIDED:
            missing_s = (verdict.shortest_window_s or 0) - self._pace.climb_window_s
            more_s = min(max(missing_s, self._pace.climb_window_s), LONGEST_MORE_S)
            session.watch(more_s, "undecided: watching longer")
            verdict = self._judge(folder, start_ms, rate)
        self._screen.say(f"  {verdict.reason}")
        slope = verdict.measured.slope if verdict.measured else None
        look = LiveLook(
            pageviews_per_s=rate,
            verdict=verdict.kind,
            lag_slope_pct=(slope.low_pct, slope.pct, slope.high_pct) if slope else None,
        )
        self._found.climb = (*self._found.climb, look)
        self._write("unfinished")
        return _if_offered(verdict.kind, verdict.throughput.handed_over_per_s, rate)

    def _judge(self, folder: RunFolder, start_ms: float, rate: int) -> Verdict:
        return judge(curves.read(folder.path), start_ms, time.time_ns() / 1e6, rate)

    def _fresh_run(self, rate: int) -> VerdictKind:
        """The verdict of a fresh run. Once a window did not decide, all are as long as may be."""
        kind = self._run_once(rate)
        if kind is VerdictKind.UNDECIDED and self._samples < MOST_SAMPLES:
            self._samples = MOST_SAMPLES
            kind = self._run_once(rate)
        return kind

    def _run_once(self, rate: int) -> VerdictKind:
        pace = self._pace
        asked = RunArguments(
            pageviews_per_s=rate,
            wait_s=pace.confirm_settle_s,
            samples=self._samples,
            delay_s=1.0,
            warm_up_s=pace.warm_up_s,
        )
        folder = run_once(self._engine.name, asked, self._settings, self._screen, self._guard)
        self._guard.rearm()
        run = read_run(folder)
        if not (run.results and run.results.verdict):
            raise RacetrackError(f"A run that was to confirm the limit failed: {run.outcome}")
        verdict = run.results.verdict
        kind = _if_offered(verdict.kind, verdict.throughput.handed_over_per_s, rate)
        fresh = FreshRun(pageviews_per_s=rate, tag=folder.name, verdict=kind)
        self._found.confirm = (*self._found.confirm, fresh)
        self._write("unfinished")
        return kind

    def _write(self, outcome: str) -> None:
        self._found.outcome = outcome
        self._found.minutes = round((time.monotonic() - self._began) / 60, 1)
        write_json(self.folder / "limit.json", self._found.model_dump(mode="json"))


def _if_offered(kind: VerdictKind, handed_over_per_s: float, rate: int) -> VerdictKind:
    """The verdict, unless the rate was not truly offered: then it says nothing about that rate."""
    return kind if handed_over_per_s >= rate * (1 - RATE_TOLERANCE) else VerdictKind.GENERATOR_BOUND


def in_words(found: LimitRecord) -> str:
    """The result in a sentence."""
    low, high = found.keeps_up_with_pageviews_per_s, found.falls_behind_at_pageviews_per_s
    if found.outcome == "ok":
        return (
            f"{found.engine} keeps up with {low:,} pageviews/s and falls behind at {high:,}/s,"
            f" begun anew each time, with {found.warm_up_s:g} s at half the rate to warm up"
        )
    least = f"; it kept up with {low:,}/s" if low and not high else ""
    return f"The limit of {found.engine} was not found to {TOLERANCE:.0%}: {found.outcome}{least}"

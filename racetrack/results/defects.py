"""Defects injected into the calibration engine, to check that the harness measures them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

from racetrack.results.base import Scalar

NO_PARTITION = -1
VISIBLE_CYCLE_MS = 100  # update cycles of at least this length are visible in the lag


@dataclass(frozen=True)
class InjectedDefect:
    """Differences of the calibration engine from an ideal engine, which counts without delay.

    The engine reports its count every `cycle_ms`. It writes the partitions' rows of one update one
    by one, over `spread_ms`. An event is counted no sooner than `delay_ms` after its
    `received_at`. `stalled_partition` (-1: none) is not counted for `stall_for_s` seconds (0: until
    the end), beginning `stall_after_s` seconds after the engine's start.

    The engine counts at most `capacity_per_s` events per second (0: no limit). This capacity
    varies with a standard deviation of `capacity_noise_pct` percent and a correlation time of
    `capacity_noise_tau_s`. It is 0 during pauses of `pause_ms`, which begin at random times,
    `pause_every_s` apart on average. `seed` seeds noise and pauses (0: a new seed at every
    start).

    With n replicas, the capacity is `capacity_per_s` × n^`scaling_exponent`.

    Each counted event costs `cpu_us_per_event` microseconds of CPU time, in addition to the
    engine's own.

    The engine's view contains the events counted until `view_behind_ms` ago. Queries of the view
    are answered after `answer_ms`.
    """

    delay_ms: int = 0
    capacity_per_s: int = 0
    stalled_partition: int = NO_PARTITION
    stall_after_s: float = 0.0
    stall_for_s: float = 0.0
    cycle_ms: int = 10
    spread_ms: int = 0
    capacity_noise_pct: float = 0.0
    capacity_noise_tau_s: float = 8.0
    pause_ms: int = 0
    pause_every_s: float = 10.0
    seed: int = 0
    view_behind_ms: int = 0
    answer_ms: int = 0
    cpu_us_per_event: float = 0.0
    scaling_exponent: float = 1.0

    @classmethod
    def of_settings(cls, settings: Mapping[str, Scalar]) -> Self:
        """Return the defect of a run, from its recorded settings."""
        return cls(
            **{name: type(value)(settings[f"cal_{name}"]) for name, value in asdict(cls()).items()}
        )

    @property
    def mean_capacity_per_s(self) -> float:
        """Mean capacity including pauses, in events per second; 0: no limit."""
        return self.capacity_per_s * (1 - self.pause_ms / 1000 / self.pause_every_s)

    def with_replicas(self, replicas: int) -> Self:
        """Return the defect of an engine with this number of replicas."""
        capacity_per_s = round(self.capacity_per_s * replicas**self.scaling_exponent)
        return replace(self, capacity_per_s=capacity_per_s)

    def __str__(self) -> str:
        if self.stalled_partition != NO_PARTITION:
            return f"partition {self.stalled_partition} stalls"
        if self.capacity_per_s:
            noise = ""
            if self.capacity_noise_pct:
                noise = f" ± {self.capacity_noise_pct:g} % (τ {self.capacity_noise_tau_s:g} s)"
            pauses = f", pauses of {self.pause_ms:,} ms every {self.pause_every_s:g} s"
            return f"capacity of {self.capacity_per_s:,}/s{noise}{pauses if self.pause_ms else ''}"
        cycle = f", updates every {self.cycle_ms:,} ms" if self.cycle_ms >= VISIBLE_CYCLE_MS else ""
        spread = f", written over {self.spread_ms} ms" if self.spread_ms else ""
        behind = f", a view {self.view_behind_ms:,} ms behind" if self.view_behind_ms else ""
        answer = f", answers after {self.answer_ms:,} ms" if self.answer_ms else ""
        cpu = f", {self.cpu_us_per_event:g} µs of CPU each" if self.cpu_us_per_event else ""
        return f"delay of {self.delay_ms:,} ms{cycle}{spread}{behind}{answer}{cpu}"

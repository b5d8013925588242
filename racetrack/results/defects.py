"""A known flaw of an engine: the calibration engine is given it, and the ruler has to find it."""

from dataclasses import dataclass

NO_PARTITION = -1
SELDOM_MS = 100  # a cycle that shows in the lag


@dataclass(frozen=True)
class Flaw:
    """How an engine falls short of one that counts at once.

    What it has counted it tells every `cycle_ms`; the partitions of one update are stamped one
    after another over `spread_ms`. A pageview is counted no sooner than `delay_ms` after its
    `received_at`. `stalled_partition` (-1: none) is not counted from `stall_after_s` on, for
    `stall_for_s` (0: for good), both in seconds since the start.

    At most `capacity_per_s` are counted (0: as many as come). This rate swings by a standard
    deviation of `noise_pct` of itself, with a correlation time of `noise_tau_s`. It is 0 in pauses
    of `pause_ms`, which begin at random, every `pause_every_s` on average. `seed` says which
    swings and pauses these are (0: others at every start).

    A view of it holds what it had counted `view_behind_ms` ago. Who reads it gets the answer after
    `answer_ms`.
    """

    delay_ms: int = 0
    capacity_per_s: int = 0
    stalled_partition: int = NO_PARTITION
    stall_after_s: float = 0.0
    stall_for_s: float = 0.0
    cycle_ms: int = 10
    spread_ms: int = 0
    noise_pct: float = 0.0
    noise_tau_s: float = 8.0
    pause_ms: int = 0
    pause_every_s: float = 10.0
    seed: int = 0
    view_behind_ms: int = 0
    answer_ms: int = 0

    @property
    def mean_capacity_per_s(self) -> float:
        """What is counted per second in the long run while something waits; 0: no limit."""
        return self.capacity_per_s * (1 - self.pause_ms / 1000 / self.pause_every_s)

    def __str__(self) -> str:
        if self.stalled_partition != NO_PARTITION:
            return f"partition {self.stalled_partition} stalls"
        if self.capacity_per_s:
            noise = f" ± {self.noise_pct:g} % (τ {self.noise_tau_s:g} s)" if self.noise_pct else ""
            pauses = f", pauses of {self.pause_ms:,} ms every {self.pause_every_s:g} s"
            return f"capacity of {self.capacity_per_s:,}/s{noise}{pauses if self.pause_ms else ''}"
        seldom = f", told every {self.cycle_ms:,} ms" if self.cycle_ms >= SELDOM_MS else ""
        spread = f", stamped over {self.spread_ms} ms" if self.spread_ms else ""
        trails = f", a view {self.view_behind_ms:,} ms behind" if self.view_behind_ms else ""
        answers = f", an answer {self.answer_ms:,} ms long" if self.answer_ms else ""
        return f"delay of {self.delay_ms:,} ms{seldom}{spread}{trails}{answers}"

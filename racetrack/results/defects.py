"""Defects injected into the calibration engine, which the measurement has to find."""

from dataclasses import dataclass

NO_PARTITION = -1
VISIBLE_CYCLE_MS = 100  # an update cycle this long shows in the lag


@dataclass(frozen=True)
class InjectedDefect:
    """Difference of the calibration engine from one that counts at once.

    It reports its count every `cycle_ms`, and stamps the partitions of one update one after
    another over `spread_ms`. It counts a pageview no sooner than `delay_ms` after its
    `received_at`. It does not count `stalled_partition` (-1: none) from `stall_after_s` on, for
    `stall_for_s` (0: until the end), both in seconds since its start.

    It counts at most `capacity_per_s` (0: no limit). This rate has a standard deviation of
    `noise_pct` percent with a correlation time of `noise_tau_s`. It is 0 in pauses of `pause_ms`,
    which start at random, every `pause_every_s` on average. `seed` seeds noise and pauses (0: a new
    seed at every start).

    Its view holds what it had counted `view_behind_ms` earlier, and answers a query after
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
        """Mean rate with a backlog, pauses included, pageviews per second; 0: no limit."""
        return self.capacity_per_s * (1 - self.pause_ms / 1000 / self.pause_every_s)

    def __str__(self) -> str:
        if self.stalled_partition != NO_PARTITION:
            return f"partition {self.stalled_partition} stalls"
        if self.capacity_per_s:
            noise = f" ± {self.noise_pct:g} % (τ {self.noise_tau_s:g} s)" if self.noise_pct else ""
            pauses = f", pauses of {self.pause_ms:,} ms every {self.pause_every_s:g} s"
            return f"capacity of {self.capacity_per_s:,}/s{noise}{pauses if self.pause_ms else ''}"
        cycle = f", updates every {self.cycle_ms:,} ms" if self.cycle_ms >= VISIBLE_CYCLE_MS else ""
        spread = f", stamped over {self.spread_ms} ms" if self.spread_ms else ""
        behind = f", a view {self.view_behind_ms:,} ms behind" if self.view_behind_ms else ""
        answer = f", answers after {self.answer_ms:,} ms" if self.answer_ms else ""
        return f"delay of {self.delay_ms:,} ms{cycle}{spread}{behind}{answer}"

"""Tests of the figures on noise, which is what may have disturbed a run: for synthetic series, the
means are the programmed ones."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from racetrack.analysis import noise, raw
from racetrack.analysis.noise import Gate
from racetrack.analysis.raw import RESOURCES, NoiseRow
from racetrack.probes.noise import COLUMNS
from racetrack.results.figures import CoreSpeed, NoiseFigures
from tests.records import GATE, NOISE_FIGURES, record

START_MS, CORES, HARNESS = 1_790_000_000_000, 2, 0.02


def rows(
    foreign: float = 0.0,
    steal: float = 0.0,
    seconds: int = 30,
    services: float = 0.5,
    kernel: float = 0.0,
    core: Sequence[float] | None = None,
) -> list[NoiseRow]:
    """Return a row per second. CPU use is in shares of a core; `core` lists speeds of the core,
    which are used in turn."""
    programs = foreign + services + HARNESS
    return [
        NoiseRow(
            at_ms=START_MS + 1000 * s,
            machine_s=1e6 + CORES * s,
            busy_s=5e5 + (programs + kernel) * s,
            steal_s=100 + steal * s,
            programs_s=3e5 + programs * s,
            services_s=70 + services * s,
            harness_s=9 + HARNESS * s,
            load_1_min=1.5,
            mhz=2_000 + 100.0 * (s % 2),
            waited_s={"cpu": 0.25 * s, "memory": 0.0, "io": None},
            core_mib_per_s=None if core is None else core[s % len(core)],
        )
        for s in range(seconds + 1)
    ]


def over(of: list[NoiseRow], from_s: float = 0, until_s: float = 30) -> NoiseFigures:
    found = noise.over(of, START_MS + 1000 * from_s, START_MS + 1000 * until_s)
    assert found
    return found


def write_rows(
    folder: Path, rows: Iterable[str], columns: Sequence[str] = COLUMNS
) -> list[NoiseRow]:
    """Write rows as the probe does, one per second, with their last columns empty if missing;
    return them as they are read."""
    values = ([str(START_MS + 1000 * s), *row.split(",")] for s, row in enumerate(rows))
    lines = [",".join(each + [""] * (len(columns) - len(each))) + "\n" for each in values]
    (folder / "noise.csv").write_text("".join([",".join(columns) + "\n", *lines]))
    return raw.noise(folder)


@given(
    foreign=st.floats(0, 2),
    steal=st.floats(0, 1),
    services=st.floats(0, 1),
    kernel=st.floats(0, 0.5),
    from_s=st.floats(0, 14),
    until_s=st.floats(16, 30),
)
def test_the_means_are_those_that_were_put_in(
    foreign: float, steal: float, services: float, kernel: float, from_s: float, until_s: float
) -> None:
    found = over(rows(foreign, steal, services=services, kernel=kernel), from_s, until_s)
    assert found.foreign_cpu_pct == pytest.approx(100 * foreign, abs=0.02)
    assert found.steal_pct == pytest.approx(100 * steal / CORES, abs=0.02)
    assert found.busy_pct == pytest.approx(100 * (foreign + services + HARNESS + kernel), abs=0.02)
    assert found.kernel_cpu_pct == pytest.approx(100 * kernel, abs=0.02)
    assert found.seconds == pytest.approx(until_s - from_s, abs=0.002)
    assert (found.waited_for_cpu_pct, found.waited_for_memory_pct) == (25.0, 0.0)
    assert found.waited_for_io_pct is None  # None if the kernel does not account for it
    assert found.mhz and 2_000 <= found.mhz <= 2_100


def test_core_speed_is_relative_to_the_fastest_second_of_the_run() -> None:
    """The fastest second may lie outside the judged interval."""
    shared = rows(core=[500.0, 700.0], seconds=29)
    found = over([replace(shared[0], core_mib_per_s=800.0), *shared[1:]], 10, 29)
    assert found.core == CoreSpeed(mib_per_s=600.0, fastest_mib_per_s=800.0)
    assert found.core.pct == pytest.approx(75.0)
    assert over(rows(), 10, 29).core is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"core": {"mib_per_s": 90.0, "fastest_mib_per_s": 100.0}}, ()),
        ({"core": {"mib_per_s": 71.6, "fastest_mib_per_s": 100.0}}, ("core",)),
        ({"waited_for_memory_pct": 0.9}, ()),
        ({"waited_for_memory_pct": 3.2}, ("memory",)),
        # Without a gate:
        ({"foreign_cpu_pct": 40.0}, ("other programs used 40.0 % of a core", "NOISE_GATE")),
    ],
)
def test_what_makes_no_run_void_is_a_warning(
    changes: dict[str, Any], named: tuple[str, ...]
) -> None:
    run = {"results": {"noise": {**NOISE_FIGURES, **changes}}, "settings": {"noise_gate": False}}
    found = noise.warnings(record(run))
    assert len(found) == bool(named)
    assert all(text in found[0] for text in named)


def spoilt_by(how: str, second: int, told_s: float) -> float | None:
    if how == "unseen":
        return None
    if how == "lost":
        return told_s - (7.0 if second > 12 else 0.0)
    return told_s + 0.3 * second


@pytest.mark.parametrize("spoil", ["unseen", "more than the cores were busy", "lost"])
def test_without_an_account_of_programs_busy_cores_count(spoil: str) -> None:
    """A container hides other programs, and the CPU time of ended processes may be lost. Then
    foreign CPU use is computed from the time for which the cores were busy."""
    spoilt = [
        replace(row, programs_s=spoilt_by(spoil, s, row.programs_s or 0.0))
        for s, row in enumerate(rows(foreign=0.2))
    ]
    found = over(spoilt)
    assert found.foreign_cpu_pct == pytest.approx(20.0, abs=0.02)
    assert (found.kernel_cpu_pct is None) is (spoil == "unseen")


def test_unknown_values_are_none() -> None:
    for recorded in ([], rows()[:1], rows(seconds=10)):  # the last one ended early
        assert noise.over(recorded, START_MS + 5_000, START_MS + 20_000) is None
    unknown = [replace(row, services_s=None) for row in rows(1.0)]
    assert over(unknown, 0, 10).foreign_cpu_pct is None


def test_a_row_is_read_as_the_probe_writes_it(tmp_path: Path) -> None:
    assert {f"waited_for_{name}_s" for name in RESOURCES} < set(COLUMNS)
    content = {**dict.fromkeys(COLUMNS[1:], "1.5"), "mhz": "", "services_s": ""}
    (row,) = write_rows(tmp_path, [",".join(content.values())])
    assert (row.at_ms, row.busy_s, row.mhz, row.services_s) == (START_MS, 1.5, None, None)


def test_a_window_of_a_run_without_results_can_be_void(tmp_path: Path) -> None:
    recorded = write_rows(tmp_path, (f"{2 * s},{0.3 * s},0,,0,0,0.5,,,,,," for s in range(11)))
    why = noise.why_void(over(recorded, 0, 10), Gate.of(GATE))
    assert why and "other programs used 30.0 %" in why
    loose = {**GATE, "foreign_cpu_max_pct": 31.0}
    assert noise.why_void(over(recorded, 0, 10), Gate.of(loose)) is None


def test_time_at_a_quota_is_that_of_the_interval_or_unknown(tmp_path: Path) -> None:
    older = [f"{2 * s},0,0,,0,0,0.5,,,,,800" for s in range(21)]
    recent = [f"{row},{0.3 * min(s, 10):.3f}" for s, row in enumerate(older)]
    for columns, lines, expected in (
        (COLUMNS, recent, [30.0, 0.0]),
        (COLUMNS[:-1], older, [None, None]),
    ):
        recorded = write_rows(tmp_path, lines, columns)
        found = [over(recorded, *ends).throttled_pct for ends in ((0, 10), (10, 20))]
        assert found == expected


def test_a_read_from_memory_takes_the_median_of_an_interval(tmp_path: Path) -> None:
    times_ns = (20.0, 20.0, 22.0, 900.0, 40.0, 50.0, 60.0)
    recorded = write_rows(
        tmp_path, (f"{2 * s},0,0,,0,0,0.5,,,,,800,,{of}" for s, of in enumerate(times_ns))
    )
    assert [over(recorded, *ends).memory_read_ns for ends in ((0, 3), (4, 6))] == [21.0, 50.0]


def test_core_speed_is_measured_per_interval(tmp_path: Path) -> None:
    speeds = (*[800] * 11, *[600] * 11)
    recorded = write_rows(
        tmp_path, (f"{2 * s},0,0,,0,0,0.5,,,,,{of}," for s, of in enumerate(speeds))
    )
    edges_ms = [START_MS + ms for ms in (0, 9_500, 10_500, 20_500, 60_000)]
    found = [noise.over(recorded, *edges) for edges in itertools.pairwise(edges_ms)]
    speeds_found = [of and of.core and of.core.mib_per_s for of in found]
    assert speeds_found == [800.0, 800.0, 600.0, None]


@pytest.mark.parametrize(
    ("read_ns", "quiet_ns", "settings", "why"),
    [
        (34.0, 25.0, GATE, "took 34.0 ns, 1.36 times (more than 1.3 times) as long"),
        (32.0, 25.0, GATE, ""),
        (None, 25.0, GATE, ""),
        (34.0, None, GATE, ""),
        (34.0, 25.0, {**GATE, "slowdown_max_pct": 40.0}, ""),
        (34.0, 25.0, {**GATE, "noise_gate": False}, ""),
    ],
)
def test_a_window_is_void_if_reads_from_memory_took_much_longer(
    read_ns: float | None, quiet_ns: float | None, settings: dict[str, Any], why: str
) -> None:
    found = noise.why_slow(read_ns, quiet_ns, Gate.of(settings))
    assert bool(found) == bool(why) and why in str(found)

"""Tests of the figures on noise, which is what may have disturbed a run: for synthetic series, the
means are the programmed ones."""

import itertools
from collections.abc import Sequence
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
from racetrack.results.run import Window
from tests.records import NOISE_FIGURES, record

START_MS, CORES = 1_790_000_000_000, 2


def rows(
    foreign: float = 0.0,
    steal: float = 0.0,
    seconds: int = 30,
    services: float = 0.5,
    harness: float = 0.02,
    kernel: float = 0.0,
    core: Sequence[float] | None = None,
) -> list[NoiseRow]:
    """Return a row per second. CPU use is in shares of a core; `core` lists speeds of the core,
    which are used in turn."""
    return [
        NoiseRow(
            at_ms=START_MS + 1000 * s,
            machine_s=1e6 + CORES * s,
            busy_s=5e5 + (foreign + services + harness + kernel) * s,
            steal_s=100 + steal * s,
            programs_s=3e5 + (foreign + services + harness) * s,
            services_s=70 + services * s,
            harness_s=9 + harness * s,
            load_1_min=1.5,
            mhz=2_000 + 100.0 * (s % 2),
            waited_s={"cpu": 0.25 * s, "memory": 0.0, "io": None},
            core_mib_per_s=None if core is None else core[s % len(core)],
        )
        for s in range(seconds + 1)
    ]


def over(of: list[NoiseRow], from_s: float, until_s: float) -> NoiseFigures | None:
    return noise.over(of, START_MS + 1000 * from_s, START_MS + 1000 * until_s)


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
    assert found
    assert found.foreign_cpu_pct == pytest.approx(100 * foreign, abs=0.02)
    assert found.steal_pct == pytest.approx(100 * steal / CORES, abs=0.02)
    assert found.busy_pct == pytest.approx(100 * (foreign + services + 0.02 + kernel), abs=0.02)
    assert found.kernel_cpu_pct == pytest.approx(100 * kernel, abs=0.02)
    assert found.seconds == pytest.approx(until_s - from_s, abs=0.002)
    assert (found.waited_for_cpu_pct, found.waited_for_memory_pct) == (25.0, 0.0)
    assert found.waited_for_io_pct is None  # None if the kernel does not account for it
    assert found.mhz and 2_000 <= found.mhz <= 2_100


def test_core_speed_is_relative_to_the_fastest_second_of_the_run() -> None:
    """The fastest second may lie outside the judged interval."""
    shared = rows(core=[500.0, 700.0], seconds=29)
    found = over([replace(shared[0], core_mib_per_s=800.0), *shared[1:]], 10, 29)
    assert found
    assert found.core == CoreSpeed(mib_per_s=600.0, fastest_mib_per_s=800.0)
    assert found.core.pct == pytest.approx(75.0)
    unknown = over(rows(), 10, 29)
    assert unknown and unknown.core is None


@pytest.mark.parametrize(
    ("changes", "warns"),
    [
        ({"core": {"mib_per_s": 90.0, "fastest_mib_per_s": 100.0}}, False),
        ({"core": {"mib_per_s": 71.6, "fastest_mib_per_s": 100.0}}, True),
        ({"waited_for_memory_pct": 0.9}, False),
        ({"waited_for_memory_pct": 3.2}, True),
    ],
)
def test_shared_cores_and_a_lack_of_memory_give_a_warning(
    changes: dict[str, Any], warns: bool
) -> None:
    found = noise.warnings(record({"results": {"noise": {**NOISE_FIGURES, **changes}}}))
    assert len(found) == warns


def test_what_the_kernel_does_for_an_engine_is_no_other_program() -> None:
    """Some engines wake up 20,000 times a second. This costs the kernel a tenth of a core, which
    must not count as another program's."""
    found = over(rows(foreign=0.01, kernel=0.12), 0, 30)
    assert found
    assert found.foreign_cpu_pct == pytest.approx(1.0, abs=0.02)
    assert found.kernel_cpu_pct == pytest.approx(12.0, abs=0.02)
    assert not Gate().exceeded_by(found)


def _spoilt(how: str, second: int, told_s: float) -> float | None:
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
        replace(row, programs_s=_spoilt(spoil, s, row.programs_s or 0.0))
        for s, row in enumerate(rows(foreign=0.2))
    ]
    found = over(spoilt, 0, 30)
    assert found
    assert found.foreign_cpu_pct == pytest.approx(20.0, abs=0.02)
    assert (found.kernel_cpu_pct is None) is (spoil == "unseen")


def test_unknown_values_are_none() -> None:
    assert over([], 0, 10) is None
    assert over(rows()[:1], 0, 10) is None
    assert over(rows(seconds=10), 5, 20) is None  # the recording ended early
    unknown = [replace(row, services_s=None) for row in rows(1.0)]
    found = over(unknown, 0, 10)
    assert found and found.foreign_cpu_pct is None


def test_a_row_is_read_as_the_probe_writes_it(tmp_path: Path) -> None:
    assert {f"waited_for_{name}_s" for name in RESOURCES} < set(COLUMNS)
    content = {**dict.fromkeys(COLUMNS, "1.5"), "at_ms": "17", "mhz": "", "services_s": ""}
    lines = [",".join(COLUMNS), ",".join(content.values())]
    (tmp_path / "noise.csv").write_text("\n".join(lines) + "\n")
    (row,) = raw.noise(tmp_path)
    assert (row.at_ms, row.busy_s, row.mhz, row.services_s) == (17, 1.5, None, None)


def test_a_window_of_a_run_without_results_can_be_void(tmp_path: Path) -> None:
    lines = [",".join(COLUMNS)]
    lines += [f"{START_MS + 1000 * s},{2 * s},{0.3 * s},0,,0,0,0.5,,,,,," for s in range(11)]
    (tmp_path / "noise.csv").write_text("\n".join(lines) + "\n")
    window = Window(start_ms=START_MS, end_ms=START_MS + 10_000)
    gate = {"noise_gate": True, "foreign_cpu_max_pct": 5.0, "steal_max_pct": 1.0}
    gate["core_speed_min_pct"] = 0.0
    for settings, void in ((gate, True), ({**gate, "foreign_cpu_max_pct": 31.0}, False)):
        why = noise.why_window_is_void(raw.noise(tmp_path), window, settings)
        assert ("other programs used 30.0 %" in why if why else False) is void


def test_time_at_a_quota_is_counted_in_the_interval_and_unknown_in_older_folders(
    tmp_path: Path,
) -> None:
    numbers = [f"{START_MS + 1000 * s},{2 * s},0,0,,0,0,0.5,,,,,800" for s in range(21)]
    stopped_s = [0.3 * min(s, 10) for s in range(21)]
    recent = [f"{row},{count_s:.3f}" for row, count_s in zip(numbers, stopped_s, strict=True)]
    for columns, lines, expected in (
        (COLUMNS, recent, [30.0, 0.0]),
        (COLUMNS[:-1], numbers, [None, None]),
    ):
        (tmp_path / "noise.csv").write_text("\n".join([",".join(columns), *lines]) + "\n")
        found = [over(raw.noise(tmp_path), *ends) for ends in ((0, 10), (10, 20))]
        assert [figures and figures.throttled_pct for figures in found] == expected


def test_core_speed_is_measured_per_interval(tmp_path: Path) -> None:
    lines = [",".join(COLUMNS)]
    speeds = (*[800] * 11, *[600] * 11)
    lines += [
        f"{START_MS + 1000 * s},{2 * s},0,0,,0,0,0.5,,,,,{of}," for s, of in enumerate(speeds)
    ]
    (tmp_path / "noise.csv").write_text("\n".join(lines) + "\n")
    edges_ms = [START_MS + ms for ms in (0, 9_500, 10_500, 20_500, 60_000)]
    recorded = raw.noise(tmp_path)
    found = [noise.core_speed(recorded, *edges) for edges in itertools.pairwise(edges_ms)]
    assert [of and of.mib_per_s for of in found] == [800.0, 800.0, 600.0, None]


def test_a_least_core_speed_makes_runs_on_shared_cores_void() -> None:
    shared = {"mib_per_s": 600.0, "fastest_mib_per_s": 800.0}
    found = NoiseFigures(**{**NOISE_FIGURES, "core": shared})
    settings = {"noise_gate": True, "steal_max_pct": 1.0, "foreign_cpu_max_pct": 5.0}
    assert noise.why_void(found, Gate.of({**settings, "core_speed_min_pct": 0.0})) is None
    assert noise.why_void(found, Gate.of({**settings, "core_speed_min_pct": 75.0})) is None
    why = noise.why_void(found, Gate.of({**settings, "core_speed_min_pct": 93.0}))
    assert "a core ran at 75 % of its fastest (less than 93 %)" in str(why)


def test_without_a_gate_the_noise_is_a_warning() -> None:
    loud = {**NOISE_FIGURES, "foreign_cpu_pct": 40.0}
    (recorded,) = noise.warnings(
        record({"results": {"noise": loud}, "settings": {"noise_gate": False}})
    )
    assert "other programs used 40.0 % of a core" in recorded and "NOISE_GATE" in recorded

"""Tests of the samples of Kubernetes' nodes in the run folder: their times are by the harness's
clock, none is missing, and they are summed by service."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from racetrack.analysis import noise, raw
from racetrack.analysis.raw import Reading
from racetrack.probes.nodes import NodesProbe, usage_now
from racetrack.probes.noise import COLUMNS
from racetrack.probes.usage import Meter
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import NodeSample, PodUsage, ServiceClock
from racetrack.units import BYTES_PER_GIB
from tests.waiting import wait_until

NOISE: dict[str, float | None] = {**dict.fromkeys(COLUMNS[1:], 1.0), "helpers_s": 0.25}


def pod(number: int, name: str = "kstreams-0", uid: str = "a", cpu_s: float = 0.0) -> PodUsage:
    return PodUsage(
        service="kstreams",
        pod=name,
        uid=uid,
        cpu_s=cpu_s or number / 2,
        cpu_user_s=number / 4,
        rss_bytes=BYTES_PER_GIB,
        memory_bytes=2 * BYTES_PER_GIB,
        periods=10 * number,
        throttled=number,
        throttled_s=0.05 * number,
    )


class MadeUpAgent:
    """A fake agent whose clock is 500 ms ahead. Requests fail while it is `away`."""

    def __init__(self, node: str = "node1", machine: str = "m1", name: str = "kstreams-0") -> None:
        self.node, self._machine, self._name = node, machine, name
        self.taken, self.away = 0, False

    def clock(self) -> ServiceClock:
        self._connect()
        return ServiceClock(self.node, 500.0, 0.25)

    def sample(self) -> NodeSample:
        self._connect()
        return self._sample(self.taken)

    def after(self, number: int) -> Sequence[NodeSample]:
        self._connect()
        return [self._sample(each) for each in range(number + 1, self.taken + 1)]

    def memory(self) -> dict[str, tuple[int | None, int | None]]:
        self._connect()
        return {"kstreams": (BYTES_PER_GIB, BYTES_PER_GIB // 2)}

    def _connect(self) -> None:
        if self.away:
            raise ConnectionError("away")

    def _sample(self, number: int) -> NodeSample:
        pods = [pod(number, self._name, uid=self._name)]
        return NodeSample(number, 10_500.0 + 1000 * number, self._machine, pods, NOISE)


def folder_of(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "kstreams", "5")


def lines(folder: RunFolder, name: str) -> list[str]:
    return (folder.path / name).read_text().splitlines()


def test_samples_are_written_by_the_harness_s_clock_and_none_is_missing(tmp_path: Path) -> None:
    folder, agent = folder_of(tmp_path), MadeUpAgent()
    near = MadeUpAgent("near", "")
    agent.taken = near.taken = 1
    probe = NodesProbe([agent, near], Meter(dict), folder)
    probe.start()
    wait_until(lambda: len(lines(folder, "noise_nodes.csv")) == 3, "a sample of each")
    agent.away, agent.taken = True, 3
    wait_until(lambda: probe.newest[0], "a second")
    agent.away = False
    probe.stop()
    probe.check()
    header, *rows = lines(folder, "usage.csv")
    assert header == "at_ms,service,cpu_s,cpu_user_s,rss_gib,pod"
    assert rows[0] == "11000,kstreams,0.500,0.250,1.000000,kstreams-0"
    assert sorted(row.split(",")[0] for row in rows) == ["11000", "11000", "12000", "13000"]
    assert lines(folder, "cgroup.csv")[1] == "11000,kstreams,0.500,2.000000,kstreams-0"
    assert "13000,kstreams,30,3,0.150,kstreams-0" in lines(folder, "throttling.csv")
    assert lines(folder, "clocks.csv")[1].split(",")[1:] == ["node1", "500.000", "0.250"]
    assert lines(folder, "noise_nodes.csv")[1].startswith("11000,node1,m1,1.000,")
    # On other machines, programs of Kubernetes count as services.
    first = {row["node"]: row for row in raw.rows_of(folder.path / "noise_nodes.csv", dict)[:2]}
    assert (first["node1"]["services_s"], first["near"]["services_s"]) == ("1.250", "1.000")


def test_a_meter_counts_pods_that_are_gone(tmp_path: Path) -> None:
    agents = [MadeUpAgent("node1"), MadeUpAgent("node2", name="kstreams-1")]
    for agent in agents:
        agent.taken = 4
    read = Meter(dict, usage_now(lambda: agents)).read
    assert read()["kstreams"].cpu_s == 4.0
    assert read()["kstreams"].rss_gib == 2.0
    agents[0].away, agents[1].taken = True, 8
    assert read()["kstreams"].cpu_s == 2.0 + 4.0


def test_pods_are_summed_at_common_times() -> None:
    def readings(start_ms: int, per_s: float) -> list[Reading]:
        return [Reading(start_ms + 1000 * s, 3 + per_s * s, per_s * s / 2, 0.5) for s in range(11)]

    service = {"a-0": readings(0, 1.0), "a-1": readings(300, 2.0)}
    summed = raw.summed_pods({"a": service})["a"]
    assert summed[5].cpu_s - summed[2].cpu_s == pytest.approx(9.0)
    assert summed[5].cpu_user_s - summed[2].cpu_user_s == pytest.approx(4.5)
    assert {round(each.rss_gib, 6) for each in summed[1:10]} == {1.0}


def test_a_pod_that_was_replaced_counts_on_and_one_that_is_gone_has_no_memory() -> None:
    before = [Reading(1000 * s, 10.0 + s, 0.0, 1.0) for s in range(4)]
    after = [Reading(6000 + 1000 * s, float(s), 0.0, 1.0) for s in range(4)]
    stays = [Reading(1000 * s, 1.0, 0.0, 0.25) for s in range(11)]
    replaced = raw.summed_pods({"a": {"a-0": [*before, *after]}})["a"]
    assert replaced[-1].cpu_s - replaced[0].cpu_s == pytest.approx(6.0)
    gone = raw.summed_pods({"a": {"a-0": before, "a-1": stays}})["a"]
    assert (gone[2].rss_gib, gone[9].rss_gib) == (1.25, 0.25)


def node_rows(node: str, machine: str, services: float, foreign: float, shift_ms: int = 0) -> str:
    """Return rows of `noise_nodes.csv`, one per second, with shares of a core."""
    return "".join(
        f"{1000 * s + shift_ms},{node},{machine},{2 * s},{(services + foreign) * s},0,"
        f"{(services + foreign) * s},{services * s},0,1,,,,,,,\n"
        for s in range(31)
    )


def foreign_pct(path: Path, programs: float, nodes: str) -> float | None:
    """Return other programs' CPU use, if those on the harness's machine use this share of a core,
    a tenth of a core each by services and harness."""
    here = "".join(
        f"{1000 * s},{2 * s},{programs * s},0,{programs * s},0,{0.1 * s},1,,,,,,,\n"
        for s in range(31)
    )
    (path / "noise.csv").write_text(",".join(COLUMNS) + "\n" + here)
    header = ",".join(("at_ms", "node", "machine", *COLUMNS[1:]))
    (path / "noise_nodes.csv").write_text(header + "\n" + nodes)
    found = noise.over(raw.noise(path), 5_000, 25_000)
    return found.foreign_cpu_pct if found else None


@pytest.mark.parametrize(
    ("programs", "nodes", "expected"),
    [
        (0.1, node_rows("n1", "m1", 0.5, 0.02) + node_rows("n2", "m2", 0.5, 0.3), 30),
        # Nodes on the harness's own machine are not foreign.
        (0.9, node_rows("n1", "", 0.5, 0, 300) + node_rows("n2", "", 0.25, 0, 700), 5),
        # A node whose samples end leaves the noise unknown.
        (0.1, node_rows("n1", "m1", 0.5, 0).split("10000", 1)[0], None),
    ],
)
def test_the_worst_machine_decides(
    tmp_path: Path, programs: float, nodes: str, expected: float | None
) -> None:
    assert foreign_pct(tmp_path, programs, nodes) == (expected and pytest.approx(expected))

"""Agent: a program on each node that measures the pods of one namespace there once a second, and
the node's noise (other load, and the speed of its cores).

It reads the node's control groups (version 1 or 2) and processes, so it needs the node's process
ids (hostPID). It only uses Python's standard library. Over TCP it answers one line of JSON per
line:

    clock      this node's time, epoch milliseconds
    after N    all samples since number N that it still has; numbers never decrease
    sample     a sample of this moment, which is not kept
    memory     by pod: proportional set size, and files in memory that no process has mapped

These only read. Signals need the right to execute a command in the agent's pod:

    python agent.py STOP UID...    send SIGSTOP (or CONT, KILL) to all processes of these pods
"""

import contextlib
import hashlib
import itertools
import json
import os
import signal
import socketserver
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PORT = 7070
EVERY_S = 1.0
KEPT = 900  # number of samples: a connection may be lost for 15 minutes
TICKS_PER_S, PAGE_BYTES = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
PROC, CGROUPS, PODS = Path("/proc"), Path("/host/cgroup"), Path("/host/pods")
CPUS = Path("/sys/devices/system/cpu")
RESOURCES = ("cpu", "memory", "io")
KTHREADD = 2  # process id of the parent of all kernel threads
# Mounts below these folders do not contain data of a service.
SYSTEM_FOLDERS = ("/proc", "/sys", "/dev", "/run", "/var/run")
# Beginnings of the names of Kubernetes' own programs on a node.
HELPERS = (b"kube", b"containerd", b"crio", b"conmon", b"dockerd", b"etcd", b"coredns")
# The same as in racetrack/probes/noise.py, which explains them.
BLOCK, TRIES, MIB = bytes(range(256)) * 64, 7, 1024**2


class Groups:
    """Control groups of the pods of a node. `root` is the path of the node's /sys/fs/cgroup."""

    def __init__(self, root: Path = CGROUPS, proc: Path = PROC) -> None:
        self._proc = proc
        self.is_v2 = (root / "cgroup.controllers").exists()
        names = ("cpu", "cpuacct", "memory")
        folders = [root] if self.is_v2 else list(root.iterdir())
        self._hierarchies = {
            name: next(each for each in folders if self.is_v2 or name in each.name.split(","))
            for name in names
        }
        # A pod's uid → path of its group below the root of each hierarchy.
        self._paths: dict[str, str] = {}

    def usage(self, uid: str) -> dict[str, Any] | None:
        """Return the resources that a pod has used since it was created; None if it has no control
        group. Its CPU time includes ended containers."""
        try:
            return self._usage(uid)
        except OSError:  # the pod has just ended
            self._paths.pop(uid, None)
            return None

    def memory(self, uid: str) -> dict[str, int | None] | None:
        """Return the pod's proportional set size and its files in memory, in bytes; None if it has
        no control group. A page of such a file counts only once: as set size if a process has
        mapped it. If the kernel denies access, both are None."""
        try:
            pids = [pid for of in self.processes(uid).values() for pid in of]
            found = _fields(self._folder("memory", uid) / "memory.stat")
        except OSError:
            return None
        pss = shared = 0
        for pid in pids:
            try:
                rollup = _fields(self._proc / str(pid) / "smaps_rollup")
            except (FileNotFoundError, ProcessLookupError):
                continue
            except PermissionError:
                return {"pss": None, "tmpfs": None}
            pss += 1024 * rollup.get("Pss:", 0)
            shared += 1024 * rollup.get("Pss_Shmem:", 0)
        files = found["shmem" if self.is_v2 else "total_shmem"]
        return {"pss": pss, "tmpfs": max(0, files - shared)}

    def processes(self, uid: str) -> dict[str, list[int]]:
        """Return the pod's process ids, by the name of their control group, which contains the id
        of the container.

        Raises:
            OSError: there is no such pod.
        """
        pod = self._folder("cpuacct", uid)
        return {
            file.parent.name: pids
            for file in sorted(pod.rglob("cgroup.procs"))
            if (pids := [int(line) for line in file.read_text().split()])
        }

    def _usage(self, uid: str) -> dict[str, Any]:
        folder, memory = self._folder("cpuacct", uid), self._folder("memory", uid)
        processes = self.processes(uid)
        stats = [_stat(f"{self._proc}/{pid}/stat") for of in processes.values() for pid in of]
        if self.is_v2:
            cpu = _fields(folder / "cpu.stat")
            cpu_s, user_s = cpu["usage_usec"] / 1e6, cpu["user_usec"] / 1e6
            memory_bytes = int((memory / "memory.current").read_text())
        else:
            cpu_s = int((folder / "cpuacct.usage").read_text()) / 1e9
            ticks = _fields(folder / "cpuacct.stat")
            # Ticks are only samples, so they serve only to divide the CPU time that the scheduler
            # has measured into user and system time.
            user_s = cpu_s * ticks["user"] / max(1, ticks["user"] + ticks["system"])
            memory_bytes = int((memory / "memory.usage_in_bytes").read_text())
        return {
            "cpu_s": cpu_s,
            "cpu_user_s": user_s,
            "rss_bytes": PAGE_BYTES * sum(int(fields[21]) for fields in stats if fields),
            "memory_bytes": memory_bytes,
            **self._throttling(uid),
            "groups": list(processes),
            "folders": self._folders([of[0] for of in processes.values()]),
        }

    def _folders(self, pids: list[int]) -> dict[str, tuple[int, int]]:
        """Return the in-memory volumes that these processes see: path in the container → (free
        bytes, total bytes)."""
        found = {}
        for pid in pids:
            with contextlib.suppress(OSError):  # the process has just ended
                root = self._proc / str(pid)
                for point in _volumes_in_memory((root / "mountinfo").read_text()):
                    stat = os.statvfs(root / "root" / point.lstrip("/"))
                    found[point] = stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize
        return found

    def _throttling(self, uid: str) -> dict[str, Any]:
        """Return how often, and for how long in total, limits of CPU time have stopped the pod. The
        figures are sums over the pod's own limit and those of its containers, because only one of
        these limits stops the pod at a time."""
        periods = throttled = 0
        throttled_s = 0.0
        for file in self._folder("cpu", uid).rglob("cpu.stat"):
            found = _fields(file)
            periods = max(periods, found.get("nr_periods", 0))
            throttled += found.get("nr_throttled", 0)
            throttled_s += (
                found.get("throttled_usec", 0) / 1e6 + found.get("throttled_time", 0) / 1e9
            )
        return {"periods": periods, "throttled": throttled, "throttled_s": throttled_s}

    def _folder(self, controller: str, uid: str) -> Path:
        base = self._hierarchies[controller]
        if uid not in self._paths:
            # The systemd driver writes the uid with `_` instead of `-`.
            names = (uid, uid.replace("-", "_"))
            below = (Path(at, name) for at, found, _ in os.walk(base) for name in found)
            pod = next((each for each in below if any(name in each.name for name in names)), None)
            if pod is None:
                raise FileNotFoundError(f"no control group of pod {uid}")
            self._paths[uid] = str(pod.relative_to(base))
        return base / self._paths[uid]


class Noise:
    """State of the node: the load of other programs on its cores, and the cores' speed."""

    def __init__(self, proc: Path = PROC, cpus: Path = CPUS) -> None:
        self._proc, self._cpus = proc, cpus
        self._threads: set[str] = set()  # process ids of kernel threads
        self._cores = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def read(self) -> dict[str, float | None]:
        """Return the columns of `noise.csv`. Values in seconds are totals since an arbitrary
        instant."""
        lines = (self._proc / "stat").read_text().splitlines()
        cores = [line.split() for line in lines if line.startswith("cpu")]
        _, _, _, idle, waiting, _, _, steal = (int(of) / TICKS_PER_S for of in cores[0][1:9])
        machine_s = (len(cores) - 1) * time.clock_gettime(time.CLOCK_BOOTTIME)
        programs_s, helpers_s = self._programs_s()
        return {
            "machine_s": machine_s,
            "busy_s": machine_s - idle - waiting - steal,
            "steal_s": steal,
            "programs_s": programs_s,
            "helpers_s": helpers_s,
            "harness_s": time.process_time(),
            "load_1_min": float((self._proc / "loadavg").read_text().split()[0]),
            "mhz": self._mhz(),
            **{f"waited_for_{name}_s": self._waited_s(name) for name in RESOURCES},
            "core_mib_per_s": self._core_mib_per_s(),
        }

    def _programs_s(self) -> tuple[float | None, float]:
        """Return the CPU seconds of all programs (None if not all can be seen), and those of
        Kubernetes' own programs."""
        programs = helpers = 0
        for name in os.listdir(self._proc):  # noqa: PTH208  # Paths would take as long again
            if not name.isdigit() or name in self._threads:
                continue
            if not (fields := _stat(f"{self._proc}/{name}/stat")):
                continue
            if int(fields[1]) == KTHREADD:
                self._threads.add(name)
                continue
            ticks = sum(map(int, fields[11:15]))
            programs += ticks
            helpers += ticks if fields[-1].startswith(HELPERS) else 0
        comm = self._proc / str(KTHREADD) / "comm"
        sees_all = comm.exists() and comm.read_text() == "kthreadd\n"
        return programs / TICKS_PER_S if sees_all else None, helpers / TICKS_PER_S

    def _mhz(self) -> float | None:
        found = self._cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
        speeds = [int(path.read_text()) / 1000 for path in found]
        return sum(speeds) / len(speeds) if speeds else None

    def _waited_s(self, resource: str) -> float | None:
        try:
            some = (self._proc / "pressure" / resource).read_text().splitlines()[0]
        except OSError:  # the kernel does not measure it
            return None
        return int(some.rpartition("=")[2]) / 1e6

    def _core_mib_per_s(self) -> float:
        anywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {next(self._cores)})
        try:
            return len(BLOCK) / MIB / statistics.median(_try_s() for _ in range(TRIES))
        finally:
            os.sched_setaffinity(0, anywhere)


class Sampler:
    """Samples the pods of a namespace, and keeps the latest samples.

    `logs` is /var/log/pods of the node, whose folders are called <namespace>_<pod>_<uid>.
    """

    def __init__(
        self,
        namespace: str,
        own_pod: str,
        groups: Groups,
        noise: Noise,
        logs: Path = PODS,
    ) -> None:
        self._namespace, self._own_pod, self._logs = namespace, own_pod, logs
        self._groups, self._noise = groups, noise
        self._machine = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        # Uid → CPU seconds of a pod, including pods that have ended.
        self._used_s: dict[str, float] = {}
        self._kept: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def pods(self) -> dict[str, str]:
        """Return uid → name of the sampled pods on this node, without the agent's own pod."""
        found = {}
        for each in self._logs.iterdir():
            namespace, _, rest = each.name.partition("_")
            pod, _, uid = rest.partition("_")
            if namespace == self._namespace and pod != self._own_pod:
                found[uid] = pod
        return found

    def sample(self) -> dict[str, Any]:
        """Return a sample of this moment."""
        with self._lock:
            at_ms, pods = time.time() * 1000, []
            noise = self._noise.read()
            for uid, name in self.pods().items():
                if used := self._groups.usage(uid):
                    self._used_s[uid] = used["cpu_s"]
                    pods.append({"uid": uid, "pod": name, **used})
            noise["services_s"] = sum(self._used_s.values())
            # The sample's number is the milliseconds since boot, so numbers do not decrease even if
            # the agent is restarted.
            number = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
            found = {"number": number, "at_ms": at_ms, "machine": self._machine}
            return {**found, "pods": pods, "noise": noise}

    def keep_sampling(self, wait: Callable[[float], object] = time.sleep) -> None:
        """Sample at fixed times, so that delays do not add up."""
        due_s = time.monotonic()
        while True:
            self._kept.append(self.sample())
            due_s += EVERY_S
            wait(max(0.0, due_s - time.monotonic()))

    def after(self, number: int) -> list[dict[str, Any]]:
        """Return all kept samples with numbers higher than `number`."""
        return [sample for sample in list(self._kept) if sample["number"] > number]

    def memory(self) -> dict[str, Any]:
        """Return the memory of each pod, by name."""
        found = {name: self._groups.memory(uid) for uid, name in self.pods().items()}
        return {name: memory for name, memory in found.items() if memory}

    def answer(self, request: str) -> object:
        """Return the answer to a request; None if it is unknown."""
        name, _, number = request.strip().partition(" ")
        if name == "clock":
            return time.time() * 1000
        if name == "after":
            return self.after(int(number))
        return {"sample": self.sample, "memory": self.memory}.get(name, lambda: None)()


def serve(sampler: Sampler, port: int = PORT) -> socketserver.ThreadingTCPServer:
    """Return a server that listens on this port of all addresses."""

    class Connection(socketserver.StreamRequestHandler):
        """A client's connection: each line from the client is answered by a line of JSON."""

        disable_nagle_algorithm = True

        def handle(self) -> None:
            """Answer until the client closes the connection."""
            for line in self.rfile:
                self.wfile.write(json.dumps(sampler.answer(line.decode())).encode() + b"\n")

    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer.daemon_threads = True
    return socketserver.ThreadingTCPServer(("", port), Connection)


def send(name: str, uids: list[str], groups: Groups) -> None:
    """Send a signal, such as `STOP`, to all processes of these pods."""
    for uid in uids:
        with contextlib.suppress(FileNotFoundError):  # the pod is gone
            for pid in itertools.chain.from_iterable(groups.processes(uid).values()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.Signals[f"SIG{name}"])


def _fields(file: Path) -> dict[str, int]:
    """Return name → integer, for the lines of a file that begin with both."""
    rows: Iterator[list[str]] = (line.split()[:2] for line in file.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}


def _volumes_in_memory(mountinfo: str) -> Iterator[str]:
    for line in mountinfo.splitlines():
        mount, _, file_system = line.partition(" - ")
        point, options = mount.split()[4:6]
        is_system = any(point.startswith(f"{each}/") or point == each for each in SYSTEM_FOLDERS)
        if file_system.startswith("tmpfs ") and "rw" in options.split(",") and not is_system:
            yield point


def _stat(file: str) -> list[bytes]:
    """Return the fields of `/proc/<pid>/stat` from the state on, and then the program's name;
    nothing if the process has ended."""
    try:
        with open(file, "rb") as content:  # noqa: PTH123  # Path would take 1.5 times as long
            before, _, fields = content.read().rpartition(b")")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [*fields.split(), before.partition(b"(")[2]]


def _try_s() -> float:
    began_ns = time.thread_time_ns()
    hashlib.blake2b(BLOCK).digest()
    return (time.thread_time_ns() - began_ns) / 1e9


def main() -> None:
    """Serve samples, or send a signal."""
    if len(sys.argv) > 1:
        send(sys.argv[1], sys.argv[2:], Groups())
        return
    # In a pod, the host name is the pod's name.
    names = os.environ["NAMESPACE"], os.environ["HOSTNAME"]
    sampler = Sampler(*names, Groups(), Noise())
    threading.Thread(target=sampler.keep_sampling, daemon=True).start()
    serve(sampler).serve_forever()


if __name__ == "__main__":
    main()

"""Compares the load generator with other producers: medians of interleaved rounds."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import clients

EPILOG = """\
environment:
  KAFKA_BOOTSTRAP   the broker to produce to (default: the benchmark starts a broker, and sets
                    all variables below)
  KAFKA_JARS        folder with Kafka's jars, for ProducerPerformance (required)
  LIBRDKAFKA        path of librdkafka.so.1 (default: the system's)
  PYPY              the load generator's Python (default: pypy3)
  CPYTHON           a Python with confluent-kafka (default: python3)

examples:
  bench/loadgen.sh
  KAFKA_BOOTSTRAP=127.0.0.1:9092 KAFKA_JARS=/opt/kafka/libs bench/loadgen.sh
  bench/loadgen.sh --json --rounds 3 --messages 2000000 > loadgen.json
  bench/loadgen.sh --only flat
  bench/loadgen.sh --only clients --events 5000 --purchases 50
  bench/loadgen.sh --brief

CPU time is that of the producer's processes, including start-up ("steady": without start-up). The
broker's CPU time is not included. All producers use acks=0, the same linger time and batch size,
and one topic of 6 partitions that is created for the run and deleted after it.

"clients" is measured only with --only clients or --brief: a complete load generator, with MySQL,
at constant rates, first alone and then with 150 misbehaving clients at its control port, for
--seconds each. If you set KAFKA_BOOTSTRAP, set LOADGEN_ENDPOINT=host:port too.
"""
PARTITIONS = 6
LINGER_MS, BATCH_BYTES = 5, 1_000_000
# A round runs each producer twice, first with only this share of the messages. The difference
# between the two runs is the cost of messages without start-up and compilation.
STARTUP_SHARE = 0.2
# A core or thread that is busy for this share of the time counts as full.
FULL = 0.95
PACED_RATES = (50, 5_000, 100_000)
# A run at a constant rate sends at least this many events, so that rounding to whole events is an
# error of well below 0.1 %.
PACED_EVENTS = 3_000
BRIEF_MESSAGES, BRIEF_S = 20_000, 1.0


@dataclass(frozen=True)
class Run:
    """Result of one run of a producer.

    `elapsed_s` is the time from the first message until the last has been sent. `cpu_s` is the CPU
    time of the whole run, `short_cpu_s` that of the run with STARTUP_SHARE of the messages.

    The other fields are for the load generator only and show its bottleneck. `busy_cores` is the
    mean number of busy cores of the machine in `elapsed_s`, `cores` the part used by the generator,
    and `busiest_thread_cores` the part used by its busiest thread.
    """

    messages: int
    elapsed_s: float
    cpu_s: float
    short_cpu_s: float = 0.0
    busy_cores: float | None = None
    cores: float | None = None
    busiest_thread_cores: float | None = None

    @property
    def cpu_s_per_million(self) -> float:
        return self.cpu_s / self.messages * 1e6

    @property
    def steady_cpu_s_per_million(self) -> float:
        """CPU seconds per million messages, from the difference between the two runs. So start-up
        and warm-up, which both runs have, do not count."""
        return (self.cpu_s - self.short_cpu_s) / (self.messages * (1 - STARTUP_SHARE)) * 1e6

    @property
    def messages_per_s(self) -> float:
        return self.messages / self.elapsed_s


class Bench:
    """Runs each producer against the broker."""

    def __init__(self, bootstrap: str, jars: Path, topic: str) -> None:
        self._bootstrap, self._jars, self._topic = bootstrap, jars, topic
        self._pypy = os.environ.get("PYPY", "pypy3")

    def loadgen(self, messages: int) -> Run:
        """Run one worker of the load generator."""
        found, _ = self._run([self._pypy, str(HERE / "worker_driver.py"), "flat", str(messages)])
        # The driver stands in for the generator's main process and reports its worker's CPU time.
        return Run(**json.loads(found))

    def producer_performance(self, messages: int) -> Run:
        """Run Kafka's own tool, with 100-byte records."""
        settings = f"bootstrap.servers={self._bootstrap} acks=0 linger.ms={LINGER_MS}"
        command = ["java", "-cp", f"{self._jars}/*", "org.apache.kafka.tools.ProducerPerformance"]
        command += ["--topic", self._topic, "--num-records", str(messages), "--record-size", "100"]
        command += ["--throughput", "-1", "--producer-props", *settings.split()]
        found, cpu_s = self._run([*command, f"batch.size={BATCH_BYTES}"])
        summary = re.findall(r"([\d.]+) records sent, ([\d.]+) records/sec", found)
        if not summary or int(summary[-1][0]) != messages:
            sys.exit(f"ProducerPerformance did not send {messages} records:\n{found}")
        return Run(messages, messages / float(summary[-1][1]), cpu_s)

    def confluent_kafka(self, messages: int) -> Run:
        """Run confluent-kafka's produce on CPython."""
        command = [sys.executable, str(HERE / "confluent_producer.py"), self._bootstrap]
        command += [self._topic, str(PARTITIONS), str(messages), str(LINGER_MS), str(BATCH_BYTES)]
        found, cpu_s = self._run(command)
        return Run(**json.loads(found), cpu_s=cpu_s)

    def paced(self, rate: int, seconds: float) -> dict[str, Any]:
        """Run the load generator at a constant rate."""
        command = [self._pypy, str(HERE / "worker_driver.py"), "paced", str(rate), str(seconds)]
        result: dict[str, Any] = json.loads(self._run(command)[0])
        return result

    def _run(self, command: list[str]) -> tuple[str, float]:
        """Run a command; return its output, and the CPU seconds that it and its children used."""
        env = {
            **os.environ,
            "KAFKA_BOOTSTRAP": self._bootstrap,
            "EVENTS_TOPIC": self._topic,
            "EVENTS_PARTITIONS": str(PARTITIONS),
            "LOADGEN_ACKS": "0",
            "LOADGEN_LINGER_MS": str(LINGER_MS),
            "LOADGEN_BATCH_BYTES": str(BATCH_BYTES),
        }
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaints:
            child = subprocess.Popen(command, env=env, stdout=printed, stderr=complaints)
            # wait4 returns the CPU time of this child alone.
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            printed.seek(0)
            complaints.seek(0)
            if child.returncode != 0:
                why = complaints.read().decode(errors="replace")[-2000:]
                sys.exit(f"{' '.join(command[:3])} … ended with {child.returncode}:\n{why}")
            return printed.read().decode(), usage.ru_utime + usage.ru_stime


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="bench/loadgen.sh",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--rounds", type=int, default=5, help="rounds flat out (default: 5)")
    parser.add_argument(
        "--messages", type=int, default=5_000_000, help="a run's messages (default: 5000000)"
    )
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="at each steady rate (default: 30)"
    )
    parser.add_argument(
        "--brief",
        action="store_true",
        help="run everything for about a second, to check that it runs; the figures mean little",
    )
    parser.add_argument("--only", choices=("flat", "paced", "clients"), help="one part")
    parser.add_argument("--events", type=int, default=5_000, help="a second, with clients")
    parser.add_argument("--purchases", type=int, default=50, help="a second, with clients")
    chosen = parser.parse_args()
    if chosen.brief:
        chosen.rounds, chosen.messages, chosen.seconds = 1, BRIEF_MESSAGES, BRIEF_S
    if chosen.rounds < 1 or chosen.messages < 1 or chosen.seconds <= 0:
        parser.error("--rounds, --messages and --seconds must be positive")
    return chosen


def checked_environment() -> tuple[str, Path]:
    """Return the broker and the folder of jars; exit with one line if something is missing."""
    bootstrap = os.environ.get("KAFKA_BOOTSTRAP")
    if not bootstrap:
        sys.exit("KAFKA_BOOTSTRAP is not set: host:port of a broker. See bench/loadgen.sh --help.")
    jars = Path(os.environ.get("KAFKA_JARS", ""))
    if not list(jars.glob("kafka-tools-*.jar")):
        sys.exit("KAFKA_JARS must be a folder with Kafka's jars, kafka-tools among them.")
    for program in ("java", os.environ.get("PYPY", "pypy3")):
        if not shutil.which(program):
            sys.exit(f"{program} was not found. Install it, or set PYPY to the generator's PyPy.")
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        sys.exit(f"{sys.executable} has no confluent-kafka. Set CPYTHON to a Python that has it.")
    return bootstrap, jars


def flat_out(bench: Bench, rounds: int, messages: int) -> dict[str, Any]:
    """Run every producer in each round, so that changes of the machine's speed affect all alike."""
    producers = {
        "loadgen": bench.loadgen,
        "ProducerPerformance": bench.producer_performance,
        "confluent-kafka": bench.confluent_kafka,
    }
    runs: dict[str, list[Run]] = {name: [] for name in producers}
    for number in range(rounds):
        for name, produce in producers.items():
            short = produce(int(messages * STARTUP_SHARE))
            run = replace(produce(messages), short_cpu_s=short.cpu_s)
            runs[name].append(run)
            said = f"{run.cpu_s_per_million:.2f} CPU-s per million, "
            said += f"{run.steady_cpu_s_per_million:.2f} steady, {run.messages_per_s:,.0f}/s"
            print(f"round {number + 1}/{rounds} {name}: {said}", file=sys.stderr)
    medians: dict[str, dict[str, Any]] = {
        name: {
            "cpu_s_per_million": statistics.median(run.cpu_s_per_million for run in of_one),
            "steady_cpu_s_per_million": statistics.median(
                run.steady_cpu_s_per_million for run in of_one
            ),
            "messages_per_s": statistics.median(run.messages_per_s for run in of_one),
            "runs": [asdict(run) for run in of_one],
        }
        for name, of_one in runs.items()
    }
    ours = medians["loadgen"]
    for one in medians.values():
        for kind in ("cpu_s_per_million", "steady_cpu_s_per_million"):
            one[f"loadgen_{kind}_ratio"] = ours[kind] / one[kind]
    return medians


def make_topic(bootstrap: str) -> str:
    """Create a topic for this run; return its name."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    name = f"bench-loadgen-{os.getpid()}"
    # Delete old segments early: a run writes gigabytes.
    limits = {"retention.bytes": "100000000", "segment.bytes": "50000000"}
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, PARTITIONS, config=limits)])[name].result(30)
    return name


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete the topic."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.delete_topics([name])[name].result(30)


def show(results: dict[str, Any]) -> None:
    """Print the results as tables."""
    if "flat_out" in results:
        shown = f"{results['messages']:,} messages, median of {results['rounds']} rounds"
        print(f"Flat out ({shown})")
        columns = f"{'loadgen is':>12}{'steady':>9}{'loadgen is':>12}{'messages/s':>13}"
        print(f"  {'':21}{'CPU-s per million':>18}{columns}")
        for name, one in results["flat_out"].items():
            row = f"{one['cpu_s_per_million']:>18.2f}{_ratio(one, 'cpu_s_per_million'):>12}"
            row += f"{one['steady_cpu_s_per_million']:>9.2f}"
            row += f"{_ratio(one, 'steady_cpu_s_per_million'):>12}"
            print(f"  {name:21}{row}{one['messages_per_s']:>13,.0f}")
        for run in results["flat_out"]["loadgen"]["runs"]:
            print(f"  {stopped_by(run)}")
    if "paced" in results:
        print("Paced")
        columns = f"{'rate error':>12}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'CPU of a core':>15}"
        print(f"  {'offered/s':>10}{columns}")
        for one in results["paced"]:
            late = one["lateness_ms"]
            row = f"{one['rate_error_pct']:>11.4f}%{late['p50']:>9.2f}{late['p99']:>9.2f}"
            row += f"{late['max']:>9.2f}{one['cpu_pct_of_a_core']:>14.1f}%"
            print(f"  {one['rate']:>10,}{row}")
    if "clients" in results:
        show_clients(results["clients"])


def show_clients(results: list[dict[str, Any]]) -> None:
    """Print the results of `clients.measure` as a table."""
    print("Lateness with clients at the control port (ms)")
    print(f"  {'clients':36}{'of':10}{'p50':>9}{'p99':>9}{'worst p99':>11}{'max':>9}")
    for one in results:
        for kind, late in one["lateness_ms"].items():
            row = "".join(f"{late[q]:>{w}.2f}" for q, w in _CLIENT_COLUMNS)
            print(f"  {one['clients']:36}{kind:10}{row}")
        answers = one["answers_ms"]
        print(f"  {'':36}{'answers':10}{answers['p50']:>9.2f}{'':20}{answers['max']:>9.2f}")


_CLIENT_COLUMNS = (("p50", 9), ("p99", 9), ("worst_p99", 11), ("max", 9))


def stopped_by(run: dict[str, Any]) -> str:
    """Describe the bottleneck of a run of the load generator."""
    of = os.cpu_count() or 1
    if run["busy_cores"] >= FULL * of:
        why = "all cores were full"
    elif run["busiest_thread_cores"] >= FULL:
        why = "one of its threads was full"
    else:
        why = "nothing was full"
    rate = run["messages"] / run["elapsed_s"]
    return (
        f"loadgen at {rate:,.0f}/s: {why} ({run['cores']:.2f} cores, its busiest thread"
        f" {run['busiest_thread_cores']:.2f}; {run['busy_cores']:.2f} of {of} busy in all)"
    )


def _ratio(one: dict[str, Any], kind: str) -> str:
    return f"{one[f'loadgen_{kind}_ratio']:.2f} x"


def main() -> None:
    """Run the command line."""
    chosen = arguments()
    results = {} if chosen.only == "clients" else compared(chosen)
    if chosen.only == "clients" or (chosen.brief and not chosen.only):
        window_s = BRIEF_S if chosen.brief else clients.WINDOW_S
        results["clients"] = clients.measure(
            chosen.events, chosen.purchases, chosen.seconds, window_s
        )
    if chosen.json:
        print(json.dumps(results, indent=2))
    else:
        show(results)


def compared(chosen: argparse.Namespace) -> dict[str, Any]:
    """Measure the producers flat out, and the load generator at constant rates."""
    bootstrap, jars = checked_environment()
    results: dict[str, Any] = {
        "messages": chosen.messages,
        "rounds": chosen.rounds,
        "cores": os.cpu_count(),
        "load_average_before": os.getloadavg()[0],
    }
    topic = make_topic(bootstrap)
    try:
        bench = Bench(bootstrap, jars, topic)
        if chosen.only != "paced":
            results["flat_out"] = flat_out(bench, chosen.rounds, chosen.messages)
        if chosen.only != "flat":
            events = 0 if chosen.brief else PACED_EVENTS
            results["paced"] = [
                bench.paced(rate, max(chosen.seconds, events / rate)) for rate in PACED_RATES
            ]
    finally:
        delete_topic(bootstrap, topic)
    return results


if __name__ == "__main__":
    main()

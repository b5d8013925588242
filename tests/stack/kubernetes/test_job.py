"""Tests of the harness's Job on a simulated cluster, whose pod is a folder of this machine."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from racetrack.config import REPO, load
from racetrack.errors import RacetrackError
from racetrack.stack.kubernetes import job_orphans, own_files
from racetrack.stack.kubernetes.job import MANIFESTS, HarnessJob, JobLost, unpack
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl
from tests.secured_kafka import client_properties
from tests.stack.kubernetes.test_stack import KUBECTL, Cluster
from tests.waiting import wait_until

# Part of the simulated `kubectl`: it runs the pod's commands on this machine, with the pod's
# folders below `pod`; `logs` prints the file `output`.
IN_FOLDERS = """
if sys.argv[3] == "exec":
    import os, re
    words = sys.argv[sys.argv.index("--") + 1:]
    pod = re.compile("/(app|tmp)/(?=logs|harness)")
    os.execvp("sh", [pod.sub(f"{here}/pod/", word) for word in words])
if sys.argv[3] == "logs":
    print((here / "output").read_text(), end="")
    sys.exit()
if sys.argv[3] == "apply":
    (here / "applied").open("a").write(sys.stdin.read() + "\\n")
    sys.exit()
"""
RUNNING: dict[str, Any] = {"running": {}}


class JobCluster(Cluster):
    """A simulated cluster with the pod of the harness's Job."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.logs = folder / "pod" / "logs"
        self.logs.mkdir(parents=True)
        self.pid = folder / "pod" / "harness.pid"
        self._output = folder / "output"
        self._output.write_text("")
        program = KUBECTL.replace("answers = json", f"{IN_FOLDERS}answers = json")
        (folder / "kubectl").write_text(program)
        self.says("delete", "")
        self.has("namespaces")
        self.says("create", {"kind": "List", "items": manifest()})
        self.harness_is(RUNNING)

    def harness_is(self, state: dict[str, Any], **metadata: str) -> None:
        states = {"files": RUNNING, "harness": state}
        containers = [
            {"name": name, "image": "harness:1", "state": of} for name, of in states.items()
        ]
        self.has(
            "pods",
            {
                "metadata": {"name": "harness-x", **metadata},
                "spec": {"nodeName": "one"},
                "status": {"phase": "Running", "containerStatuses": containers},
            },
        )

    def wait_for(self, command: str) -> None:
        log = self._folder / "commands"
        wait_until(lambda: log.exists() and command in log.read_text(), command)

    def prints(self, text: str) -> None:
        self._output.write_text(text)

    def applied(self) -> list[dict[str, Any]]:
        lines = (self._folder / "applied").read_text().splitlines()
        return [each for line in lines for each in json.loads(line)["items"]]


def manifest() -> list[dict[str, Any]]:
    """Return the relevant parts of the Job and its rights."""
    containers = [{"name": name, "image": "harness:1"} for name in ("harness", "files")]
    return [
        {"kind": "ClusterRole", "metadata": {"name": "racetrack-job"}, "rules": ["racetrack"]},
        {"kind": "Job", "spec": {"template": {"spec": {"containers": containers}}}},
    ]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobCluster]:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield JobCluster(tmp_path)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def job(cluster: JobCluster, tmp_path: Path, said: list[str]) -> Iterator[HarnessJob]:
    settings = {
        "RUNTIME": "kubernetes",
        "STACK_NAME": "mine",
        "KUBERNETES_REGISTRY": "r.example/",
        "LOGS_FOLDER": str(tmp_path / "logs"),
    }
    made = HarnessJob(load(settings), said.append)
    yield made
    made.remove()


def started(job: HarnessJob) -> HarnessJob:
    job.start(["run", "pg", "--rate", "2k"], {"ENGINE_REPLICAS": "2"})
    return job


def test_the_job_gets_arguments_settings_and_rights_on_one_namespace(
    job: HarnessJob, cluster: JobCluster
) -> None:
    started(job)
    namespace, environment, env_file, role, made = cluster.applied()
    assert namespace["metadata"]["name"] == "mine-job"
    assert environment["stringData"] == {"ENGINE_REPLICAS": "2"}
    assert "RUNTIME=auto" in env_file["stringData"][".env"]
    assert (role["metadata"]["name"], role["rules"]) == ("mine-job", ["mine"])
    harness, files = made["spec"]["template"]["spec"]["containers"]
    assert harness["args"] == ["run", "pg", "--rate", "2k"]
    assert "args" not in files
    assert harness["image"] == "r.example/harness:1"


def test_the_job_has_certificates(cluster: JobCluster, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("of the CA")
    kafka = {"KAFKA_BOOTSTRAP_SERVERS": "main:9093", "KAFKA_TOPIC_PREFIX": "racetrack-1."}
    file = client_properties(
        tmp_path / "p", {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
    )
    given = {"KAFKA_CLIENT_PROPERTIES": file}
    settings = load({"RUNTIME": "kubernetes", "STACK_NAME": "mine", **kafka, **given})
    job = HarnessJob(settings, print)
    started(job)
    *_, files, _, made = cluster.applied()
    assert files["stringData"]["ssl.ca.location"] == "of the CA"
    harness, _ = made["spec"]["template"]["spec"]["containers"]
    assert harness["volumeMounts"][-1]["mountPath"] == own_files.FOLDER
    job.remove()


def test_a_pod_that_can_t_start_is_explained(job: HarnessJob, cluster: JobCluster) -> None:
    cluster.harness_is({"waiting": {"reason": "ErrImagePull", "message": "no such image"}})
    with pytest.raises(RacetrackError, match="did not start: ErrImagePull: no such image"):
        started(job)


def test_it_is_followed_to_its_end(
    job: HarnessJob, cluster: JobCluster, said: list[str], tmp_path: Path
) -> None:
    started(job)
    cluster.prints("settling\nverified\n")
    (cluster.logs / "run").mkdir()
    (cluster.logs / "run" / "run.json").write_text("{}")
    cluster.harness_is({"terminated": {"exitCode": 6}})
    assert job.follow() == 6
    assert "settling\nverified" in said
    assert (tmp_path / "logs/run/run.json").read_text() == "{}"


def test_a_file_that_grew_is_copied_again_and_others_once(
    job: HarnessJob, cluster: JobCluster, tmp_path: Path
) -> None:
    started(job)
    (cluster.logs / "curves.csv").write_text("1\n")
    (cluster.logs / "temporary").write_text("x")
    (cluster.logs / "old").write_text("1")
    os.utime(cluster.logs / "old", (1e9, 1e9))
    job.copy()
    assert (tmp_path / "logs/temporary").exists()
    (tmp_path / "logs/old").unlink()
    job.copy()
    assert not (tmp_path / "logs/old").exists()
    (cluster.logs / "temporary").unlink()
    with (cluster.logs / "curves.csv").open("a") as file:
        file.write("2\n")
    job.copy_rest()
    assert (tmp_path / "logs/curves.csv").read_text() == "1\n2\n"
    assert (tmp_path / "logs/old").exists()  # at the end, what a copy has missed is found
    assert not (tmp_path / "logs/temporary").exists()


def test_a_pod_that_is_deleted_is_lost(job: HarnessJob, cluster: JobCluster) -> None:
    started(job)
    cluster.harness_is(RUNNING, deletionTimestamp="2026-01-01T00:00:00Z")
    with pytest.raises(JobLost, match=r"harness-x was deleted.* copied is in .*/logs"):
        job.follow()
    cluster.has("pods")
    with pytest.raises(JobLost):
        job.follow()


def test_the_pod_knows_the_harness_s_process_id(tmp_path: Path) -> None:
    documents = yaml.safe_load_all((MANIFESTS / "full" / "job.yaml").read_text())
    (pod,) = (each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Job")
    first_line = pod["containers"][0]["command"][2].splitlines()[0]
    pid = tmp_path / "pid"
    # In commands, Kubernetes replaces `$$` by `$`.
    as_run = first_line.replace("$$", "$").replace("/tmp/harness.pid", str(pid))
    with subprocess.Popen(["sh", "-c", as_run]) as shell:
        assert shell.wait() == 0
    assert int(pid.read_text()) == shell.pid


def test_a_signal_is_handed_on(job: HarnessJob, cluster: JobCluster) -> None:
    started(job)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as harness:
        cluster.pid.write_text(str(harness.pid))
        job.interrupt("TERM")
    assert harness.returncode == -signal.SIGTERM


def test_a_harness_that_does_not_end_in_time(job: HarnessJob) -> None:
    started(job)
    with pytest.raises(ClusterFailed, match="has not ended within 0 s"):
        job.follow(within_s=1e-9)


def test_the_watchdog_of_a_killed_command_removes_the_job_before_the_stack(
    cluster: JobCluster,
) -> None:
    cluster.has("namespaces", {"metadata": {"name": "any"}})
    watchdog = [sys.executable, "-m", "racetrack.stack.watchdog_process", "kubernetes-job", "mine"]
    with subprocess.Popen(watchdog, stdin=subprocess.PIPE, cwd=REPO) as process:
        assert process.stdin
        process.stdin.close()
        cluster.wait_for("delete namespace mine ")
        process.kill()
    deleted = [line.split()[1:3] for line in cluster.commands() if line.startswith("delete")]
    rights = ["clusterrole,clusterrolebinding", "mine-job"]
    assert deleted[:3] == [["namespace", "mine-job"], rights, ["namespace", "mine"]]


def archive(make: Callable[[tarfile.TarFile], None]) -> io.BytesIO:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as opened:
        make(opened)
    return content


def test_half_an_archive_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(1 << 20))
    whole = archive(lambda opened: opened.add(tmp_path / "big", "big")).getvalue()
    with (tmp_path / "half").open("w+b") as half:
        half.write(whole[: len(whole) // 2])
        with pytest.raises(ClusterFailed, match="not whole"):
            unpack(half, tmp_path / "logs")
    assert not (tmp_path / "logs").exists()


def test_the_manifests_have_the_names_that_are_replaced() -> None:
    text = (MANIFESTS / "full" / "job.yaml").read_text()
    assert "resourceNames: [racetrack]" in text
    assert text.count("racetrack-job") == 4
    assert Kubectl(job_orphans.stack_name_of_job("racetrack")).namespace == "racetrack-job"

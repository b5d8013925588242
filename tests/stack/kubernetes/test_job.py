"""Tests of the harness's Job on a simulated cluster, whose pod is a folder of this machine."""

import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from racetrack.config import REPO, load
from racetrack.stack.kubernetes import job_orphans
from racetrack.stack.kubernetes.job import MANIFESTS, HarnessJob, JobLost, unpack
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl
from tests.stack.kubernetes.cluster import KUBECTL, RUNNING, Cluster, pod
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
"""


class JobCluster(Cluster):
    """A simulated cluster with the pod of the harness's Job."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, KUBECTL.replace("answers = json", f"{IN_FOLDERS}answers = json"))
        self.said: list[str] = []
        self.logs = folder / "pod" / "logs"
        self.logs.mkdir(parents=True)
        self.pid = folder / "pod" / "harness.pid"
        self._output = folder / "output"
        self._output.write_text("")
        self.says("delete", "")
        self.says("apply", "")
        containers = [{"name": name, "image": "harness:1"} for name in ("harness", "files")]
        role = {
            "kind": "ClusterRole",
            "metadata": {"name": "racetrack-job"},
            "rules": ["racetrack"],
        }
        made = {"kind": "Job", "spec": {"template": {"spec": {"containers": containers}}}}
        self.renders(role, made)
        self.harness_is(RUNNING)

    def harness_is(self, state: dict[str, Any], **metadata: str) -> None:
        states = {"files": RUNNING, "harness": state}
        containers = [
            {"name": name, "image": "harness:1", "state": of} for name, of in states.items()
        ]
        harness = pod("harness-x", containerStatuses=containers)
        harness["metadata"] |= metadata
        self.has("pods", harness)

    def prints(self, text: str) -> None:
        self._output.write_text(text)


@pytest.fixture
def cluster(kubectl_folder: Path) -> JobCluster:
    return JobCluster(kubectl_folder)


@pytest.fixture
def job(cluster: JobCluster, tmp_path: Path) -> Iterator[HarnessJob]:
    settings = {"RUNTIME": "kubernetes", "STACK_NAME": "mine", "KUBERNETES_REGISTRY": "r.example/"}
    settings["LOGS_FOLDER"] = str(tmp_path / "logs")
    made = HarnessJob(load(settings), cluster.said.append)
    yield made
    made.remove()


@pytest.fixture
def started(job: HarnessJob) -> HarnessJob:
    job.start(["run", "pg", "--rate", "2k"], {"ENGINE_REPLICAS": "2"})
    return job


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_the_job_gets_arguments_settings_and_rights_on_one_namespace(cluster: JobCluster) -> None:
    namespace, environment, env_file, role, made = cluster.applied()
    assert namespace["metadata"]["name"] == "mine-job"
    assert environment["stringData"] == {"ENGINE_REPLICAS": "2"}
    assert "RUNTIME=auto" in env_file["stringData"][".env"]
    assert (role["metadata"]["name"], role["rules"]) == ("mine-job", ["mine"])
    harness, files = made["spec"]["template"]["spec"]["containers"]
    assert harness["args"] == ["run", "pg", "--rate", "2k"]
    assert "args" not in files
    assert harness["image"] == "r.example/harness:1"


@pytest.mark.slow
def test_it_is_followed_to_its_end(
    started: HarnessJob, cluster: JobCluster, tmp_path: Path
) -> None:
    cluster.prints("settling\nverified\n")
    (cluster.logs / "run").mkdir()
    (cluster.logs / "run" / "run.json").write_text("{}")
    cluster.harness_is({"terminated": {"exitCode": 6}})
    assert started.follow() == 6
    assert "settling\nverified" in cluster.said
    assert (tmp_path / "logs/run/run.json").read_text() == "{}"


@pytest.mark.slow
def test_a_file_that_grew_is_copied_again_and_others_once(
    started: HarnessJob, cluster: JobCluster, tmp_path: Path
) -> None:
    (cluster.logs / "curves.csv").write_text("1\n")
    (cluster.logs / "temporary").write_text("x")
    (cluster.logs / "old").write_text("1")
    os.utime(cluster.logs / "old", (1e9, 1e9))
    started.copy()
    assert (tmp_path / "logs/temporary").exists()
    (tmp_path / "logs/old").unlink()
    started.copy()
    assert not (tmp_path / "logs/old").exists()
    (cluster.logs / "temporary").unlink()
    with (cluster.logs / "curves.csv").open("a") as file:
        file.write("2\n")
    started.copy_rest()
    assert (tmp_path / "logs/curves.csv").read_text() == "1\n2\n"
    assert (tmp_path / "logs/old").exists()  # at the end, what a copy has missed is found
    assert not (tmp_path / "logs/temporary").exists()


@pytest.mark.slow
def test_a_pod_that_is_deleted_is_lost(started: HarnessJob, cluster: JobCluster) -> None:
    cluster.harness_is(RUNNING, deletionTimestamp="2026-01-01T00:00:00Z")
    with pytest.raises(JobLost, match=r"harness-x was deleted.* copied is in .*/logs"):
        started.follow()
    cluster.has("pods")
    with pytest.raises(JobLost):
        started.follow()


def test_the_manifests_have_the_names_that_are_replaced_and_the_harness_s_process_id(
    tmp_path: Path,
) -> None:
    text = (MANIFESTS / "full" / "job.yaml").read_text()
    assert "resourceNames: [racetrack]" in text
    assert text.count("racetrack-job") == 4
    assert Kubectl(job_orphans.stack_name_of_job("racetrack")).namespace == "racetrack-job"
    documents = yaml.safe_load_all(text)
    (pod,) = (each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Job")
    first_line = pod["containers"][0]["command"][2].splitlines()[0]
    # In commands, Kubernetes replaces `$$` by `$`.
    as_run = first_line.replace("$$", "$").replace("/tmp/harness.pid", str(tmp_path / "pid"))
    with subprocess.Popen(["sh", "-c", as_run]) as shell:
        assert shell.wait() == 0
    assert int((tmp_path / "pid").read_text()) == shell.pid


@pytest.mark.slow
def test_a_signal_is_handed_on(started: HarnessJob, cluster: JobCluster) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as harness:
        cluster.pid.write_text(str(harness.pid))
        started.interrupt("TERM")
    assert harness.returncode == -signal.SIGTERM


@pytest.mark.slow
def test_the_watchdog_of_a_killed_command_removes_the_job_before_the_stack(
    cluster: JobCluster, tmp_path: Path
) -> None:
    cluster.has("namespaces", {"metadata": {"name": "any"}})
    watchdog = [sys.executable, "-m", "racetrack.stack.watchdog_process", "kubernetes-job", "mine"]
    with subprocess.Popen(watchdog, stdin=subprocess.PIPE, cwd=REPO) as process:
        assert process.stdin
        process.stdin.close()
        log = tmp_path / "commands"
        wait_until(lambda: log.exists() and "delete namespace mine " in log.read_text(), "removal")
        process.kill()
    deleted = [line.split()[1:3] for line in cluster.commands() if line.startswith("delete")]
    rights = ["clusterrole,clusterrolebinding", "mine-job"]
    assert deleted[:3] == [["namespace", "mine-job"], rights, ["namespace", "mine"]]


def test_half_an_archive_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(1 << 20))
    with tarfile.open(tmp_path / "half", "w") as whole:
        whole.add(tmp_path / "big", "big")
    os.truncate(tmp_path / "half", 1 << 19)
    with (tmp_path / "half").open("rb") as half, pytest.raises(ClusterFailed, match="not whole"):
        unpack(half, tmp_path / "logs")
    assert not (tmp_path / "logs").exists()

"""The programs of the test cluster (rig.sh), compiled: Kubernetes, etcd and CoreDNS.

    python3 -m tests.kubernetes.programs    # compile them if needed; print their folder

They are kept in the cache folder. Compiling takes about 15 minutes of CPU time.
"""

import os
import sys
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install.ensure import ensure_recipes
from racetrack.install.recipe import Recipe, Site

KUBERNETES = "1.34.4"
SOURCES = Path(__file__).parent
# Folder of a Go module → the program that is compiled from it.
PROGRAMS = {"components": "kubernetes", "dns": "coredns", "pod": "pod"}
# The program `kubernetes` contains all of these; the name by which it is started selects one.
COMPONENTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
MAJOR, MINOR, _ = KUBERNETES.split(".")
VERSION = "k8s.io/component-base/version.git"
LINKING = (
    f"-s -w -X {VERSION}Version=v{KUBERNETES} -X {VERSION}Major={MAJOR} -X {VERSION}Minor={MINOR}"
)


def kubernetes() -> Recipe:
    """Return the recipe that compiles the programs into the folder `bin`."""
    files = [SOURCES / module / name for module in PROGRAMS for name in ("go.mod", "main.go")]
    sums = [SOURCES / module / "go.sum" for module in PROGRAMS]
    return Recipe(
        part="kubernetes",
        label=KUBERNETES,
        why="Kubernetes, etcd and CoreDNS for a test cluster (Go modules, compiled)",
        download_mb=150,
        needs=("go",),
        content=tuple(file.read_bytes() for file in (*files, *sums) if file.exists()),
        build=_build,
    )


def _build(site: Site) -> str:
    programs = site.folder / "bin"
    programs.mkdir()
    for module, program in PROGRAMS.items():
        site.run(
            "go",
            "build",
            "-ldflags",
            LINKING,
            "-o",
            programs / program,
            ".",
            cwd=SOURCES / module,
            env={"CGO_ENABLED": "0", "GOFLAGS": _flags()},
            doing=f"compiling {program}",
        )
    for component in COMPONENTS:
        (programs / component).symlink_to("kubernetes")
    said = site.run(programs / "kubectl", "version", "--client", doing="starting kubectl")
    if f"v{KUBERNETES}" not in said:
        raise SetupError(f"kubernetes: kubectl reports another version than {KUBERNETES}: {said}")
    return KUBERNETES


def _flags() -> str:
    """Return the user's Go flags, and flags that make the compiled programs the same on every
    machine."""
    return " ".join((os.environ.get("GOFLAGS", ""), "-trimpath", "-buildvcs=false")).strip()


def main() -> int:
    """Print the folder of the programs; return the exit code."""
    try:
        folder = ensure_recipes([kubernetes()], _say)["kubernetes"]
    except SetupError as error:
        _say(str(error))
        return error.exit_code
    print(folder / "bin")
    return 0


def _say(line: str) -> None:
    print(f"[set-up] {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""`./race check`, `calibrate`, `images` and `completion`: what a user sets up or checks once."""

import os
import sys
from pathlib import Path

import click

from racetrack.cli.compare import MakeRuns, carry_out
from racetrack.cli.outputs import Gate, Output, output_options
from racetrack.cli.parameters import Command, OneOf, guarded, load_settings, resume_option
from racetrack.cli.plans import resolved

# Each script calls the command as it was typed, so each clone of the repository completes its own
# engines.
SCRIPTS = {
    "bash": """\
_racetrack_complete() {
    local IFS=$'\\n' line
    COMPREPLY=()
    for line in $(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD \\
        _RACE_COMPLETE=bash_complete "$1" 2>/dev/null); do
        case $line in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            plain,*) COMPREPLY+=("${line#plain,}") ;;
        esac
    done
}
complete -F _racetrack_complete race run_experiment.sh
""",
    "zsh": """\
#compdef race run_experiment.sh
_racetrack_complete() {
    local -a plain
    local type key text
    for type key text in "${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \\
        _RACE_COMPLETE=zsh_complete ${(Q)words[1]} 2>/dev/null)}"; do
        case $type in
            dir) _path_files -/ ;;
            file) _path_files ;;
            plain) plain+=("$key") ;;
        esac
    done
    (($#plain)) && compadd -a plain
}
compdef _racetrack_complete race run_experiment.sh
""",
    "fish": """\
function _racetrack_complete
    set -l words (commandline -opc)
    for line in (env COMP_WORDS=(commandline -cp | string collect) COMP_CWORD=(commandline -t) \\
            _RACE_COMPLETE=fish_complete $words[1] 2>/dev/null)
        set -l parts (string split -m 1 , $line)
        switch $parts[1]
            case dir
                __fish_complete_directories (commandline -t)
            case file
                __fish_complete_path (commandline -t)
            case plain
                echo $parts[2]
        end
    end
end
complete --no-files --command race --arguments "(_racetrack_complete)"
complete --no-files --command run_experiment.sh --arguments "(_racetrack_complete)"
""",
}


@click.command(cls=Command)
def check() -> None:
    """Check that runs can use the services that run elsewhere, in at most ten seconds each.

    These are the services for which the settings contain an address (docs/own-parts.md). A run
    makes the same check before it starts anything. The check removes what it creates.

    \b
    Examples:
        ./race check
        POSTGRES_URL=postgres://me@db.example/race ./race check
    """
    from racetrack.errors import UsageError
    from racetrack.stack import provided
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        settings = load_settings()
        if not (used := provided.configured(settings)):
            names = ", ".join(service.setting for service in provided.every())
            raise UsageError(
                "There is nothing to check: runs start all services themselves. Set one of these"
                f" for a service that runs elsewhere (docs/own-parts.md): {names}."
            )
        for service in used:
            passed = service.check(settings)
            screen.say(f"{service.title} at {service.address(settings)}:")
            for operation in passed.operations:
                screen.say(f"  can {operation}")
            if passed.clock:
                screen.say(f"  {passed.clock}")


@click.command(cls=Command)
@resume_option("runs of a calibration that was interrupted")
@output_options
def calibrate(resume: Path | None, output: Output, make_runs: MakeRuns | None = None) -> None:
    """Check how accurate the harness is on this machine.

    The harness measures an engine with a known delay, stall and capacity like any other engine, and
    compares the results with the known values. Each row of the table has a run folder in logs/. The
    exit code is 1 if a result is outside its tolerance. The runs are those of the plan `calibrate`
    (docs/plans.md).

    \b
    Examples:
        ./race calibrate
        ./race calibrate --json calibration.json
        ./race calibrate --resume logs/2026.11.26.05.10.00_UTC_calibrate
    """
    from racetrack import host
    from racetrack.clock import utc_now
    from racetrack.plan.resolve import Options
    from racetrack.report.render import OF_FINDINGS, Document, finding_record
    from racetrack.run import calibration

    screen, load_before = output.screen(), os.getloadavg()[0]
    with guarded(screen) as guard:
        load_settings()
        planned = None if resume else resolved(calibration.PLAN, Options(seed=0))
        make_runs = make_runs or carry_out
        plan = calibration.PLAN
        folder, record = make_runs(planned, resume, output, Gate(), guard, wanted=plan, quiet=True)
        findings, machine = calibration.findings(folder, record), str(host.describe())
        screen.say(calibration.table(findings))
        screen.say(
            f"{utc_now()}, {machine}, load average {load_before:.1f} before; took"
            f" {record.minutes:.1f} minutes"
        )
        if not all(finding.within for finding in findings):
            screen.say(
                "Measurements on this machine are not accurate. If other programs are running, stop"
                " them and try again. The run folders above contain the raw data."
            )
        records = [finding_record(finding, machine) for finding in findings]
        output.write(Document("calibration", records, columns=OF_FINDINGS))
    sys.exit(0 if findings and all(finding.within for finding in findings) else 1)


@click.command(cls=Command)
@click.option("--push", is_flag=True, help="Push them to the registry KUBERNETES_REGISTRY.")
def images(push: bool) -> None:
    """Build images for Kubernetes, and for machines that can't pull images (AIRGAP=true).

    Everything comes from package registries. Apache Kafka takes Redpanda's place; engines that are
    only available as an image are left out. The command builds images that are missing or whose
    sources have changed. It needs root.

    \b
    Examples:
        ./race images && AIRGAP=true ./run_experiment.sh dh 1000 10 10 1.0
        KUBERNETES_REGISTRY=registry.example.com/ ./race images --push
    """
    from racetrack.images import RUN, build
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        settings = load_settings()
        registry = build.require_registry(settings) if push else ""
        build.build(settings, screen.say)
        if registry:
            build.push(registry, RUN, screen.say)


@click.command(cls=Command)
@click.argument("shell", metavar="SHELL", type=OneOf(SCRIPTS))
def completion(shell: str) -> None:
    """Print a script that makes a shell (bash, zsh or fish) complete commands, options and engines.

    \b
    Examples:
        eval "$(./race completion bash)"    in ~/.bashrc write the full path of race
        eval "$(./race completion zsh)"     after compinit
        ./race completion fish | source
    """
    click.echo(SCRIPTS[shell], nl=False)

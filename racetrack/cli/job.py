"""Commands that measure: with KUBERNETES_JOB=true they run as a Job on a node of the cluster."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from racetrack import plugins
from racetrack.cli.outputs import STDOUT, OutputFile
from racetrack.cli.parameters import Command, errors_to_exit_codes, guarded, load_settings
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.config import Settings
    from racetrack.stack.kubernetes.job import HarnessJob
    from racetrack.terminal import Guard, Interrupted, Screen

WORDS = "racetrack.words"  # key of the arguments as given
# Where the Job writes the files of --json and the like, which are copied with the logs.
OUTPUT_FOLDER = "logs"
ON_THIS_MACHINE = (
    "{}: a Job can't read files of this machine. Set KUBERNETES_JOB=false to run the command here."
)


class MeasuringCommand(Command):
    """A command that KUBERNETES_JOB=true runs as a Job, with the same arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them for a Job."""
        ctx.meta[WORDS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command here or as a Job."""
        from racetrack import config

        with errors_to_exit_codes():
            settings = config.load()
        if settings.kubernetes_job:
            sys.exit(run_as_job(ctx, settings))
        return super().invoke(ctx)


def run_as_job(context: click.Context, settings: "Settings") -> int:
    """Run a parsed command as a Job; return the exit code of the harness."""
    from racetrack.cli import POSITIONAL_FORM
    from racetrack.cli.plans import for_job
    from racetrack.images import checkout
    from racetrack.stack.kubernetes import own_files
    from racetrack.stack.kubernetes.job import HarnessJob
    from racetrack.stack.lifetime import Watchdog, require_not_running
    from racetrack.stack.runtime import running_stack
    from racetrack.terminal import Screen, patient_console

    require_no_inputs(context)
    words, files = with_outputs_among_logs(context)
    name = context.info_name if context.parent else POSITIONAL_FORM
    screen = Screen(patient_console(sys.stderr) if STDOUT in files.values() else None)
    with guarded(screen) as guard:
        load_settings()  # for its warnings
        with machine_lock():
            up = running_stack(settings)
            require_not_running(up and up[1])
            watchdog = Watchdog("kubernetes-job", settings.stack_name)
            watchdog.begin(None, screen.say)
            job = HarnessJob(settings, screen.say)
            try:
                environment = {
                    **given_settings(os.environ),
                    **own_files.environment(settings),
                    **for_job(context.params.get("plan")),
                    "CHECKOUT": checkout.digest(),
                }
                code = carried_out(job, [str(name), *words], environment, screen, guard)
            finally:
                watchdog.dismiss()
    deliver(files, settings.logs_folder)
    return code


def carried_out(
    job: "HarnessJob",
    words: Sequence[str],
    environment: Mapping[str, str],
    screen: "Screen",
    guard: "Guard",
) -> int:
    """Create a Job, follow it to its end, and remove it; return its exit code. A signal is handed
    on, and the harness cleans up.

    Raises:
        RacetrackError: the Job did not start, or its pod is lost.
    """
    from racetrack.stack.kubernetes.job import JobLost
    from racetrack.stack.kubernetes.kubectl import ClusterFailed
    from racetrack.terminal import Interrupted

    try:
        job.start(words, environment)
        try:
            code = job.follow()
        except Interrupted as interrupted:
            guard.disarm()
            code = ended_by(job, interrupted, screen)
        guard.disarm()
        job.copy_rest()
        return code
    except JobLost:
        with suppress(ClusterFailed):  # it may still be cleaning up
            job.copy()
        raise
    finally:
        guard.disarm()
        job.remove()


def ended_by(job: "HarnessJob", interrupted: "Interrupted", screen: "Screen") -> int:
    """Hand a signal on to the harness, and wait until it has cleaned up; return its exit code."""
    import signal

    from racetrack.stack.kubernetes.job import CLEANS_UP_WITHIN_S

    screen.say("Ending the run; please wait.")
    job.interrupt(signal.Signals(interrupted.number).name.removeprefix("SIG"))
    return job.follow(CLEANS_UP_WITHIN_S)


def require_no_inputs(context: click.Context) -> None:
    """Check that the command reads no files of this machine.

    Raises:
        click.UsageError: it does.
    """
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        is_input = isinstance(parameter.type, click.Path) and not isinstance(
            parameter.type, OutputFile
        )
        if is_input and value:
            raise click.UsageError(ON_THIS_MACHINE.format(parameter.opts[0]))
    for name in context.params.get("names", ()):
        if name not in plugins.engine_names() and Path(name).exists():
            raise click.UsageError(ON_THIS_MACHINE.format(name))


def with_outputs_among_logs(context: click.Context) -> tuple[list[str], dict[str, str]]:
    """Return the arguments for a Job, in which output files are among the logs; and the name there
    → the file, or `-`, that the user has given."""
    words, files = list(context.meta[WORDS]), dict[str, str]()
    for parameter in context.command.params:
        given = context.params.get(parameter.name or "")
        if isinstance(parameter.type, OutputFile) and given:
            name = f".{parameter.name}"
            files[name] = str(given)
            words = replaced(words, parameter.opts[0], f"{OUTPUT_FOLDER}/{name}")
    return words, files


def replaced(words: Sequence[str], option: str, value: str) -> list[str]:
    """Return a command line in which an option has this value."""
    command: list[str] = []
    for word in words:
        if command and command[-1] == option:
            command.append(value)
        else:
            command.append(f"{option}={value}" if word.startswith(f"{option}=") else word)
    return command


def given_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that are settings, for the harness in the Job. Its
    manifest overrides some of them."""
    from racetrack.config import ENVIRONMENT_ONLY, every_setting

    known = {name.upper() for name in every_setting()} | set(ENVIRONMENT_ONLY) - {"MACHINE_LOCK"}
    return {name: value for name, value in environment.items() if name in known}


def deliver(files: Mapping[str, str], logs: Path) -> None:
    """Move output files from the logs to where the user wants them, as far as there are any."""
    for name, to in files.items():
        if (file := logs / name).exists():
            if to == STDOUT:
                click.echo(file.read_text(encoding="utf-8"), nl=False)
            else:
                Path(to).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
            file.unlink()

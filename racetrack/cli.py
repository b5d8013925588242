"""The command line: `./run_experiment.sh` and `./race`."""

import sys

import click

from racetrack import cli_many, engines
from racetrack.calibrate import calibrate
from racetrack.cli_parts import EXIT_CODES, Seconds, engine_argument, guarded
from racetrack.lock import machine_lock
from racetrack.report.command import report
from racetrack.runfolder import read_run
from racetrack.screen import Screen
from racetrack.settings import load
from racetrack.stack.runtime import open_stack, stacks_that_may_stand, standing_stack
from racetrack.verify.command import verify as verify_command


# So that `-5` is a rate to be refused with its reason, not an option that is not known.
@click.command(epilog=EXIT_CODES, context_settings={"ignore_unknown_options": True})
@engine_argument
@click.argument("rate", metavar="RATE", type=click.IntRange(min=1))
@click.argument("wait", metavar="WAIT", type=Seconds())
@click.argument("samples", metavar="SAMPLES", type=click.IntRange(min=1))
@click.argument("delay", metavar="DELAY", type=Seconds())
@click.option("--verify", is_flag=True, help="Then compare every view with the sources.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help="Trouble on purpose, so many seconds after the rate was set: kill:SERVICE@10s,"
    " kill:SERVICE@10s+5s (stays dead for 5 s), pause:SERVICE@10s+5s. SERVICE is engine, broker,"
    " debezium or mysql. The run goes on until lag is back to normal, for 120 s at most. May be"
    " given several times.",
)
def experiment(
    engine: str,
    rate: int,
    wait: float,
    samples: int,
    delay: float,
    verify: bool,
    faults: tuple[str, ...],
) -> None:
    """Run one experiment: ENGINE at RATE pageviews per second; WAIT seconds to settle, then
    SAMPLES samples of top, DELAY seconds apart. Leaves a folder in logs/.

    \b
    Examples:
        ./run_experiment.sh dh 5000 20 10 1.0
        ./run_experiment.sh dh 5000 20 10 1.0 --verify
        ./run_experiment.sh dh 2000 20 30 1.0 --fault kill:debezium@30s
    """
    from racetrack.run_record import RunArguments
    from racetrack.runs import run_once

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        asked = RunArguments(
            pageviews_per_s=rate,
            wait_s=wait,
            samples=samples,
            delay_s=delay,
            verify=verify,
            faults=faults,
        )
        folder = run_once(engine, asked, load(), screen, guard)
    sys.exit(0 if read_run(folder).outcome == "ok" else 1)


@click.group(epilog=EXIT_CODES)
def race() -> None:
    """Put streaming engines on the same track, and say which keep up and at what cost.

    \b
    Examples:
        ./run_experiment.sh dh 5000 20 10 1.0   one experiment
        ./race up dh                            the same stack, for playing by hand
        ./race status
        ./race verify                           are its views right?
        ./race down
        ./race limit dh                         the highest rate that it keeps up with
        ./race sweep dh --rates 500,5000        many runs
        ./race report logs/…                    what they say
        ./race calibrate                        how far the figures can be trusted here
        ./race images                           images for where none can be pulled
    """


@race.command()
@engine_argument
def up(engine: str) -> None:
    """Start the stack for ENGINE and leave it standing, with the load at its start rates."""
    from racetrack.track import check_writes, make_ready, services_of

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        chosen = engines.find_engine(engine)
        settings = load()
        services = services_of(chosen, settings)
        stack = open_stack(settings, services, screen.say, to_play=True)
        make_ready(chosen, stack, screen.say)
        try:
            stack.start(services, None, screen.say)
            check_writes(stack, screen.say, lambda: None)
            chosen.lay_out(stack)
            stack.keep_up(engine)
        except BaseException:
            guard.disarm()
            stack.stop(screen.say)
            raise
    for line in chosen.where_to_play(stack):
        screen.say(line)
    where = stack.endpoints
    screen.say(f"Change the load: nc {where.loadgen_host} {where.loadgen_port}, then `help`.")
    screen.say(f"Logs: {stack.where_logs()}. Take it down: ./race down")
    if stack.unmeasurable:
        screen.say(
            f"Good for playing only. {stack.unmeasurable.why}: CPU and memory can't be measured,"
            f" and `./run_experiment.sh` refuses. {stack.unmeasurable.remedy}."
        )


@race.command()
def down() -> None:
    """Stop the stack that stands and remove its data, whatever started it."""
    screen = Screen()
    with guarded(screen), machine_lock():
        said: list[str] = []
        for stack in stacks_that_may_stand(load()):
            stack.stop(said.append)
    screen.say("\n".join(line.strip() for line in said) or "No stack is up.")


@race.command()
def status() -> None:
    """Say what stands: exit code 0 if a stack is up and whole, else 1."""
    screen = Screen()
    with guarded(screen):
        found = standing_stack(load())
    if found is None:
        screen.say("No stack is up. Start one with `./race up ENGINE`.")
        sys.exit(1)
    _, standing = found
    screen.say(f"Up since {standing.since}, for {standing.engine}:")
    for name, pids in sorted(standing.services.items()):
        # In a virtual machine it has none that means anything here.
        seen = f"pid {', '.join(map(str, pids))}" if pids else "running"
        screen.say(f"  {name:<10} {seen}")
    if ended := sorted(set(standing.expected) - set(standing.services)):
        screen.say(f"Ended since: {', '.join(ended)}. Their logs: `./race up` said where.")
        sys.exit(1)


@race.command()
def images() -> None:
    """Build the compose stack's images on the spot, for where none can be pulled (AIRGAP=true).

    \b
    Everything comes from package registries, Apache Kafka in Redpanda's place; there is no
    Materialize. Builds only what is missing or was built from something else. Needs root.

    \b
    Example:
        ./race images && AIRGAP=true ./run_experiment.sh dh 1000 10 10 1.0
    """
    from racetrack.images.build import build

    screen = Screen()
    with guarded(screen):
        build(load(), screen.say)


for command in (cli_many.sweep, cli_many.vary, cli_many.limit, calibrate, report, verify_command):
    race.add_command(command)


def main() -> None:
    """What the front doors call; they show in the usage as they were typed."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["experiment"]:
        experiment.main(arguments[1:], prog_name="./run_experiment.sh")
    race.main(arguments, prog_name="./race")


if __name__ == "__main__":
    main()

"""What is sampled of a run: all services that its stack started, each by its name."""

from engines.contract import Engine
from racetrack.run.readiness import services_of
from racetrack.stack.contract import Accounting, Stack


def processes(engine: Engine, stack: Stack) -> dict[str, list[int]]:
    """Service → its live processes: the engine's first, then the broker and the load generator,
    then the others."""
    own = engine.processes(stack)
    started = stack.apart(services_of(engine, stack.settings))
    others = [name for name in ("broker", "loadgen", *started) if name not in own]
    return {**own, **{name: stack.pids(name) for name in others}}


def accounts(engine: Engine, stack: Stack) -> dict[str, Accounting]:
    """The kernel's account of each of them, where the runtime has one."""
    found = {name: stack.accounting(name) for name in processes(engine, stack)}
    return {name: account for name, account in found.items() if account}

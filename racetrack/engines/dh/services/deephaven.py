"""Service of Deephaven: its server, which `racetrack/engines/dh/server.py` starts inside a Python
process with its own environment."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from racetrack.config import REPO, Settings
from racetrack.engines.dh.settings import DeephavenSettings
from racetrack.stack import jvm, net, prebuilt
from racetrack.stack.prebuilt import Archive
from racetrack.stack.service import Context, Launch, NotReady
from racetrack.stack.services import registry
from racetrack.workloads.contract import workload_in

LAUNCHER = Path(__file__).parents[1] / "server.py"
FOR_CLIENTS = (
    # The default, 1 s, would delay what clients receive by a random part of it.
    "-Dbarrage.minUpdateInterval=20",
    # The ticking client can't receive changes of a table of which it has received a part only.
    "-DBarrageMessageProducer.subscriptionGrowthEnabled=false",
)


class Deephaven:
    """See `racetrack.stack.service.NativeService`."""

    name = "deephaven"
    parts = ("deephaven",)
    after = ()
    ready_within_s = 120.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"DEEPHAVEN_PORT": DeephavenSettings.of(settings).deephaven_port}

    def launch(self, context: Context) -> Launch:
        jars = _packages(context) / "deephaven_server/jars"
        archive = Archive(
            self.name,
            "deephaven",
            jvm.class_path(jars),
            _train,
            self._trained,
            ports=("deephaven_port",),
            peers=tuple(name for name in context.services if name != self.name),
        )
        # `server.py` checks whether the archive exists.
        launch = _launch(context, archive.file(context.parts))
        formulas = prebuilt.path_in(context.parts["deephaven"], "formulas.zip")
        env = {**launch.env, "DEEPHAVEN_FORMULAS": str(formulas)}
        return replace(launch, env=env, faster=archive)

    def check(self, context: Context) -> None:
        """Check that the server serves the IDE's page. This does not check whether a session can be
        opened; loading the demo shows that."""
        settings = DeephavenSettings.of(context.settings)
        net.require_listener(settings, settings.deephaven_port)
        page = f"http://{net.endpoint(net.host(settings), settings.deephaven_port)}/ide/"
        status, _ = net.request(page)
        if status != 200:
            raise NotReady(f"GET {page}: HTTP {status}")

    def _trained(self, context: Context) -> None:
        """Exercise the server while it records classes for the archive: load the demo and read a
        view. Without other services, as when an image is built, only record the classes of the
        start."""
        self.check(context)
        if not context.services:
            return
        # Imported only here, because container images do not contain this module.
        from racetrack.engines.dh import engine

        engine.ENGINE.run_script(context.settings)
        view = workload_in(context.settings).views[0].name
        with engine.open_reader(context.settings) as reader:
            reader.rows(view, "", ())

    def versions(self, context: Context) -> Mapping[str, str]:
        jar = next(context.parts["deephaven"].glob("lib/python3*/site-packages/deephaven_server-*"))
        return {"deephaven": jar.name.removeprefix("deephaven_server-").split(".dist-info")[0]}


def environment(context: Context) -> dict[str, str]:
    """Return the variables that `server.py` and `scripts/` read."""
    settings = DeephavenSettings.of(context.settings)
    return {
        "DEEPHAVEN_HOST": settings.bind_address,
        "DEEPHAVEN_PORT": str(settings.deephaven_port),
        "DEEPHAVEN_HEAP": settings.deephaven_heap,
        "DEEPHAVEN_CYCLE_MS": str(settings.deephaven_cycle_ms),
        "DEEPHAVEN_PSK": settings.deephaven_psk.get_secret_value(),
        "DEEPHAVEN_DATA": str(context.work),
        "DEEPHAVEN_JVM_ARGS": shlex.join(
            [
                *FOR_CLIENTS,
                "-XX:-UsePerfData",
                "-XX:+ErrorFileToStdout",
                jvm.LOG_GC_PAUSES,
                "-XX:+ExitOnOutOfMemoryError",  # so that the log ends with the reason
                f"-Djna.tmpdir={context.work}",  # by default, JNA uses the user's cache folder
                *jvm.for_every_jvm(settings),
            ]
        ),
        "JAVA_HOME": str(jvm.java().parent.parent),
        **net.kafka(settings).environment(),
        "SCHEMA_REGISTRY_URL": registry.url(settings),
        "RACETRACK_SCRIPTS": str(REPO / "scripts"),
    }


def _launch(context: Context, archive: Path | None, *arguments: str) -> Launch:
    python = context.parts["deephaven"] / "bin/python"
    return Launch(
        argv=[str(python), str(LAUNCHER), *arguments],
        env={
            **environment(context),
            **({"DEEPHAVEN_CLASS_ARCHIVE": str(archive)} if archive else {}),
        },
        cwd=context.work,
    )


def _train(context: Context, file: Path) -> Launch:
    """Return the launch of a server that writes the class archive `file` when it is stopped."""
    return _launch(context, file, "--write-class-archive")


def _packages(context: Context) -> Path:
    return next(context.parts["deephaven"].glob("lib/python3*/site-packages"))


SERVICE = Deephaven()

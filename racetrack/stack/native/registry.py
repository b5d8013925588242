"""The schema registry: Apicurio, in memory, with the Confluent-compatible API."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from racetrack.settings import Settings
from racetrack.stack.native import jvm, net
from racetrack.stack.native.archive import Archive, written_at_exit
from racetrack.stack.native.service import Context, Launch, NotReady

PROCESS_ID = "com.arjuna.ats.internal.arjuna.utils.MBeanProcessId"


def url(settings: Settings) -> str:
    """Where Confluent's clients find it; it answers under a path, not at the root."""
    return f"{_root(settings)}/apis/ccompat/v7"


def native_url(settings: Settings) -> str:
    """Apicurio's own API, version 2, which its Avro converter speaks."""
    return f"{_root(settings)}/apis/registry/v2"


def subjects(settings: Settings) -> set[str]:
    """The subjects that are registered now.

    Raises:
        NotReady: the registry does not answer.
    """
    found = net.get_json(f"{url(settings)}/subjects")
    if not isinstance(found, list):
        raise NotReady(f"GET {url(settings)}/subjects: a list was expected, not {found!r}")
    return set(found)


class Registry:
    """See `racetrack.stack.native.service.NativeService`."""

    name = "registry"
    parts = ("registry",)
    after = ()
    ready_within_s = 60.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"SCHEMA_REGISTRY_PORT": settings.schema_registry_port}

    def launch(self, context: Context) -> Launch:
        jar = _jar(context)
        archive = Archive(self.name, "registry", str(jar), _train, self.check)
        return _launch(context, archive.option(context))

    def check(self, context: Context) -> None:
        subjects(context.settings)

    def versions(self, context: Context) -> Mapping[str, str]:
        version = _jar(context).name.removeprefix("apicurio-registry-app-")
        return {"apicurio": version.removesuffix("-runner.jar")}


def _launch(context: Context, options: Sequence[str]) -> Launch:
    settings = context.settings
    return Launch(
        argv=[
            str(jvm.java()),
            *jvm.options(settings.schema_registry_heap, context.work),
            *jvm.for_a_small_part(),
            *options,
            f"-Dquarkus.http.host={settings.bind_address}",
            f"-Dquarkus.http.port={settings.schema_registry_port}",
            "-Dquarkus.log.level=WARN",
            # Its transaction manager opens a port of its own, just to tell processes apart.
            f"-DCoreEnvironmentBean.processImplementationClassName={PROCESS_ID}",
            "-jar",
            str(_jar(context)),
        ],
        cwd=context.work,
    )


def _train(context: Context, file: Path) -> Launch:
    return _launch(context, written_at_exit(file))


def _jar(context: Context) -> Path:
    return next(context.parts["registry"].glob("apicurio-registry-app-*-runner.jar"))


def _root(settings: Settings) -> str:
    return f"http://{net.endpoint(net.host(settings), settings.schema_registry_port)}"


SERVICE = Registry()

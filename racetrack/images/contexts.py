"""What the build of each image is given."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from racetrack.images import SERVICES, Service, pip_config
from racetrack.images.context import BuildContext
from racetrack.settings import REPO, Settings

FOLDER = REPO / "images"
CODE = (
    *("racetrack/__init__.py", "racetrack/errors.py", "racetrack/settings.py"),
    *(
        "racetrack/clock.py",
        "racetrack/json_file.py",
        "racetrack/stack/__init__.py",
        "racetrack/stack/contract.py",
    ),
    "racetrack/install",
)
NATIVE = REPO / "racetrack/stack/native"
# Services that none of those images holds, and what drives them from outside: a change of theirs is
# no reason to build one.
NOT_IN_IMAGES = ("cal", "pgfeed", "loadgen", "stack")
RECIPES = ("racetrack/__init__.py", "racetrack/errors.py", "racetrack/install")


class Contexts:
    """`parts` are the folders of what is copied from the cache, `versions` those of `.env`."""

    def __init__(
        self, settings: Settings, parts: Mapping[str, Path], versions: Mapping[str, str]
    ) -> None:
        self._settings, self._parts, self._versions = settings, parts, versions
        # Image → what it was made from. A context needs those of the images below it.
        self.digests: dict[str, str] = {}

    def serve(self) -> BuildContext:
        """The image below those of the services."""
        return self._installing("serve", "serve.Dockerfile", under="")

    def services(self) -> dict[str, BuildContext]:
        """The images of the services, by name."""
        return {
            **{service.name: self._service(service) for service in SERVICES},
            "deephaven": self._deephaven(),
            "loadgen": self._loadgen(),
            "pgfeed": self._pgfeed(),
            "mzcli": self._new("mzcli.Dockerfile", "base"),
        }

    def _new(self, dockerfile: str, *below: str) -> BuildContext:
        context = BuildContext(FOLDER / dockerfile)
        context.decides(*(self.digests[name] for name in below))
        return context

    def _service(self, service: Service) -> BuildContext:
        context = self._new("service.Dockerfile", "serve")
        context.decides(*service.prepare, *service.runs)
        for part in service.parts:
            context.part(f"parts/{part}", self._parts[part])
        self._add_code(context)
        return context

    def _deephaven(self) -> BuildContext:
        context = self._installing("deephaven", "deephaven.Dockerfile", "serve")
        self._add_code(context)
        return context

    def _loadgen(self) -> BuildContext:
        context = self._installing("loadgen", "loadgen.Dockerfile")
        context.files(REPO, ["loadgen", *workload_files("load")])
        return context

    def _pgfeed(self) -> BuildContext:
        context = self._installing("pgfeed", "pgfeed.Dockerfile")
        feed = [str(file.relative_to(REPO)) for file in sorted(NATIVE.glob("pgfeed_*.py"))]
        shared = [f"racetrack/stack/native/{name}.py" for name in ("__init__", "net", "service")]
        context.files(REPO, (*CODE, *shared, *feed), "code/")
        return context

    def _add_code(self, context: BuildContext) -> None:
        native = [
            str(file.relative_to(REPO))
            for file in sorted(NATIVE.iterdir())
            if file.is_file() and not file.name.startswith(NOT_IN_IMAGES)
        ]
        context.files(REPO, (*CODE, "racetrack/workload.py", *native, *workload_files()), "code/")
        context.text("code/prepare.env", prepare_env(self._settings), counts=False)

    def _installing(
        self, part: str, dockerfile: str, *below: str, under: str = "install/"
    ) -> BuildContext:
        """With what a stage needs that installs a part by its recipe."""
        context = self._new(dockerfile, "base", *below)
        locks = {
            "serve": ["requirements/serve.lock"],
            "deephaven": ["requirements/deephaven.lock"],
            "pgfeed": ["requirements/pgfeed.lock"],
            "loadgen": ["requirements/librdkafka.lock", "loadgen/requirements.lock"],
        }
        context.files(REPO, RECIPES, under, counts=False)  # what they install, the locks decide
        context.files(REPO, locks[part], under)
        context.text(f"{under}install.sh", (FOLDER / "install.sh").read_text())
        needed = {"deephaven": ("DEEPHAVEN_VERSION",)}.get(part, ())
        context.decides(*(self._versions[name] for name in needed))
        versions = "".join(f"{name}={version}\n" for name, version in self._versions.items())
        context.text(f"{under}versions.env", versions, counts=False)
        context.text(f"{under}pip.conf", pip_config.for_build(), counts=False)
        context.text(f"{under}ca-certificates.crt", pip_config.certificates(), counts=False)
        return context


def workload_files(side: str = "*.py") -> list[str]:
    """Every workload's files for the harness, or its folder `load`."""
    folder = REPO / "workloads"
    found = {folder / "__init__.py", *folder.glob("*/__init__.py"), *folder.glob(f"*/{side}")}
    return sorted(str(file.relative_to(REPO)) for file in found)


def prepare_env(settings: Settings) -> str:
    """Settings for what is run while an image is built, as a shell reads them: no secret of the
    user's is among them."""
    given: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        if field.is_required():
            value = getattr(settings, name)
            given[name.upper()] = "prepare" if isinstance(value, SecretStr) else str(value)
    given["BIND_ADDRESS"] = "127.0.0.1"
    given["KAFKA_ADVERTISED_ADDRESS"] = ""
    given["STACK_NAME"] = "image"  # or the end of a native stack on this machine would end it
    given["RACETRACK_WORK"] = "/tmp/prepare"  # noqa: S108  # in the image's own stage
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in given.items())

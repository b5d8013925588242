"""Build contexts of all images."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import SecretStr

from racetrack.config import REPO, Settings
from racetrack.images import FOLDER, OF_ENGINES, OF_THE_STACK, workload_files
from racetrack.images.context import BuildContext
from racetrack.install import pip
from racetrack.install.recipe import Image

# The code that installs parts (components), except the recipes of engines.
RECIPES = (
    "racetrack/__init__.py",
    "racetrack/environment.py",
    "racetrack/errors.py",
    "racetrack/integrity.py",
    "racetrack/plugins.py",
    "racetrack/renamed.py",
    "racetrack/install",
    "racetrack/engines/__init__.py",
)
# The code that starts native services.
CODE = (
    *RECIPES,
    "racetrack/config.py",
    "racetrack/client_properties.py",
    "racetrack/kafka_endpoint.py",
    "racetrack/mysql_endpoint.py",
    "racetrack/units.py",
    "racetrack/clock.py",
    "racetrack/results/__init__.py",
    "racetrack/results/json_file.py",
    "racetrack/workloads/contract.py",
    "racetrack/workloads/message.py",
    "racetrack/stack/__init__.py",
    "racetrack/stack/contract.py",
    "racetrack/stack/applicability.py",
    "racetrack/stack/debezium_connector.py",
    "racetrack/stack/elsewhere.py",
    "racetrack/stack/jvm.py",
    "racetrack/stack/net.py",
    "racetrack/stack/own_http.py",
    "racetrack/stack/own_registry.py",
    "racetrack/stack/prebuilt.py",
    "racetrack/stack/processes.py",
    "racetrack/stack/service.py",
)
CODE_FOLDERS = ("racetrack/stack/native", "racetrack/stack/services")
# Beginnings of the names of files in these folders that the images do not run. They are left out,
# so that changing them rebuilds no image.
NOT_IN_IMAGES = ("loadgen", "stack", "startup")
# Files of an engine's folder that are copied if they exist. The image also needs a file
# `engine.py`, which it does not import: it marks the folder as an engine.
OF_ENGINE_RECIPES = ("__init__.py", "recipe.py")
OF_ENGINE = (*OF_ENGINE_RECIPES, "settings.py", "services")
MARKER = "engine.py"
UV_LOCK = "requirements/uv.lock"


class Contexts:
    """Creates the build contexts of images.

    `parts` maps the parts that are copied from the cache to their folders; `versions` are the
    versions in `.env`.
    """

    def __init__(
        self, settings: Settings, parts: Mapping[str, Path], versions: Mapping[str, str]
    ) -> None:
        self._settings, self._parts, self._versions = settings, parts, versions
        self._pip = pip.settings()
        # Image → digest. The digest of an image includes the digests of its base images.
        self.digests: dict[str, str] = {}

    def serve(self) -> BuildContext:
        """Return the context of the serve image, on which the services' images are based."""
        context = self._new(FOLDER / "serve.Dockerfile", "base")
        serve = Image("serve", installs="serve", locks=("requirements/serve.lock",))
        self._add_installing(context, serve, engine="", under="")
        return context

    def services(self) -> dict[str, BuildContext]:
        """Return the contexts of the services' images, by name."""
        of_engines = {
            image.name: self.of(image, engine)
            for engine, images in OF_ENGINES.items()
            for image in images
        }
        return {**{image.name: self.of(image) for image in OF_THE_STACK}, **of_engines}

    def of(self, image: Image, engine: str = "") -> BuildContext:
        """Return the context of one image; `engine` is the engine it belongs to, if any."""
        below = ["serve"] if image.runs else []
        below += ["base"] if image.installs or not image.runs else []
        context = self._new(FOLDER / image.dockerfile, *below)
        context.add_to_digest(image.installs, *image.prepare, *image.runs, image.command)
        context.folder("parts")
        for part in image.parts:
            context.part(f"parts/{part}", self._parts[part])
        context.folder("install")
        if image.installs:
            self._add_installing(context, image, engine, "install/")
        if image.runs:
            self.add_code(context, engine)
        context.files(REPO, image.files, "code/")
        return context

    def _new(self, dockerfile: Path, *below: str) -> BuildContext:
        context = BuildContext(dockerfile)
        context.add_to_digest(*(self.digests[name] for name in below))
        return context

    def add_code(self, context: BuildContext, engine: str) -> None:
        """Add the code that runs native services: the code of the stack and of one engine."""
        native = [
            str(file.relative_to(REPO))
            for folder in CODE_FOLDERS
            for file in sorted((REPO / folder).iterdir())
            if file.is_file() and not file.name.startswith(NOT_IN_IMAGES)
        ]
        workloads = (*workload_files(), *workload_files(".env"))
        code = (*CODE, *native, *workloads, *_of_engine(engine, OF_ENGINE))
        context.files(REPO, dict.fromkeys(code), "code/")
        context.files(REPO, _of_engine(engine, [MARKER]), "code/", counts=False)
        context.text("code/prepare.env", prepare_env(self._settings), counts=False)

    def _add_installing(self, context: BuildContext, image: Image, engine: str, under: str) -> None:
        """Add the files that a build stage needs to install a part: recipes, locks, versions and
        pip's settings."""
        # The recipes do not count for the digest, because the locks determine what is installed.
        recipes = (*RECIPES, *_of_engine(engine, (*OF_ENGINE_RECIPES, MARKER)))
        context.files(REPO, recipes, under, counts=False)
        context.files(REPO, [UV_LOCK, *image.locks], under)
        context.text(f"{under}install.sh", (FOLDER / "install.sh").read_text())
        context.add_to_digest(*(self._versions[name] for name in image.versions))
        versions = "".join(f"{name}={version}\n" for name, version in self._versions.items())
        context.text(f"{under}versions.env", versions, counts=False)
        context.text(f"{under}pip.conf", pip.for_build(self._pip), counts=False)
        context.text(f"{under}ca-certificates.crt", pip.certificates(self._pip), counts=False)


def _of_engine(engine: str, names: Sequence[str]) -> list[str]:
    """Return the paths of an engine's files that exist; an empty list without an engine."""
    folder = f"racetrack/engines/{engine}"
    return [f"{folder}/{name}" for name in names if engine and (REPO / folder / name).exists()]


def prepare_env(settings: Settings) -> str:
    """Return settings for programs that run while an image is built, as shell assignments.

    Passwords are replaced by a placeholder. Other secrets, such as URLs, are empty.
    """
    given: dict[str, str] = {}
    for name, field in type(settings).model_fields.items():
        if field.is_required():
            value = getattr(settings, name)
            secret = "prepare" if name.endswith("_password") else ""
            given[name.upper()] = secret if isinstance(value, SecretStr) else str(value)
    given["BIND_ADDRESS"] = "127.0.0.1"
    given["KAFKA_ADVERTISED_ADDRESS"] = ""
    given["BROKER_REPLICAS"] = "1"
    # Another name than the stack's, so that stopping a native stack on this machine does not end
    # programs that run during the build.
    given["STACK_NAME"] = "image"
    given["RACETRACK_WORK"] = "/tmp/prepare"  # noqa: S108  # in the image's own stage
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in given.items())

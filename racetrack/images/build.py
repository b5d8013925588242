"""Builds the images that are missing or outdated, with any Docker engine, and pushes them."""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.images import Image as DockerImage

from racetrack import __version__, install
from racetrack.config import Settings
from racetrack.errors import SetupError, UsageError
from racetrack.images import FROM_CACHE, IMAGES, NAMES, image_name, repository
from racetrack.images.context import BuildContext
from racetrack.images.contexts import Contexts
from racetrack.install import cache, pip
from racetrack.install.debian import BASE_TAR
from racetrack.install.recipe import Image
from racetrack.stack.service import Context, find_service

Say = Callable[[str], None]
CONTENT = "racetrack.content"  # label: digest of the image's build context
VERSIONS = "racetrack.versions"  # label: part → version, as JSON
BUILD_WITHIN_S = 1800
AT_A_TIME = 3
LAST_LINES = 12


def build(settings: Settings, say: Say) -> None:
    """Build the images that are missing or outdated, and report the sizes of all images.

    Raises:
        SetupError: no Docker engine answers, debootstrap is missing, a part can't be installed, or
            an image can't be built.
    """
    if shutil.which("debootstrap") is None:
        raise SetupError(
            "The images are based on a Debian made by debootstrap, which is not on PATH. Install"
            " it (apt-get install debootstrap), then try again."
        )
    builder = _Builder(settings, say)
    # Allow only one build at a time on this machine.
    with cache.locked(cache.root() / "images", say):
        builder.build_all()
    for name, (whole_mb, own_mb) in builder.sizes_mb().items():
        say(f"{image_name(name):<34} {whole_mb:>5,} MB, its own layers {own_mb:>5,} MB")


def missing(images: Sequence[str]) -> list[str]:
    """Return the names of those images that do not exist.

    Raises:
        SetupError: no Docker engine answers.
    """
    client = _connect()
    return [name for name in images if _labels(client, name) is None]


def require_registry(settings: Settings) -> str:
    """Return the registry to which images are pushed, from the settings.

    Raises:
        UsageError: the settings contain no registry.
    """
    if not settings.kubernetes_registry:
        raise UsageError(
            "KUBERNETES_REGISTRY is empty, so there is no registry to push to. Set it to the one"
            " from which the nodes of your cluster pull, such as"
            " KUBERNETES_REGISTRY=registry.example.com/"
        )
    return settings.kubernetes_registry


def push(registry: str, names: Sequence[str], say: Say) -> None:
    """Push images to `registry`, which ends with "/", and report their digests.

    Raises:
        SetupError: no Docker engine answers, an image does not exist, or the registry refuses it.
    """
    client = _connect()
    for name in names:
        target = registry + repository(name)
        if not (image := _find(client, name)):
            raise SetupError(f"{image_name(name)} does not exist. Call ./race images.")
        image.tag(target, __version__)
        digest = ""
        for message in client.images.push(target, __version__, stream=True, decode=True):
            if "error" in message:
                raise SetupError(
                    f"{target} could not be pushed: {message['error']}. If the registry wants a"
                    " password, call `docker login` first."
                )
            digest = message.get("aux", {}).get("Digest", digest)
        say(f"{target}:{__version__}@{digest}: pushed")


class _Builder:
    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings, self._say = settings, say
        self._client = _connect()
        self._parts: Mapping[str, Path] = {}
        self._versions = install.read_versions()

    def build_all(self) -> None:
        """Build the shared images first, then the others in parallel."""
        self._parts = install.ensure(FROM_CACHE, self._versions, self._say)
        contexts = Contexts(self._settings, self._parts, self._versions)
        contexts.digests["base"] = self._parts["base"].name
        self._import_base(self._parts["base"])
        serve = contexts.serve()
        contexts.digests["serve"] = serve.digest
        self._build("serve", serve)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            futures = [
                pool.submit(self._build, *context) for context in contexts.services().items()
            ]
        failures = [error for future in futures if (error := future.exception())]
        for error in failures:
            if not isinstance(error, SetupError):
                raise error
        if failures:
            raise SetupError("\n".join(map(str, failures)))

    def sizes_mb(self) -> dict[str, tuple[int, int]]:
        """Return the sizes of each image in MB: in total, and of the layers above its base."""
        sizes = {name: self._client.images.get(image_name(name)).attrs["Size"] for name in NAMES}
        on_serve = {name: sizes["serve"] for name, image in IMAGES.items() if image.runs}
        below = {**dict.fromkeys(NAMES, sizes["base"]), **on_serve, "base": 0}
        return {
            name: (round(size / 1e6), round((size - below[name]) / 1e6))
            for name, size in sizes.items()
        }

    def _import_base(self, folder: Path) -> None:
        if self._is_there("base", folder.name):
            return
        began = time.monotonic()
        result = self._client.api.import_image_from_file(
            str(folder / BASE_TAR),
            repository=repository("base"),
            tag=__version__,
            changes=[f'LABEL {CONTENT}="{folder.name}"'],
        )
        if "error" in result:
            raise SetupError(f"{image_name('base')} could not be imported: {result}")
        self._say(f"{image_name('base')}: imported in {time.monotonic() - began:.1f} s")

    def _build(self, name: str, context: BuildContext) -> None:
        if self._is_there(name, context.digest):
            return
        self._say(f"{image_name(name)}: building")
        began = time.monotonic()
        replaced = _find(self._client, name)
        with context.tar() as content:
            output = self._client.api.build(
                fileobj=content,
                custom_context=True,
                tag=image_name(name),
                rm=True,
                forcerm=True,
                # So that the build reaches the registries in the same way as this machine.
                network_mode="host",
                timeout=BUILD_WITHIN_S,
                buildargs=_arguments(name),
                labels={CONTENT: context.digest, VERSIONS: json.dumps(self._versions_in(name))},
                decode=True,
            )
            _follow(name, output)
        if replaced and replaced.id != self._client.images.get(image_name(name)).id:
            with contextlib.suppress(APIError):  # a container still uses the image
                replaced.remove()
        self._say(f"{image_name(name)}: built in {time.monotonic() - began:.1f} s")

    def _is_there(self, name: str, digest: str) -> bool:
        labels = _labels(self._client, name)
        return labels is not None and labels.get(CONTENT) == digest

    def _versions_in(self, name: str) -> dict[str, str]:
        image = IMAGES.get(name, Image(name))
        if image.installs:
            return {
                setting.removesuffix("_VERSION").lower(): self._versions[setting]
                for setting in image.versions
            }
        versions: dict[str, str] = {}
        context = Context(self._settings, Path(), self._parts)
        for service in image.runs:
            versions.update(find_service(service).versions(context))
        versions.pop(
            "java", None
        )  # this is the version on this machine, not the version in the image
        return versions


def _arguments(name: str) -> dict[str, str]:
    """Return the image's build arguments: its base images, the arguments for its service, and
    proxies."""
    arguments = {"BASE": image_name("base"), "SERVE": image_name("serve"), **pip.proxies()}
    if image := IMAGES.get(name):
        arguments["INSTALLS"], arguments["COMMAND"] = image.installs, image.command
        arguments["PREPARE"] = " ".join(image.prepare)
        arguments["SERVICES"] = " ".join(image.runs)
        arguments["NOT_KEPT"] = " ".join(f"parts/{part}" for part in image.only_to_prepare)
    return arguments


def _follow(name: str, output: Iterable[Mapping[str, Any]]) -> None:
    """Write the output of the build of image `name` to a log file; raise SetupError if the build
    failed."""
    log = cache.root() / "log" / f"image-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        for message in output:
            file.write(str(message.get("stream") or message.get("error") or ""))
            if "error" in message:
                file.close()
                lines = log.read_text().strip().splitlines()[-LAST_LINES:]
                raise SetupError(
                    f"{image_name(name)} could not be built:\n"
                    + "\n".join(f"    {line}" for line in lines)
                    + f"\n  Full log: {log}. If the network failed, call again: finished"
                    " steps are kept."
                )


def _connect() -> docker.DockerClient:
    try:
        return docker.from_env(timeout=BUILD_WITHIN_S)
    except (DockerException, OSError, ValueError) as error:
        raise SetupError(
            f"No Docker engine answers, so no image can be built ({error}). Install and start one"
            " (Debian: apt-get install docker.io), and make sure you may use it (group docker)."
        ) from None


def _labels(client: docker.DockerClient, name: str) -> Mapping[str, str] | None:
    """Return the labels of an image, None if it does not exist."""
    image = _find(client, name)
    return image.labels if image else None


def _find(client: docker.DockerClient, name: str) -> DockerImage | None:
    try:
        return client.images.get(image_name(name))
    except ImageNotFound:
        return None
    except APIError as error:
        raise SetupError(f"The Docker engine can't list its images: {error}") from None

"""The images of the compose stack for sites that can't pull any, from package registries alone.

A Debian by debootstrap (racetrack/install/base.py) is the base; on it an image with a small Python
that starts services (images/serve.Dockerfile); on that an image for each service. Parts are those
of the native runtime: relocatable ones are copied from the cache, Python environments are installed
inside by the same recipe.
"""

from collections.abc import Mapping

from racetrack import __version__, plugins
from racetrack.config import REPO
from racetrack.install.image import Image


def workload_files(side: str = "*.py") -> list[str]:
    """Return the files of every workload that match `side`: by default the harness's."""
    folder = REPO / "racetrack" / "workloads"
    found = {folder / "__init__.py", *folder.glob("*/__init__.py"), *folder.glob(f"*/{side}")}
    return sorted(str(file.relative_to(REPO)) for file in found)


FOLDER = REPO / "images"
OF_THE_STACK = (
    Image("mysql", parts=("mysql",), prepare=("mysql",), runs=("mysql",)),
    Image(
        "redpanda",
        parts=("kafka", "registry", "nginx"),
        prepare=("registry", "broker"),
        runs=("broker", "registry"),
    ),
    Image("redis", parts=("redis",), runs=("redis",)),
    Image(
        "debezium",
        parts=("kafka", "debezium", "mysql"),
        prepare=("mysql", "broker", "debezium"),
        runs=("debezium",),
        only_to_prepare=("mysql",),
    ),
    Image(
        "loadgen",
        FOLDER / "loadgen.Dockerfile",
        installs="loadgen",
        locks=("requirements/librdkafka.lock", "loadgen/requirements.lock"),
        files=("loadgen", "racetrack/__init__.py", *workload_files("load")),
    ),
)
OF_ENGINES: Mapping[str, tuple[Image, ...]] = {
    engine: tuple(module.IMAGES) for engine, module in plugins.of_all("airgap").items()
}
IMAGES: Mapping[str, Image] = {
    image.name: image for images in (OF_THE_STACK, *OF_ENGINES.values()) for image in images
}
NAMES = ("base", "serve", *IMAGES)
FROM_CACHE = (*dict.fromkeys(part for image in IMAGES.values() for part in image.parts), "base")


def repository(image: str) -> str:
    """Return an image's name without its tag."""
    return f"racetrack/airgap-{image}"


def image_name(image: str) -> str:
    """Return `racetrack/airgap-<image>:<version of Racetrack>`; an image is called like its
    service."""
    return f"{repository(image)}:{__version__}"

"""Images of the compose stack for sites that can't pull public images. They are built from package
registries only.

The base image is a Debian made by debootstrap (racetrack/install/debian.py). The serve image adds a
small Python environment that starts services (images/serve.Dockerfile). Each native service has an
image on top of these (images/service.Dockerfile). Racetrack's Python programs, such as the load
generator, have images on top of the base (images/program.Dockerfile).

The images contain the native runtime's parts (installed components, see racetrack/install):
relocatable parts are copied from the cache, and Python environments are installed during the build
by the same recipe.
"""

from collections.abc import Mapping

from racetrack import __version__, plugins
from racetrack.config import REPO
from racetrack.install.recipe import Image


def workload_files(side: str = "*.py") -> list[str]:
    """Return the files of all workloads that match the pattern `side`; by default, the files that
    the harness imports.

    The pattern `load` matches the package that the load generator imports.
    """
    folder = REPO / "racetrack" / "workloads"
    files = {folder / "__init__.py", *folder.glob("*/__init__.py"), *folder.glob(f"*/{side}")}
    return sorted(str(file.relative_to(REPO)) for file in files)


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
        installs="loadgen",
        locks=("requirements/librdkafka.lock", "loadgen/requirements.lock"),
        command="pypy3 -m loadgen",
        files=("loadgen", "racetrack/__init__.py", *workload_files("load")),
    ),
    # The harness itself, as a Job on Kubernetes (kubernetes/job).
    Image(
        "harness",
        parts=("kubectl", "kcat"),
        installs="harness",
        locks=("requirements/harness.lock",),
        command="python -m racetrack.cli",
        files=(".env", "plans", "racetrack", "scripts", "kubernetes"),
    ),
)
OF_ENGINES: Mapping[str, tuple[Image, ...]] = {
    engine: tuple(module.INSTALLS.images) for engine, module in plugins.of_all("recipe").items()
}
IMAGES: Mapping[str, Image] = {
    image.name: image for images in (OF_THE_STACK, *OF_ENGINES.values()) for image in images
}
NAMES = ("base", "serve", *IMAGES)
# Images that containers run. All of them are built on `base`, which no container runs.
RUN = NAMES[1:]
FROM_CACHE = (*dict.fromkeys(part for image in IMAGES.values() for part in image.parts), "base")


def repository(image: str) -> str:
    """Return an image's name without its tag."""
    return f"racetrack/airgap-{image}"


def image_name(image: str) -> str:
    """Return `racetrack/airgap-<image>:<version of Racetrack>`.

    `image` is the name of the service that the image contains.
    """
    return f"{repository(image)}:{__version__}"

"""Installs the components of a run into the cache folder, from package registries.

Each component, such as Kafka or the harness's Python environment, is called a part and has a folder
of its own. The harness calls `ensure`, or `fetching` to use each part as soon as it is installed;
users run `python3 -m racetrack.install`. Standard library only.
"""

from racetrack.install.ensure import ensure, examine, fetching, folder_of, on_request, parts
from racetrack.install.versions import read_versions

__all__ = ["ensure", "examine", "fetching", "folder_of", "on_request", "parts", "read_versions"]

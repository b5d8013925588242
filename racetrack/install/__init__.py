"""Installs what a run needs into the cache folder, from package registries. Standard library only.

The harness calls `ensure`, or `fetching` to use each part as soon as it is installed; users run
`python3 -m racetrack.install`.
"""

from racetrack.install.ensure import ensure, fetching, folder_of
from racetrack.install.recipes import on_request, parts
from racetrack.install.versions import read_versions

__all__ = ["ensure", "fetching", "folder_of", "on_request", "parts", "read_versions"]

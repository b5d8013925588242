"""Sets up what a run needs in the cache folder, from package registries. Standard library only.

The harness calls `ensure`, and `fetching` to use each part as soon as it is there;
`python3 -m racetrack.install` does it by hand.
"""

from racetrack.install.ensure import ensure, fetching, folder_of
from racetrack.install.recipes import on_request, parts
from racetrack.install.versions import read_versions

__all__ = ["ensure", "fetching", "folder_of", "on_request", "parts", "read_versions"]

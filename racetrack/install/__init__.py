"""Sets up what a run needs in the cache folder, from package registries. Standard library only.

`ensure` is all that the harness calls; `python3 -m racetrack.install` is the same by hand.
"""

from racetrack.install.ensure import ensure, folder_of
from racetrack.install.recipes import on_request, parts
from racetrack.install.versions import read_versions

__all__ = ["ensure", "folder_of", "on_request", "parts", "read_versions"]

"""Brings parts into place: side by side, each whole or not at all, and says what it does."""

import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install import cache
from racetrack.install.commands import Children, Runner, Stopped
from racetrack.install.recipe import Recipe, Say, Site
from racetrack.install.recipes import recipe

HEARTBEAT_S = 10.0


def folder_of(part: str, versions: Mapping[str, str]) -> Path | None:
    """Where a part is installed, or None."""
    folder = cache.root() / "parts" / recipe(part, versions).folder_name
    return folder if folder.is_dir() else None


def ensure(
    parts: Sequence[str], versions: Mapping[str, str], say: Say, prefix: Path | None = None
) -> dict[str, Path]:
    """Install what is missing of `parts`; part → its folder. Does nothing if all are there.

    `versions` as `read_versions` gives them. `prefix` is where the parts' folders go instead of
    the cache, each with a link under its plain name (for images).

    Raises:
        SetupError: a part could not be installed; what was finished stays.
    """
    return ensure_recipes([recipe(part, versions) for part in parts], say, prefix)


def ensure_recipes(
    recipes: Sequence[Recipe], say: Say, prefix: Path | None = None
) -> dict[str, Path]:
    """`ensure` for recipes."""
    home = prefix or cache.root() / "parts"
    folders = {r.part: home / r.folder_name for r in recipes}
    if _missing(recipes, folders):
        with cache.locked(cache.root(), say) as lock:
            home.mkdir(parents=True, exist_ok=True)
            if left := cache.clear_unfinished(home):
                say(f"an earlier set-up was broken off; what it left is removed: {', '.join(left)}")
            # Asked again: the set-up that we waited for may have brought them.
            missing = _missing(recipes, folders)
            _require_programs(missing)
            _install_all(missing, folders, say, lock)
    if prefix:
        for part, folder in folders.items():
            _link(prefix / part, folder.name)
    return folders


def _missing(recipes: Sequence[Recipe], folders: Mapping[str, Path]) -> list[Recipe]:
    return [r for r in recipes if not folders[r.part].is_dir()]


def _require_programs(recipes: Sequence[Recipe]) -> None:
    absent = {
        program: r.part for r in recipes for program in r.needs if shutil.which(program) is None
    }
    if absent:
        needs = ", ".join(f"{program} (for {part})" for program, part in absent.items())
        raise SetupError(
            f"Not on PATH: {needs}. ./race installs these with apt on Debian and Ubuntu; "
            "racetrack/install/apt-packages.txt lists the packages. Install them, then try again."
        )


def _install_all(
    recipes: Sequence[Recipe], folders: Mapping[str, Path], say: Say, lock: int
) -> None:
    children = Children()
    pool = ThreadPoolExecutor(max_workers=max(1, len(recipes)))
    began = {r.part: time.monotonic() for r in recipes}
    try:
        running = {
            pool.submit(_install, r, folders[r.part], say, children, lock): r.part for r in recipes
        }
        _watch(running, began, folders, say)
    except BaseException:
        # Ctrl-C included: nothing of ours keeps running, and nothing half-made counts.
        children.stop()
        raise
    finally:
        pool.shutdown(wait=True)


def _watch(
    running: dict[Future[None], str],
    began: Mapping[str, float],
    folders: Mapping[str, Path],
    say: Say,
) -> None:
    """Wait for all, saying now and then what is still at work; then raise the first failure."""
    failures: list[BaseException] = []
    while running:
        done, _ = wait(running, timeout=HEARTBEAT_S, return_when=FIRST_COMPLETED)
        for future in done:
            del running[future]
            if error := future.exception():
                failures.append(error)
        if not done:
            at_work = [
                f"{part} ({time.monotonic() - began[part]:.0f} s, "
                f"{cache.size_mb(unfinished(folders[part]))} MB)"
                for part in running.values()
            ]
            say(f"still at work: {', '.join(at_work)}")
    for failure in failures:
        if not isinstance(failure, SetupError):
            raise failure
    if failures:
        raise SetupError(
            "\n".join(str(failure) for failure in failures)
            + "\n  If that was the network: mend it and call again, finished parts and downloads "
            "are kept. Where this can't be installed, Docker serves."
        )


def unfinished(folder: Path) -> Path:
    """Where a part is made before it is complete: on the same file system, to be renamed."""
    return folder.with_name(cache.UNFINISHED + folder.name)


def _install(r: Recipe, folder: Path, say: Say, children: Children, lock: int) -> None:
    began = time.monotonic()
    making = unfinished(folder)
    downloads = cache.root() / "downloads"
    log = cache.root() / "log" / f"{r.part}.log"
    scratch = making.with_name(making.name + cache.SCRATCH)
    for path in (making, scratch, downloads, log.parent):
        path.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    say(f"{r.part} {r.label}: {r.why}; up to {r.download_mb} MB to download")
    try:
        runner = Runner(
            r.part, log=log, scratch=scratch, say=say, children=children, keep_open=(lock,)
        )
        version = r.build(Site(making, folder, downloads, runner, say))
        (making / "VERSION").write_text(f"{version}\n")
        if children.stopped.is_set():
            raise Stopped
        making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)  # the next set-up clears what this leaves
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    took_s = time.monotonic() - began
    say(f"{r.part} {version}: ready after {took_s:.1f} s, {cache.size_mb(folder)} MB")


def _link(link: Path, target: str) -> None:
    """Point `link` at `target`, replacing what it pointed at in one step."""
    beside = link.with_name(f"{cache.UNFINISHED}link-{link.name}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(link)

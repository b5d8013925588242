"""Finds the recipes of parts (components of the stack) by name, and installs parts in parallel. A
part is installed completely or not at all."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ALL_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import cache as cached
from pathlib import Path

from racetrack import integrity, plugins
from racetrack.errors import SetupError
from racetrack.install import cache, central, debian, npm, pypi
from racetrack.install.commands import Children, Runner, Say, Stopped
from racetrack.install.recipe import Installs, Make, Recipe, Site

HEARTBEAT_S = 10.0


def recipe(part: str, versions: Mapping[str, str]) -> Recipe:
    """Return the recipe of a part; `versions` come from `read_versions`.

    Raises:
        SetupError: there is no such part.
    """
    install = {**_needed(), **_on_request()}.get(part)
    if install is None:
        known = ", ".join((*parts(), *on_request()))
        raise SetupError(f"There is no part {part!r}. The parts are: {known}.")
    return install(versions)


def parts() -> tuple[str, ...]:
    """Return the names of all parts that the native runtime needs."""
    return tuple(_needed())


def on_request() -> tuple[str, ...]:
    """Return the names of all other parts, which are installed only if they are named."""
    return tuple(_on_request())


# Functions instead of constants, to avoid a circular import: the engines' recipes import this
# package.
@cached
def _needed() -> Mapping[str, Make]:
    return {
        # All parts are installed in parallel; start with the slowest.
        "harness": lambda _: pypi.harness(),
        **{part: make for brought in _of_engines() for part, make in brought.parts.items()},
        "mysql": lambda _: debian.mysql(),
        "kafka": central.kafka,
        "registry": central.registry,
        "nginx": lambda _: debian.nginx(),
        "redis": lambda _: debian.redis(),
        "debezium": central.debezium,
        "loadgen": lambda _: pypi.loadgen(),
    }


@cached
def _on_request() -> Mapping[str, Make]:
    return {
        "tests": lambda _: pypi.tests(),
        "web": lambda _: npm.web(),
        "serve": lambda _: pypi.serve(),
        "base": lambda _: debian.base(),
        "compose": lambda _: debian.compose(),
        "kubectl": lambda _: debian.kubectl(),
        "kcat": lambda _: debian.kcat(),
        **{part: make for brought in _of_engines() for part, make in brought.on_request.items()},
    }


def _of_engines() -> list[Installs]:
    return [module.INSTALLS for module in plugins.of_all("recipe").values()]


def folder_of(part: str, versions: Mapping[str, str]) -> Path | None:
    """Return the folder of a part, or None if it is not installed or is damaged."""
    folder = cache.root() / "parts" / recipe(part, versions).folder_name
    return folder if integrity.is_usable(folder) else None


def examine(parts: Sequence[str], versions: Mapping[str, str]) -> str:
    """Compare installed parts with the hashes of their files. Return a message that names the
    damaged parts, which the next call of `ensure` replaces; an empty string if there are none."""
    return integrity.examine_all(filter(None, (folder_of(part, versions) for part in parts)))


def ensure(
    parts: Sequence[str],
    versions: Mapping[str, str],
    say: Say,
    prefix: Path | None = None,
    *,
    keep_packages: bool = False,
) -> dict[str, Path]:
    """Install those of `parts` that are missing; return part → folder.

    `versions` come from `read_versions`. With `prefix`, the folders are created there instead of in
    the cache, each with a link named like the part (for images). `keep_packages` keeps unpacked
    Python packages for parts that are installed next and share them.

    Raises:
        SetupError: a part could not be installed; finished parts stay.
    """
    recipes = [recipe(part, versions) for part in parts]
    return ensure_recipes(recipes, say, prefix, keep_packages=keep_packages)


def ensure_recipes(
    recipes: Sequence[Recipe],
    say: Say,
    prefix: Path | None = None,
    *,
    keep_packages: bool = False,
) -> dict[str, Path]:
    """Install parts from their recipes; otherwise like `ensure`."""
    with fetching_recipes(recipes, say, prefix, keep_packages=keep_packages) as coming:
        wait(coming.values())
    folders = {part: folder.result() for part, folder in coming.items()}
    if prefix:
        for part, folder in folders.items():
            _link(prefix / part, folder.name)
    return folders


def fetching(
    parts: Sequence[str], versions: Mapping[str, str], say: Say
) -> AbstractContextManager[Mapping[str, Future[Path]]]:
    """Install those of `parts` that are missing in the background; yield part → future folder.

    Leaving the context waits for all parts; leaving it by an exception interrupts the installation.

    Raises:
        SetupError: a part could not be installed; finished parts stay.
    """
    return fetching_recipes([recipe(part, versions) for part in parts], say)


@contextmanager
def fetching_recipes(
    recipes: Sequence[Recipe],
    say: Say,
    prefix: Path | None = None,
    *,
    keep_packages: bool = False,
) -> Iterator[Mapping[str, Future[Path]]]:
    """Install parts from their recipes in the background; otherwise like `fetching`."""
    parts = cache.root() / "parts"
    tools = {tool.part: tool for r in recipes for tool in r.tools}
    folders = {
        **{tool.part: parts / tool.folder_name for tool in tools.values()},
        **{r.part: (prefix or parts) / r.folder_name for r in recipes},
    }
    if not _missing(recipes, folders):
        yield {r.part: _there(folders[r.part]) for r in recipes}
        return
    with cache.locked(cache.root(), say) as lock:
        for home in {folder.parent for folder in folders.values()}:
            home.mkdir(parents=True, exist_ok=True)
            if left := cache.clear_unfinished(home):
                say(f"removed what an interrupted set-up left: {', '.join(left)}")
        # Check again: another set-up may have installed them while this one waited for the lock.
        missing = _missing(recipes, folders)
        needed = {tool.part: tool for r in missing for tool in r.tools}
        missing = [*_missing(list(needed.values()), folders), *missing]
        _remove_damaged([folders[r.part] for r in missing], say)
        _require_programs(missing)
        installation = _Installation(missing, folders, say, lock)
        with contextmanager(installation.carried_out)() as coming:
            yield {r.part: coming[r.part] for r in recipes}
        if not keep_packages:
            shutil.rmtree(cache.packages(), ignore_errors=True)


def _missing(recipes: Sequence[Recipe], folders: Mapping[str, Path]) -> list[Recipe]:
    return [r for r in recipes if not integrity.is_usable(folders[r.part])]


def _remove_damaged(missing: Sequence[Path], say: Say) -> None:
    for folder in filter(Path.is_dir, missing):
        say(f"{folder.name} is damaged and is replaced")
        # Renamed first, since a folder that is removed only in part may look complete.
        shutil.rmtree(folder.rename(unfinished(folder)))
        # Its files may be hard links to unpacked packages, which are damaged too then.
        shutil.rmtree(cache.packages(), ignore_errors=True)


def _there(folder: Path) -> Future[Path]:
    done: Future[Path] = Future()
    done.set_result(folder)
    return done


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


class _Installation:
    """Installation of several recipes in parallel, one thread per recipe."""

    def __init__(
        self, recipes: Sequence[Recipe], folders: Mapping[str, Path], say: Say, lock: int
    ) -> None:
        self._folders, self._say, self._lock = folders, say, lock
        self._children = Children()
        self._pool = ThreadPoolExecutor(max_workers=len(recipes) + 1)
        # The future of a part is finished already, unless the part is being installed.
        self._coming = {part: _there(folder) for part, folder in folders.items()}
        self._began: dict[str, float] = {}
        self._running: dict[str, Future[Path]] = {}
        for r in recipes:  # tools first, since other parts wait for them
            self._running[r.part] = self._coming[r.part] = self._pool.submit(self._bring, r)
        self._heartbeat = self._pool.submit(self._report_progress)

    def carried_out(self) -> Iterator[Mapping[str, Future[Path]]]:
        """Yield part → future folder, then wait for all parts.

        Raises:
            SetupError: a part could not be installed.
        """
        try:
            yield self._coming
            wait(self._running.values())
        except BaseException as error:
            # On any error and on Ctrl-C: end all child processes; unfinished parts are removed.
            self._children.stop()
            self._pool.shutdown()
            if isinstance(error, SetupError):
                self._raise_failures()
            raise
        self._pool.shutdown()
        self._raise_failures()

    def _bring(self, r: Recipe) -> Path:
        tools = {tool.part: self._coming[tool.part].result() for tool in r.tools}
        self._began[r.part] = time.monotonic()
        try:
            _install(r, self._folders[r.part], tools, self._say, self._children, self._lock)
        except SetupError as error:
            if damage := integrity.examine_all(tools.values()):
                raise SetupError(f"{damage}\n{error}") from error
            raise
        return self._folders[r.part]

    def _report_progress(self) -> None:
        """Report every HEARTBEAT_S which parts are still being installed."""
        while True:
            _, running = wait(self._running.values(), HEARTBEAT_S, return_when=ALL_COMPLETED)
            if not running or self._children.stopped.is_set():
                return
            at_work = [
                f"{part} ({time.monotonic() - began:.0f} s, {_size_mb(self._folders[part])} MB)"
                for part, began in list(self._began.items())
                if not self._running[part].done()
            ]
            self._say(f"still installing: {', '.join(at_work)}")

    def _raise_failures(self) -> None:
        failures = [e for future in self._running.values() if (e := future.exception())]
        failures = [e for e in dict.fromkeys(failures) if not isinstance(e, Stopped)]
        for failure in failures:
            if not isinstance(failure, SetupError):
                raise failure
        if failures:
            raise SetupError(
                "\n".join(str(failure) for failure in failures)
                + "\n  If the network failed, call again: finished parts are kept. "
                "If this can't be installed, use Docker."
            ) from None


def _size_mb(folder: Path) -> int:
    """Return the size of an unfinished part in MB, including its downloads."""
    making = unfinished(folder)
    return cache.size_mb(making) + cache.size_mb(_scratch(making))


def _scratch(making: Path) -> Path:
    return making.with_name(making.name + cache.SCRATCH)


def unfinished(folder: Path) -> Path:
    """Return the folder in which a part is made; it is renamed to `folder` when complete."""
    return folder.with_name(cache.UNFINISHED + folder.name)


def _install(
    r: Recipe, folder: Path, tools: Mapping[str, Path], say: Say, children: Children, lock: int
) -> None:
    began = time.monotonic()
    making = unfinished(folder)
    log = cache.root() / "log" / f"{r.part}.log"
    scratch = _scratch(making)
    for path in (making, scratch, log.parent):
        path.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    say(f"{r.part} {r.label}: {r.why}; up to {r.download_mb} MB to download")
    try:
        runner = Runner(
            r.part, log=log, scratch=scratch, say=say, children=children, keep_open=(lock,)
        )
        version = r.build(Site(making, folder, scratch, runner, say, tools))
        (making / "VERSION").write_text(f"{version}\n")
        integrity.add_hashes(making, integrity.files_in(making))
        if children.stopped.is_set():
            raise Stopped
        making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)  # the next set-up removes what remains
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    took_s = time.monotonic() - began
    say(f"{r.part} {version}: ready after {took_s:.1f} s, {cache.size_mb(folder)} MB")


def _link(link: Path, target: str) -> None:
    """Point `link` at `target`, atomically replacing its old target."""
    beside = link.with_name(f"{cache.UNFINISHED}link-{link.name}")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(link)

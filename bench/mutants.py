"""Measures how many seeded faults in racetrack/analysis and racetrack/verify the tests find.

    python bench/mutants.py draw [--count 200] [--seed 48] >bench/mutants.jsonl
    python bench/mutants.py run FOLDER [--count 200]

`run` collects the tests of the work tree in which it is started. For each mutant, a child process
replaces the code of the function, and runs the tests that execute its line until one fails. FOLDER
keeps results: a run that was stopped goes on. A mutant is found by its function and the text that
it replaces; `run` names those whose text is gone. (Mutation tools start and collect anew for every
mutant, and run all tests: hours instead of minutes.)
"""

import argparse
import ast
import functools
import gc
import inspect
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

WORK_TREE = Path.cwd()
REPO, LIST = Path(__file__).resolve().parents[1], Path(__file__).with_suffix(".jsonl")
PACKAGES = ("racetrack/analysis/", "racetrack/verify/")
VIEWS = [f"racetrack/workloads/{name}/tests/test_views.py" for name in ("shop", "ads")]
TESTS = ["tests/analysis", "tests/verify", "tests/report", *VIEWS]
SLOW_TOO = ("tests/verify/", *VIEWS)  # elsewhere, slow tests would take an hour
MOST_CPU_S = 600  # a mutant may loop endlessly
OPPOSITES: list[tuple[Any, Any]] = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
]
OPPOSITES += [(ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)]
SWAPS: dict[Any, Any] = {**dict(OPPOSITES), **{b: a for a, b in OPPOSITES}, ast.FloorDiv: ast.Div}
KEY = ("file", "function", "nth", "old", "new")
EXECUTED: set[str] = set()
LOCK = threading.Lock()  # for the work tree


def mutants(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the mutants of a file: each replaces `old`, which starts at the byte `start`. It is the
    `nth` piece of code with this text in `function`."""
    text = path.read_text()
    lines = text.encode().splitlines(keepends=True)
    seen = Counter[tuple[str, str | None]]()
    for function, node in nodes(ast.parse(text)):
        news = list(changed(node))
        if not news:
            continue
        old = ast.get_source_segment(text, node)
        start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
        for new in news:
            shown = ast.unparse(new)
            yield {
                "file": str(path.relative_to(REPO)),
                "function": function,
                "nth": seen[function, old],
                "old": old,
                "new": shown if isinstance(new, ast.Constant | ast.Return) else f"({shown})",
                "line": node.lineno,
                "until": node.end_lineno,
                "start": start,
            }
        seen[function, old] += 1


def nodes(node: ast.AST, function: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the nodes that run, each with the qualified name of its function or class: no
    annotations, decorators, or parts of f-strings."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from ((function, child), *nodes(child, function))


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield faulty forms of a comparison, operation, condition, constant or return."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            ops = [*node.ops[:at], SWAPS[type(operator)](), *node.ops[at + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPS[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | type(None)):
        yield ast.Return(None)


def listed() -> list[dict[str, Any]]:
    """Return the mutants in the list, each at its place in the code of today."""
    wanted = [json.loads(line) for line in LIST.read_text().splitlines()]
    paths = {REPO / mutant["file"] for mutant in wanted}
    found = {key(mutant): mutant for path in paths if path.exists() for mutant in mutants(path)}
    if gone := [mutant for mutant in wanted if key(mutant) not in found]:
        raise SystemExit("\n".join(["Not in the code any more; draw others:", *map(str, gone)]))
    return [found[key(mutant)] for mutant in wanted]


def key(mutant: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a mutant from all others, wherever its code has moved within a file."""
    return tuple(mutant[name] for name in KEY)


@functools.cache
def original(file: str) -> bytes:
    """Return the text of a file before any mutant is written into it."""
    return Path(file).read_bytes()


def mutated(mutant: dict[str, Any]) -> bytes:
    """Return the text of a mutant's file."""
    text, start = original(mutant["file"]), int(mutant["start"])
    old, new = str(mutant["old"]).encode(), str(mutant["new"]).encode()
    return text[:start] + new + text[start + len(old) :]


def functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the functions of a module and its classes, without those within functions."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            is_function = inner.co_flags & inspect.CO_OPTIMIZED
            yield from [inner] if is_function else functions(inner)


def patch(mutant: dict[str, Any]) -> bool:
    """Give a loaded function a mutant's code; return False if the mutant is in no function."""
    path, is_patched = str(Path(mutant["file"]).resolve()), False
    codes = {
        (code.co_qualname, code.co_firstlineno): code
        for code in functions(compile(mutated(mutant), path, "exec"))
    }
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == path:
            old = function.__code__
            place = (old.co_qualname, old.co_firstlineno)
            if codes.get(place, old) != old:
                function.__code__, is_patched = codes[place], True
    return is_patched


def in_child(job: Callable[[], int]) -> int:
    """Return a job's exit code in a child process; a signal's if it crashes or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        if child := os.fork():
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
            os._exit(job())
        finally:
            os._exit(1)


@functools.cache
def with_mutants(file: str) -> str:
    """Return the path of a file with mutants in the work tree, or nothing."""
    path = file.removeprefix(f"{WORK_TREE}/")
    return path if path.startswith(PACKAGES) else ""


def trace(frame: FrameType, _event: str, _argument: object) -> Any:
    """Note the executed lines of files with mutants."""
    if path := with_mutants(frame.f_code.co_filename):
        EXECUTED.add(f"{path}:{frame.f_lineno}")
        return trace
    return None


class Runs:
    """Plugin of pytest that runs the collected tests on each mutant."""

    def __init__(self, folder: Path, count: int, workers: int) -> None:
        self.folder, self.workers = folder, workers
        self.mutants = listed()[:count]
        self.session: Any = None
        self.lines: dict[str, list[str]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Let tests by examples be the same each time, and end with the first failure."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "mutants", deadline=None, derandomize=True, database=None, phases=phases
        )
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out slow tests."""
        items[:] = [
            item
            for item in items
            if item.nodeid.startswith(SLOW_TOO) or not item.get_closest_marker("slow")
        ]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find the lines that each test executes; run the tests on the mutants."""
        self.session = session
        files = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in session.items))
        with ThreadPoolExecutor(self.workers) as pool:
            found = sorted(pool.map(self.lines_of, files), key=lambda of: float(of["s"]))
            self.lines = {name: lines for of in found for name, lines in of["tests"].items()}
            results = list(pool.map(self.fate, range(len(self.mutants))))
        killed = sum(result["killed"] for result in results)
        print(f"{killed} of {len(results)} mutants killed: {killed / len(results):.1%}")
        return True

    def run(self, items: list[Any]) -> Iterator[tuple[str, bool]]:
        """Run tests; yield the id of each, and whether it failed."""
        for item, following in pairwise([*items, None]):
            failed = self.session.testsfailed
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            yield item.nodeid, self.session.testsfailed > failed

    def lines_of(self, file: str) -> Any:
        """Return how long a file of tests takes, and the lines of each test that passes. Those of
        the first test hold for all, because they may be those of common fixtures."""
        kept = self.folder / f"{file.replace('/', '.')}.json"

        def note() -> int:
            threading.settrace(trace)
            sys.settrace(trace)
            began_s, found, common = time.monotonic(), dict[str, list[str]](), set[str]()
            of_file = [item for item in self.session.items if item.nodeid.startswith(f"{file}::")]
            for name, has_failed in self.run(of_file):
                common = common or {*EXECUTED}
                if not has_failed:
                    found[name] = sorted(common | EXECUTED)
                EXECUTED.clear()
            sys.settrace(None)
            kept.write_text(json.dumps({"s": time.monotonic() - began_s, "tests": found}))
            return 0

        if not kept.exists():
            in_child(note)
        return json.loads(kept.read_text())

    def fate(self, number: int) -> Any:
        """Return a mutant with what became of it."""
        file, mutant = self.folder / f"{number}.json", self.mutants[number]
        if not file.exists():
            began_s = time.monotonic()
            killer = self.folder / f"{number}.killer"
            code = in_child(lambda: self.test(mutant, killer))
            if code == 2:
                code = self.test_anew(mutant)
            by = killer.read_text() if killer.exists() else ""
            result = {**mutant, "killed": code != 0, "by": by, "s": time.monotonic() - began_s}
            file.write_text(json.dumps(result))
        return json.loads(file.read_text())

    def test(self, mutant: dict[str, Any], killer: Path) -> int:
        """Return 1 if a test finds the mutant, 0 if none does, and 2 if it is in no function."""
        if not patch(mutant):
            return 2
        at = {f"{mutant['file']}:{line}" for line in range(mutant["line"], mutant["until"] + 1)}
        by_name = {item.nodeid: item for item in self.session.items}
        chosen = [by_name[name] for name, lines in self.lines.items() if at.intersection(lines)]
        for name, has_failed in self.run(chosen):
            if has_failed:
                killer.write_text(name)
                return 1
        return 0

    def test_anew(self, mutant: dict[str, Any]) -> int:
        """Return whether the tests find a mutant in what a module does when it is imported."""
        path, in_verify = Path(mutant["file"]), mutant["file"].startswith(PACKAGES[1])
        names = [
            name for name, lines in self.lines.items() if any(mutant["file"] in at for at in lines)
        ]
        files = dict.fromkeys(name.partition("::")[0] for name in names)
        chosen = [file for file in files if file.startswith(SLOW_TOO) or not in_verify]
        marks = "not e2e" if in_verify else "not e2e and not slow"
        with LOCK:
            path.write_bytes(mutated(mutant))
            try:
                command = [sys.executable, "-m", "pytest", "-xqm", marks, "--tb=no", *chosen]
                return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
            finally:
                path.write_bytes(original(mutant["file"]))


def main() -> None:
    """Draw mutants or run tests on them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["draw", "run"])
    parser.add_argument("folder", type=Path, nargs="?", help="of the results of `run`")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.action == "run":
        arguments.folder.mkdir(parents=True, exist_ok=True)
        options = ["-qsm", "not e2e", "--tb=no", "-p", "no:cacheprovider", *TESTS]
        runs = Runs(arguments.folder.resolve(), arguments.count, arguments.workers)
        sys.exit(pytest.main(options, plugins=[runs]))
    else:
        files = [path for package in PACKAGES for path in sorted((REPO / package).glob("*.py"))]
        every = [mutant for path in files for mutant in mutants(path)]
        for mutant in random.Random(arguments.seed).sample(every, arguments.count):  # noqa: S311
            print(json.dumps(dict(zip(KEY, key(mutant), strict=True)), ensure_ascii=False))


if __name__ == "__main__":
    main()

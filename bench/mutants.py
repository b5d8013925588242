"""Measures how many seeded faults in racetrack/analysis and racetrack/verify the tests find.

    python bench/mutants.py draw [--count 200] [--seed 48] >bench/mutants.jsonl
    python bench/mutants.py run FOLDER [--count 200] [--commit HEAD]

`run` applies each listed mutant to a copy of the commit, and runs the test files that execute its
line, the fastest first, until a test fails. FOLDER keeps results: a run that was stopped goes on.
Mutation tools do neither, so a script on top of them would be as long as this one.
"""

import argparse
import ast
import functools
import inspect
import itertools
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

REPO, LINES = Path(__file__).resolve().parents[1], Path("executed.json").resolve()
PACKAGES = ("racetrack/analysis/", "racetrack/verify/")
TESTS = [f"tests/{of}" for of in ("analysis", "verify", "report", "run", "plan", "live", "cli")]
TESTS += ["racetrack/workloads/*/tests"]
SLOW_TOO = ("tests/verify/", "racetrack/workloads/")  # elsewhere, slow tests would take hours
OPPOSITES = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)]
OPPOSITES += [(ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)]
SWAPS: dict[Any, Any] = {**dict(OPPOSITES), **{b: a for a, b in OPPOSITES}, ast.FloorDiv: ast.Div}
EXECUTED: set[str] = set()


def mutants(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the mutants of a file: each replaces `old`, which starts at the byte `start`."""
    text = path.read_text()
    lines = text.encode().splitlines(keepends=True)
    for node in nodes(ast.parse(text)):
        start = sum(map(len, lines[: getattr(node, "lineno", 1) - 1]))
        for new in changed(node):
            shown = ast.unparse(new)
            yield {
                "file": str(path.relative_to(REPO)),
                "line": node.lineno,
                "until": node.end_lineno,
                "start": start + node.col_offset,
                "old": ast.get_source_segment(text, node),
                "new": shown if isinstance(new, ast.Constant | ast.Return) else f"({shown})",
            }


def nodes(node: ast.AST) -> Iterator[Any]:
    """Yield the nodes that run: no annotations, decorators, or parts of f-strings."""
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from (child, *nodes(child))


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


def fail(copy: Path, timeout_s: float, tests: Sequence[str], *more: str, **given: str) -> bool:
    """Return whether one of these files of tests fails, or takes longer."""
    environment = {**os.environ, "PYTHONPATH": str(REPO / "bench"), **given}
    for mark, files in itertools.groupby(tests, lambda test: test.startswith(SLOW_TOO)):
        marks = "not e2e" if mark else "not e2e and not slow"
        words = ["-m", "pytest", "-xqm", marks, "-p", "no:cacheprovider", *more, *files]
        command, out = [sys.executable, *words], subprocess.DEVNULL
        try:
            subprocess.run(
                command, cwd=copy, env=environment, stdout=out, timeout=timeout_s, check=True
            )
        except subprocess.SubprocessError:
            return True
    return False


def executed(test: str, copy: Path) -> Any:
    """Return how long a file of tests takes and which lines it executes, unless it fails."""
    began_s = time.monotonic()
    if fail(copy, 600, [test], "-p", "mutants"):
        return {"s": 0, "lines": []}
    return {"s": time.monotonic() - began_s, "lines": json.loads((copy / LINES.name).read_text())}


def outcome(mutant: dict[str, Any], known: dict[str, Any], copy: Path) -> Any:
    """Return a mutant with what became of it: whether a test failed, and after how long."""
    path, name, old = copy / mutant["file"], mutant["file"], mutant["old"].encode()
    before, rest = (text := path.read_bytes())[: mutant["start"]], text[mutant["start"] :]
    if not rest.startswith(old):
        raise ValueError(f"{name}:{mutant['line']} is not as it was when it was drawn.")
    at = {f"{name}:{line}" for line in range(mutant["line"], mutant["until"] + 1)}
    tests = [test for test in known if at & {*known[test]["lines"]}] or [
        test for test in known if any(line.startswith(name) for line in known[test]["lines"])
    ]  # no function's line is executed where a module is imported
    tests.sort(key=lambda test: (test.startswith(SLOW_TOO), known[test]["s"]))
    began_s, timeout_s = time.monotonic(), 30 + 3 * sum(known[test]["s"] for test in tests)
    path.write_bytes(before + mutant["new"].encode() + rest[len(old) :])
    try:
        killed = fail(copy, timeout_s, tests, PYTHONDONTWRITEBYTECODE="1")
    finally:
        path.write_bytes(text)
    return {**mutant, "killed": killed, "s": time.monotonic() - began_s}


def run(out: Path, count: int, commit: str) -> None:
    """Run a commit's tests on each mutant; print how many mutants they find."""
    archive = subprocess.run(["git", "archive", commit], cwd=REPO, check=True, capture_output=True)
    listed = (REPO / "bench/mutants.jsonl").read_text().splitlines()[:count]
    copies: queue.Queue[Path] = queue.Queue()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        for copy in (Path(folder, name) for name in "ab"):
            copy.mkdir()
            subprocess.run(["tar", "x"], cwd=copy, input=archive.stdout, check=True)
            copies.put(copy)
        paths = [path for name in TESTS for path in sorted(copy.glob(f"{name}/test_*.py"))]
        tests = [str(path.relative_to(copy)) for path in paths]

        def kept(name: str, job: Callable[[Path], Any]) -> Any:
            """Return the result of a job in a free copy, or what an earlier run has kept of it."""
            file = out / f"{name.replace('/', '.')}.json"
            if not file.exists():
                copy = copies.get()
                try:
                    file.write_text(json.dumps(job(copy)))
                finally:
                    copies.put(copy)
            return json.loads(file.read_text())

        done = pool.map(lambda test: kept(test, functools.partial(executed, test)), tests)
        known = dict(zip(tests, done, strict=True))
        print("No quick tests, or failing:", *(test for test in tests if not known[test]["s"]))
        jobs = [functools.partial(outcome, json.loads(line), known) for line in listed]
        results = list(pool.map(kept, map(str, range(len(jobs))), jobs))
    killed = sum(result["killed"] for result in results)
    print(f"{commit}: {killed} of {len(results)} killed, {killed / len(results):.1%}")


@functools.cache
def watched(code: CodeType) -> str:
    """Return the path of a function's file, if it has mutants."""
    path = code.co_filename.removeprefix(f"{LINES.parent}/")
    return path if path.startswith(PACKAGES) and code.co_flags & inspect.CO_OPTIMIZED else ""


def trace(frame: FrameType, _event: str, _argument: object) -> Any:
    """Note the executed lines."""
    if path := watched(frame.f_code):
        EXECUTED.add(f"{path}:{frame.f_lineno}")
    return trace if path else None


def pytest_configure() -> None:
    """Begin to note executed lines, where pytest loads this file as a plugin."""
    threading.settrace(trace)
    sys.settrace(trace)


def pytest_unconfigure() -> None:
    """Write the executed lines."""
    LINES.write_text(json.dumps(sorted(EXECUTED)))


def main() -> None:
    """Draw mutants or run tests on them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["draw", "run"])
    parser.add_argument("folder", type=Path, nargs="?", help="of the results of `run`")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("--commit", default="HEAD")
    arguments = parser.parse_args()
    if arguments.action == "run":
        run(arguments.folder, arguments.count, arguments.commit)
    else:
        files = [path for package in PACKAGES for path in sorted((REPO / package).glob("*.py"))]
        every = [mutant for path in files for mutant in mutants(path)]
        for mutant in random.Random(arguments.seed).sample(every, arguments.count):  # noqa: S311
            print(json.dumps(mutant, ensure_ascii=False))


if __name__ == "__main__":
    main()

"""A workload is one folder: whatever it has names for, generator and harness have none."""

import re
from collections.abc import Iterator

import pytest

import workloads
from racetrack.errors import UsageError
from racetrack.settings import REPO
from racetrack.workload import find_workload
from workloads import side

# These names are not a workload's own: the main stream's stand at the control port, in settings and
# in `run.json`, whatever is raced on; purchases stand in `run.json` and `purchases.csv`; the others
# are words of English.
SHARED = re.compile(r"pageviews.*|purchases|users|items")
# Files that name one for now: the password's setting has its name in .env and docker-compose.yml,
# and every workload's database has that password.
EXCEPTIONS = {
    "racetrack/settings.py": ("mysql_shop_password",),
    "racetrack/stack/services/loadgen.py": ("mysql_shop_password",),
    "racetrack/stack/services/mysql.py": ("mysql_shop_password",),
    "racetrack/verify/mysql.py": ("mysql_shop_password",),
}


def names(workload: str) -> set[str]:
    """What a workload calls its own."""
    harness = find_workload(workload)
    topics = [topic.name for topic in (harness.topic, *harness.topics)]
    found = {workload, *topics, *harness.tables, *(view.name for view in harness.views)}
    return {name for name in found if not SHARED.fullmatch(name)}


def lines() -> Iterator[tuple[str, str]]:
    """(file, line) of all code of generator and harness."""
    for room in ("racetrack", "loadgen"):
        for path in sorted((REPO / room).rglob("*")):
            name = str(path.relative_to(REPO))
            if path.suffix in {".py", ".sh", ".sql"}:
                yield from ((name, line) for line in path.read_text().splitlines())


@pytest.mark.parametrize("workload", workloads.names())
def test_neither_generator_nor_harness_names_a_workload(workload: str) -> None:
    # As a word, or as a part of one: SHOP_USERS, shop_users.
    own = re.compile(rf"(?<![a-z])({'|'.join(sorted(names(workload)))})s?(?![a-z])", re.IGNORECASE)
    found = []
    for file, line in lines():
        rest = line
        for excepted in EXCEPTIONS.get(file, ()):
            rest = rest.replace(excepted, "")
        if own.search(rest):
            found.append(f"{file}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("workload", workloads.names())
def test_a_workload_has_both_sides_and_all_of_its_sql(workload: str) -> None:
    assert callable(side(workload, "load").make)
    harness = find_workload(workload)
    assert harness.name == workload
    assert {file.stem for file in harness.sql.glob("*.sql")} == {v.name for v in harness.views}
    assert {harness.progress, *harness.tables} <= {view.name for view in harness.views}
    assert harness.watched_table is None or harness.watched_table in harness.tables


def test_one_that_is_not_there_is_named_with_those_that_are() -> None:

    with pytest.raises(
        UsageError, match=r"WORKLOAD=ship: there is no workload 'ship', but: .*shop"
    ):
        find_workload("ship")

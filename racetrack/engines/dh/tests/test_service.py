"""Tests of Deephaven as a native service: its version, and the classes into which it compiles
formulas, which are kept for later starts; and of decimals that it sends as bytes."""

import zipfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from racetrack.engines.dh import server
from racetrack.engines.dh.decimals import with_decimals
from racetrack.engines.dh.recipe import LOCK
from racetrack.install import pypi
from racetrack.install.versions import read_versions

CLASS = "io/deephaven/temp/c_{}v61_0/Formula.class"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Return the folder of a server's script session."""
    folder = tmp_path / "data/cache/script-session-classes/of-a-session"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def formulas(tmp_path: Path) -> Path:
    return tmp_path / "made/formulas.zip"


def compiled(session: Path, name: str) -> str:
    """Write a class file as Deephaven does; return its name."""
    file = session / CLASS.format(name)
    file.parent.mkdir(parents=True)
    file.write_bytes(name.encode())
    return CLASS.format(name)


def test_what_was_compiled_is_kept(session: Path, formulas: Path) -> None:
    name = compiled(session, "a")
    compiled(session / "temporaryCompilationDirectory1", "unfinished")
    server.keep_formulas(formulas, session)
    assert server.kept_formulas(formulas) == {name}
    assert zipfile.ZipFile(formulas).read(name) == b"a"
    assert list(formulas.parent.iterdir()) == [formulas]


@pytest.mark.parametrize("damage", [b"", b"no zip file"])
def test_a_damaged_file_is_replaced(session: Path, formulas: Path, damage: bytes) -> None:
    formulas.parent.mkdir()
    formulas.write_bytes(damage)
    assert server.kept_formulas(formulas) == set()
    name = compiled(session, "a")
    server.keep_formulas(formulas, session)
    assert server.kept_formulas(formulas) == {name}


def test_client_and_server_are_the_version_of_env() -> None:
    version = read_versions(environ={})["DEEPHAVEN_VERSION"]
    assert pypi.pinned(LOCK, "deephaven-server") == version
    assert pypi.pinned(pypi.HARNESS_LOCK, "pydeephaven") == version
    assert pypi.pinned(pypi.HARNESS_LOCK, "pydeephaven-ticking") == version


# ---- Decimals -----------------------------------------------------------------------------------

BIG_DECIMAL = {b"deephaven:type": b"java.math.BigDecimal"}


def sent(unscaled: int, scale: int) -> bytes:
    """Return a BigDecimal as Deephaven encodes it."""
    length = unscaled.bit_length() // 8 + 1
    return scale.to_bytes(4, "little", signed=True) + unscaled.to_bytes(length, "big", signed=True)


@pytest.mark.parametrize(
    ("unscaled", "scale", "value"),
    [
        (1234, 2, "12.34"),
        (5, -2, "500"),
        (10**35 + 1, 5, "1000000000000000000000000000000.00001"),
    ],
)
def test_a_big_decimal_is_read_exactly(unscaled: int, scale: int, value: str) -> None:
    column = pa.field("price", pa.binary(), metadata=BIG_DECIMAL)
    table = pa.table([pa.array([sent(unscaled, scale), None])], schema=pa.schema([column]))
    assert with_decimals(table).column("price").to_pylist() == [Decimal(value), None]

"""What a machine says of itself: two that do not do the same work are not called alike."""

from pathlib import Path

import pytest

from racetrack import machine
from racetrack.machine import describe

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: {family}
model\t\t: {model}
model name\t: AMD EPYC
stepping\t: 1

processor\t: 1
cpu family\t: 1
"""
ARM = """processor\t: 0
BogoMIPS\t: 243.75
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


def described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpuinfo: str) -> str:
    told = tmp_path / "cpuinfo"
    told.write_text(cpuinfo)
    monkeypatch.setattr(machine, "CPUINFO", told)
    return str(describe())


def test_processors_of_one_name_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    older = described(monkeypatch, tmp_path, X86.format(family=25, model=1))
    newer = described(monkeypatch, tmp_path, X86.format(family=26, model=2))
    assert older.startswith("AMD EPYC (family 25, model 1), ")
    assert newer.startswith("AMD EPYC (family 26, model 2), ")


def test_arm_numbers_its_processors_in_another_way(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "(implementer 0x41, part 0xd40), " in described(monkeypatch, tmp_path, ARM)


def test_a_machine_that_numbers_nothing_is_described_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "(" not in described(monkeypatch, tmp_path, "processor\t: 0\nmodel name\t: X\n")

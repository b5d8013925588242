"""`./race limit`: how long it may take is said first, and exit code 1 if no limit was found."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.limit_record import LimitRecord
from racetrack.run import limit
from racetrack.run.limit import PACE, Pace
from racetrack.run_record import Machine
from tests.some_engines import EXAMPLE


@pytest.mark.parametrize(("outcome", "code"), [("ok", 0), ("its lag swings", 1)])
def test_the_search_begins_and_warms_up_as_asked(
    monkeypatch: pytest.MonkeyPatch, outcome: str, code: int
) -> None:
    began: list[tuple[str, float, int]] = []

    class Search:
        """Finds this at once."""

        folder = Path("logs/found")

        def __init__(self, engine: str, *given: object) -> None:
            self._engine, self._pace = engine, given[-1]

        def run(self, start: int) -> LimitRecord:
            assert isinstance(self._pace, Pace)
            began.append((self._engine, self._pace.warm_up_s, start))
            return LimitRecord(
                engine=self._engine,
                runtime="native",
                machine=Machine(),
                tolerance_pct=5,
                outcome=outcome,
                keeps_up_with_pageviews_per_s=9,
                falls_behind_at_pageviews_per_s=10,
            )

    monkeypatch.setattr(limit, "LimitSearch", Search)
    typed = ["limit", EXAMPLE, "--start", "48000", "--warm-up", "180"]
    result = CliRunner().invoke(cli.race, typed)
    assert result.exit_code == code, result.output
    assert began == [(EXAMPLE, 180.0, 48_000)]
    said = result.output.splitlines()
    assert said[0].startswith("This takes about ")
    assert ("keeps up with 9" if outcome == "ok" else outcome) in said[-2]
    assert said[-1] == "  logs/found"


def test_a_longer_warm_up_makes_it_longer() -> None:
    least, most = PACE.expected_minutes()
    assert 5 < least < most < 60

"""Tests that a session's history is bounded and keeps its peaks."""

from racetrack.live.history import History


def test_a_history_is_bounded_and_peaks_remain() -> None:
    history = History(rows=300)
    for at_ms in range(10_000):
        lag_ms = {777: 5_000.0, 4_321: 9_000.0}.get(at_ms, float(at_ms % 7))
        history.add(at_ms, {"lag": lag_ms, "rate": 100.0 if at_ms % 3 else None})
    columns = history.as_columns()
    assert len(columns["at_ms"]) <= 300
    assert columns["at_ms"] == sorted(columns["at_ms"])
    assert columns["at_ms"][-1] == history.last_ms == 9_999
    assert max(columns["values"]["lag"]) == 9_000.0
    assert sorted(columns["values"]["lag"])[-2] == 5_000.0
    assert min(columns["values"]["lag"]) == 0.0
    assert columns["values"]["lag"][-50:] == [float(at % 7) for at in range(9_950, 10_000)]

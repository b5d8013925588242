"""The cases of the calibration, each defect alone, and the table of what was measured."""

from racetrack.results.defects import NO_PARTITION
from racetrack.run.calibration import CASES, NOISY


def test_the_whole_of_it_takes_less_than_seven_minutes() -> None:
    assert sum(case.takes_s for case in (*CASES, NOISY)) < 420


def test_an_engine_of_noisy_capacity_always_has_more_to_do() -> None:
    (noisy,) = (case for case in CASES if case.defect.capacity_noise_pct)
    assert noisy.pageviews_per_s > 1.2 * noisy.defect.mean_capacity_per_s
    assert noisy.defect.seed  # the same swings in every calibration


def test_the_stall_outlasts_the_samples_and_can_still_be_drained() -> None:
    stall = next(case for case in CASES if case.defect.stalled_partition != NO_PARTITION)
    begins_s = stall.defect.stall_after_s
    ends_s = begins_s + stall.defect.stall_for_s
    sampled_until_s = stall.wait_s + stall.samples
    assert begins_s < stall.wait_s
    assert sampled_until_s + 5 < ends_s < sampled_until_s + 20

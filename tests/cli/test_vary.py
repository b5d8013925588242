"""`./race vary`: a sweep over the values of one setting, each looked at before the first run."""

import pytest
from click.testing import CliRunner

from racetrack import cli
from racetrack.results.sweep import Sweep
from tests.some_engines import EXAMPLE


def test_each_value_is_in_the_plan(plans: list[Sweep]) -> None:
    typed = f"vary {EXAMPLE} CONNECT_HEAP 2g,4g --rate 5000 --repeat 1"
    result = CliRunner().invoke(cli.race, typed.split())
    assert result.exit_code == 0, result.output
    (plan,) = plans
    assert (plan.vary, plan.values) == ("CONNECT_HEAP", ("2g", "4g"))
    assert (plan.engines, plan.rates, plan.repeat) == ((EXAMPLE,), (5_000,), 1)


def test_popularity_can_be_varied(plans: list[Sweep]) -> None:
    typed = f"vary {EXAMPLE} SHOP_KEY_SKEW 0,0.8,1.2"
    result = CliRunner().invoke(cli.race, typed.split())
    assert result.exit_code == 0, result.output
    (plan,) = plans
    assert (plan.vary, plan.values) == ("SHOP_KEY_SKEW", ("0", "0.8", "1.2"))


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (f"vary {EXAMPLE} SHOP_KEY_SKEW 0,5", "SHOP_KEY_SKEW: '5' is out of range"),
        (f"vary {EXAMPLE} ADS_KEY_SKEW 0,1", "it is a setting of the workload ads"),
        (f"vary {EXAMPLE} CONNECT_HEAP 2g,much", "CONNECT_HEAP: "),
        (f"vary {EXAMPLE} NO_SUCH_SETTING 1,2", "There is no setting NO_SUCH_SETTING"),
        (f"vary {EXAMPLE} REDPANDA_MEMORY 1G,2G", "REDPANDA_MEMORY has no effect"),
    ],
)
def test_a_setting_that_can_not_be_varied_is_refused_before_the_first_run(
    typed: str, says: str, plans: list[Sweep]
) -> None:
    result = CliRunner().invoke(cli.race, typed.split())
    assert result.exit_code == 2
    assert says in result.output
    assert plans == []

"""The interval of a saving: it holds the truth as often as it says, and nothing is claimed of equal programs."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.diagnosis import Difference, Measured
from tfdoctor.trial import statistics
from tfdoctor.trial.statistics import Round

Floats = statistics.Floats


def blocks(
    step_ms: float, random: np.random.Generator, between: float = 0.02, within: float = 0.05
) -> Floats:
    """Return the blocks of a run; runs differ by a share of `between`, blocks in one by `within`."""
    run = step_ms * np.exp(random.normal(0, between))
    made: Floats = run * np.exp(random.normal(0, within, 20))
    return made


def rounds(factors: Sequence[float], random: np.random.Generator, count: int = 3) -> list[Round]:
    """Return rounds of variants whose steps are these factors of the program's."""
    return [
        Round(
            blocks(10, random),
            blocks(10, random),
            {str(factor): blocks(10 * factor, random) for factor in factors},
        )
        for _ in range(count)
    ]


def measured(made: list[Round], name: str) -> Measured:
    found = statistics.saving(made, name)
    assert found is not None
    return found


def test_intervals_hold_the_truth_in_95_of_100_trials() -> None:
    random = np.random.default_rng(1)
    trials = [measured(rounds([0.7], random), "0.7") for _ in range(200)]
    held = sum(one.low <= 0.3 <= one.high for one in trials)
    assert held >= 190
    assert float(np.median([(one.high - one.low) / 2 for one in trials])) <= 0.05


def test_quiet_steps_do_not_hide_that_runs_differ() -> None:
    """A bootstrap alone is too narrow where steps are steady and runs differ; both together are not."""
    random = np.random.default_rng(7)

    def run(step_ms: float) -> Floats:
        return blocks(step_ms, random, within=0.005)

    trials = [[Round(run(10), run(10), {"v": run(7)}) for _ in range(3)] for _ in range(200)]
    truth = float(np.log(0.7))
    alone = [statistics.bootstrap(made, "v", random) for made in trials]
    both = [measured(made, "v") for made in trials]
    assert sum(low <= truth <= high for low, high in alone) < 180
    assert sum(one.low <= 0.3 <= one.high for one in both) >= 190


def test_equal_programs_differ_in_at_most_5_of_100_trials() -> None:
    random = np.random.default_rng(2)
    trials = [measured(rounds([1.0], random), "1.0") for _ in range(200)]
    claims = [one for one in trials if one.difference is not Difference.NONE]
    assert len(claims) <= 10


@pytest.mark.parametrize(
    ("factor", "difference"),
    [(0.6, Difference.SAVES), (1.6, Difference.COSTS), (1.0, Difference.NONE)],
)
def test_what_a_trial_shows(factor: float, difference: Difference) -> None:
    found = measured(rounds([factor], np.random.default_rng(3)), str(factor))
    assert found.difference is difference
    assert found.share == pytest.approx(1 - factor, abs=0.06)


def test_noise_gets_no_figure() -> None:
    random = np.random.default_rng(4)
    noisy = [
        Round(blocks(10, random, 0.5), blocks(10, random, 0.5), {"v": blocks(10, random, 0.5)})
        for _ in range(3)
    ]
    assert measured(noisy, "v").difference is Difference.UNKNOWN


def test_drift_between_runs_of_a_round_is_not_claimed_as_a_saving() -> None:
    """A machine that slows down within each round: what is smaller than that is not the variant's."""
    random = np.random.default_rng(5)
    made = [
        Round(
            blocks(10, random, 0, 0.005),
            blocks(11, random, 0, 0.005),
            {"v": blocks(9.8, random, 0, 0.005)},
        )
        for _ in range(12)
    ]
    assert statistics.drift(made).difference is Difference.COSTS
    found = measured(made, "v")
    assert found.share == pytest.approx(0.065, abs=0.01)
    assert found.difference is Difference.NONE


def test_a_variant_that_never_ran_has_no_figure() -> None:
    assert statistics.saving(rounds([0.5], np.random.default_rng(6)), "other") is None


@given(
    st.lists(st.floats(1.0, 100.0), min_size=3, max_size=30),
    st.floats(0.1, 10.0),
    st.floats(0.01, 100.0),
)
def test_figures_do_not_depend_on_the_unit(times: list[float], factor: float, unit: float) -> None:
    """Times in other units, or on a machine that is slower in everything, give the same ratios."""
    own = np.array(times)

    def made(scale: float) -> list[Round]:
        return [Round(scale * own, scale * own, {"v": scale * factor * own}) for _ in range(3)]

    here, there = measured(made(1.0), "v"), measured(made(unit), "v")
    assert here.share == pytest.approx(1 - factor)
    assert (there.share, there.low, there.high) == pytest.approx(
        (here.share, here.low, here.high), abs=1e-9
    )
    assert here.low <= here.share <= here.high

"""When the stack was sampled, on the clock of the trace."""

import pytest

from tests.builders import trace
from tfdoctor.facts.step_time.sampled_steps import sampling_began, times_of
from tfdoctor.recording.program import PythonRecord, SeenPlace
from tfdoctor.trace.lines import LIMIT_PS


@pytest.mark.parametrize(
    ("when_us", "times_ps"), [((), []), ((1, 2), [3_000_000, 4_000_000]), ((2**63,), [LIMIT_PS])]
)
def test_impossible_times_are_limited(when_us: tuple[int, ...], times_ps: list[int]) -> None:
    assert times_of(SeenPlace(seen=1, when_us=when_us), 2_000_000).tolist() == times_ps


def test_samples_of_another_year_lie_outside_of_the_trace() -> None:
    place = SeenPlace(seen=1, when_us=(1,))
    assert times_of(place, -(2**70)).tolist() == [-LIMIT_PS]


def test_without_a_clock_they_have_no_time() -> None:
    assert sampling_began(PythonRecord(began_unix_ns=1), trace()) is None

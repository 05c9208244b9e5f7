"""Lines of the run are put into groups: none is lost, none is counted twice."""

from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.phases.line_groups import line_groups
from tfdoctor.facts.phases.run_phases import RunLine
from tfdoctor.kinds import Phase
from tfdoctor.verdict import Location

places = st.builds(Location, st.sampled_from(["a.py", "b.py"]), st.integers(1, 30))
lines = st.builds(
    RunLine,
    phase=st.sampled_from([Phase.PREPARING, Phase.BOUNDARIES]),
    at=places,
    ms=st.integers(1, 1000).map(float),
    samples=st.integers(1, 20),
    function=st.sampled_from(["<module>", "f", "g", "<lambda>"]),
    caller=st.none() | places,
    calls=st.sampled_from(["", "pandas.concat", "numpy.sort"]),
    repeats=st.sampled_from([True, False, None]),
)


@given(st.lists(lines, max_size=12))
def test_each_line_is_in_one_group(given_lines: list[RunLine]) -> None:
    groups = line_groups(given_lines)
    grouped = [line for group in groups for line in group.lines]
    assert sorted(map(repr, grouped)) == sorted(map(repr, given_lines))
    assert [group.ms for group in groups] == sorted((group.ms for group in groups), reverse=True)


@given(st.lists(lines, min_size=1, max_size=12))
def test_a_group_is_of_one_phase_and_names_a_sure_line(given_lines: list[RunLine]) -> None:
    for group in line_groups(given_lines):
        assert {line.phase for line in group.lines} == {group.phase}
        assert group.top is None or group.top.sure
        assert (group.top is None) == (not any(line.sure for line in group.lines))


def test_lines_without_a_place_are_left_out() -> None:
    assert line_groups([RunLine(phase=Phase.PREPARING, at=None, ms=5.0, samples=9)]) == ()

"""Lines of the run are put into groups: none is lost, none is counted twice."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.phases.run_phases import RunLine
from tfdoctor.facts.run_work.line_groups import CalledWork, line_groups
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Location

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
    exact=st.booleans(),
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


def line(number: int, *, function: str = "<module>", caller: int = 0, **given: Any) -> RunLine:
    known: dict[str, Any] = {"phase": Phase.PREPARING, "ms": 100.0, "samples": 9, "repeats": True} | given
    at = Location("a.py", caller) if caller else None
    return RunLine(at=Location("a.py", number), function=function, caller=at, **known)


def grouped(*lines: RunLine) -> list[set[int]]:
    return [{one.at.line for one in group.lines if one.at} for group in line_groups(lines)]


def test_a_function_belongs_to_the_loop_that_calls_it() -> None:
    assert grouped(line(5, function="f", caller=40), line(40)) == [{5, 40}]


def test_a_function_belongs_to_the_loop_that_begins_above_the_call_of_it() -> None:
    assert grouped(line(5, function="f", caller=41), line(40)) == [{5, 40}]
    assert grouped(line(5, function="f", caller=40), line(42)) == [{5, 42}]
    assert len(grouped(line(5, function="f", caller=46), line(40))) == 2


def test_the_lines_of_a_comprehension_are_called_by_what_calls_its_function() -> None:
    inner = line(5, function="f.<locals>.<listcomp>", caller=5)
    (group,) = line_groups([inner, line(5, function="f", caller=60, ms=9.0)])
    assert group.caller == Location("a.py", 60)
    assert group.function == "f"


def test_a_function_that_is_called_once_stands_alone() -> None:
    calls_once = line(40, repeats=False, ms=50.0)
    assert grouped(line(5, function="f", caller=40), calls_once) == [{5}, {40}]


def test_a_function_belongs_to_the_library_call_for_each_row() -> None:
    applied = line(40, repeats=False, calls="pandas.core.frame.DataFrame.apply")
    groups = line_groups([line(5, function="f", caller=40), applied])
    assert len(groups) == 1
    assert groups[0].work is CalledWork.ROWS
    assert groups[0].at == Location("a.py", 40)


def test_timed_calls_in_a_loop_are_not_part_of_its_python() -> None:
    assert grouped(line(10), line(11, exact=True, ms=50.0), line(12)) == [{10, 12}, {11}]


def test_a_timed_call_is_one_whatever_repeats_it() -> None:
    (group,) = line_groups([line(11, exact=True, calls="Model.predict")])
    assert group.work is CalledWork.BULK


def test_lines_without_a_place_are_left_out() -> None:
    assert line_groups([RunLine(phase=Phase.PREPARING, at=None, ms=5.0, samples=9)]) == ()


def test_a_session_that_a_loop_clears_is_no_python_of_the_loop() -> None:
    """Trap: a tuning loop calls clear_session on purpose, which collects Python's garbage for a second."""
    cleared = line(6, calls="keras.src.backend.common.global_state.clear_session")
    assert [group.work for group in line_groups([cleared])] == [CalledWork.BULK]

"""How long steps take: one by one, then counted; which are long, and what is no part of them."""

import math

from hypothesis import given, settings

from tests.capture.kit import *

step_times = agent.load("run.step_times")
places = agent.load("run.places")

MS = 1_000_000


def place(name: str = "keras-fit", line: int = 1) -> Any:
    return places.CallSites().of("step", ("train.py", line), name, None)


def steps(times: Any, at: Any, durations: Sequence[float], now: int = 0, k: int = 1) -> int:
    """Take steps of these ms at a place, half of each inside the call; return the time afterwards."""
    for number, ms in enumerate(durations):
        times.begins(at, now, k, first=number == 0, traced=False)
        times.ends(now + int(ms * MS / 2))
        now += int(ms * MS)
    return now


def ended(times: Any, left: int = 10**9) -> Any:
    (found,) = times.take(left)[0].values()
    return found


def test_a_step_lasts_until_the_next_one_begins() -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [10, 20, 30, 5])
    times.passes_over()
    assert ended(times).each == [10, 20, 30, 2.5]  # of the last one only the call is known


def test_a_step_before_another_pass_ends_with_its_call() -> None:
    times, at = step_times.RunStepTimes(), place()
    now = steps(times, at, [10, 10])
    steps(times, at, [10, 10], now + 1000 * MS)
    times.passes_over()
    found = ended(times)
    assert found.each == [10, 5, 10, 5]
    assert found.passes == 2


def test_time_apart_is_taken_off() -> None:
    times, at = step_times.RunStepTimes(), place()
    times.begins(at, 0, 1, first=True, traced=False)
    times.ends(5 * MS)
    times.apart += 100 * MS
    times.begins(at, 110 * MS, 1, first=False, traced=False)
    times.passes_over()
    assert ended(times).each == [10]


def test_a_call_of_several_steps_counts_them() -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [10, 10, 10], k=4)
    times.passes_over()
    found = ended(times)
    assert (found.calls, found.steps) == (3, 12)


def test_a_step_that_traces_is_told_elsewhere() -> None:
    times, at = step_times.RunStepTimes(), place()
    times.begins(at, 0, 1, first=True, traced=False)
    times.traces()
    times.ends(900 * MS)
    steps(times, at, [10, 10], 900 * MS)
    times.passes_over()
    assert len(ended(times).each) == 2
    assert times.loops[at].count == 3


def test_what_found_no_data_was_no_step() -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [10, 10])
    times.retract()
    times.ends(50 * MS)
    times.passes_over()
    assert ended(times).calls == 1


def test_a_retracted_step_before_any_other_leaves_nothing() -> None:
    times = step_times.RunStepTimes()
    times.retract()
    times.ends(5)
    times.passes_over()
    assert times.take(10)[0] == {}


def test_two_loops_by_turns_are_told_apart() -> None:
    """A GAN: each function's step lasts until it is called again."""
    times, real, fake = step_times.RunStepTimes(), place(line=1), place(line=2)
    now = 0
    for number in range(4):
        for at, ms in ((real, 10), (fake, 30)):
            times.begins(at, now, 1, first=number == 0, traced=False)
            times.ends(now + ms * MS)
            now += ms * MS
    times.passes_over()
    found = times.take(100)[0]
    assert found[real].each == [40, 40, 40, 10]
    assert found[fake].each == [40, 40, 40, 30]


# Long steps


def test_a_long_step_is_told_with_its_number() -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [10] * 20 + [50, 10, 10])
    times.passes_over()
    (line,) = times.long
    assert (line["number"], line["ms"], line["usual_ms"]) == (20, 50, 10)


@pytest.mark.parametrize("longer", [11.9, 14.9, 1.0])
def test_a_little_longer_is_not_long(longer: float) -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [10] * 20 + [longer] + [10])
    times.passes_over()
    assert not times.long


def test_a_short_step_is_long_only_beyond_what_other_programs_cause() -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [0.5] * 20 + [1.9, 0.5, 2.6, 0.5])
    times.passes_over()
    assert [line["ms"] for line in times.long] == [2.6]


def test_what_is_usual_follows_the_run() -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [10] * 50 + [40] * 200)
    times.passes_over()
    assert times.loops[at].usual == 40 * MS
    assert len(times.long) < 70


def test_long_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_times, "MOST_LONG", 3)
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [10, 10, 10, 10, 50] * 10)
    times.passes_over()
    assert len(times.long) == 3


def test_the_step_under_way_is_long_once_it_takes_that_long() -> None:
    times, at = step_times.RunStepTimes(), place()
    assert not times.is_long(10**12)
    now = steps(times, at, [10] * 20)
    times.begins(at, now, 1, first=False, traced=False)
    assert not times.is_long(now + 14 * MS)
    assert times.is_long(now + 16 * MS)
    times.apart += 10 * MS
    assert not times.is_long(now + 16 * MS)


# One by one, and counted


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.floats(0.01, 5000), min_size=1, max_size=20), min_size=1, max_size=6), st.integers(0, 60)
)
def test_counted_or_not_no_step_is_lost(parts: list[list[float]], left: int) -> None:
    """In parts, as the file is told them, the sums stay exact and times are known to 2 %."""
    times, at = step_times.RunStepTimes(), place()
    now, joined, expected = 0, dict[Any, Any](), list[float]()
    for part in parts:
        now = steps(times, at, part, now)
        times.passes_over()
        expected += [*part[:-1], part[-1] / 2]
        _, left = times.take(left, joined)
        assert left >= 0
    told = joined[at].describe(at)
    assert told["calls"] == told["steps"] == len(expected)
    assert told["ms"] == pytest.approx(sum(expected), abs=0.001 * len(expected))
    assert ("bins" in told) != ("each" in told)
    if "each" in told:
        assert told["each"] == pytest.approx(expected, abs=0.002)
        return
    assert sum(told["bins"].values()) == len(expected)
    counted = sorted(1.02 ** (int(b) + 0.5) / 1e3 for b, n in told["bins"].items() for _ in range(n))
    for found_ms, ms in zip(counted, sorted(expected), strict=True):
        assert abs(math.log(found_ms / ms)) < 0.03


def test_calls_that_nobody_asks_for_are_bounded() -> None:
    times, at = step_times.RunStepTimes(), place()
    steps(times, at, [1] * 200)
    times.passes_over()
    assert times.ended.maxlen == step_times.WAITING
    assert len(ended(times, left=100).each) == 0

"""How long steps take: one by one, then counted; which are long, and what is no part of them."""

from tests.capture.run.kit import *

step_times = agent.load("run.step_times")
places = agent.load("run.places")


def place(line: int = 1) -> Any:
    return places.CallSites().of("step", ("train.py", line), "keras-fit", None)


@pytest.fixture
def at() -> Any:
    return place()


@pytest.fixture
def times() -> Any:
    return step_times.RunStepTimes()


def begins(times: Any, at: Any, now: float, *, first: bool = False, k: int = 1) -> None:
    times.begins(at, int(now * MS), k, first=first, traced=False)


def steps(times: Any, at: Any, durations: Sequence[float], now: float = 0, k: int = 1) -> float:
    """Take steps of these ms at a place, half of each inside the call; return the ms afterwards."""
    for number, ms in enumerate(durations):
        begins(times, at, now, first=number == 0, k=k)
        times.ends(int((now + ms / 2) * MS))
        now += ms
    return now


def ended(times: Any, left: int = 10**9) -> Any:
    times.passes_over()
    (found,) = times.take(left)[0].values()
    return found


def timed(*passes: Sequence[float], k: int = 1) -> tuple[Any, Any]:
    """Take the steps of passes over the data, with a second between them; return the times and the place."""
    times, at, now = step_times.RunStepTimes(), place(), 0.0
    for durations in passes:
        now = steps(times, at, durations, now, k) + 1000
    times.passes_over()
    return times, at


@cases(
    ([[10, 20, 30, 5]], 1, [10, 20, 30, 2.5]),  # until the next one begins; of the last one the call is known
    ([[10, 10], [10, 10]], 1, [10, 5, 10, 5]),
    ([[10, 10, 10]], 4, [10, 10, 5]),
)
def test_how_long_steps_last(passes: list[list[float]], k: int, each: list[float]) -> None:
    found = ended(timed(*passes, k=k)[0])
    assert (found.each, found.calls, found.steps, found.passes) == (each, len(each), k * len(each), len(passes))


def test_time_apart_is_taken_off(times: Any, at: Any) -> None:
    begins(times, at, 0, first=True)
    times.ends(5 * MS)
    times.apart += 100 * MS
    begins(times, at, 110)
    assert ended(times).each == [10]


def test_a_step_that_traces_is_told_elsewhere(times: Any, at: Any) -> None:
    begins(times, at, 0, first=True)
    times.traces()
    times.ends(900 * MS)
    steps(times, at, [10, 10], 900)
    assert (len(ended(times).each), times.loops[at].count) == (2, 3)


def test_what_found_no_data_was_no_step(times: Any, at: Any) -> None:
    steps(times, at, [10, 10])
    times.retract()
    times.ends(50 * MS)
    assert ended(times).calls == 1


def test_a_retracted_step_before_any_other_leaves_nothing(times: Any) -> None:
    times.retract()
    times.ends(5)
    times.passes_over()
    assert times.take(10)[0] == {}


def test_two_loops_by_turns_are_told_apart(times: Any) -> None:
    """A GAN: each function's step lasts until it is called again."""
    real, fake, now = place(line=1), place(line=2), 0
    for number in range(4):
        for at, ms in ((real, 10), (fake, 30)):
            begins(times, at, now, first=number == 0)
            now += ms
            times.ends(now * MS)
    times.passes_over()
    found = times.take(100)[0]
    assert [found[at].each for at in (real, fake)] == [[40, 40, 40, 10], [40, 40, 40, 30]]


# Long steps


@cases(
    ([10] * 20 + [50, 10, 10], [(20, 50, 10)]),
    *(([10] * 20 + [longer] + [10], []) for longer in (11.9, 14.9, 1.0)),  # a little longer is not long
    ([0.5] * 20 + [1.9, 0.5, 2.6, 0.5], [(22, 2.6, 0.5)]),  # other programs delay short steps by as much
)
def test_a_long_step_is_told_with_its_number(durations: list[float], told: list[tuple[float, ...]]) -> None:
    times, _ = timed(durations)
    assert [(line["number"], line["ms"], line["usual_ms"]) for line in times.long] == told


def test_what_is_usual_follows_the_run() -> None:
    times, at = timed([10] * 50 + [40] * 200)
    assert times.loops[at].usual == 40 * MS
    assert len(times.long) < 70


def test_long_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_times, "MOST_LONG", 3)
    assert len(timed([10, 10, 10, 10, 50] * 10)[0].long) == 3


def test_the_step_under_way_is_long_once_it_takes_that_long(times: Any, at: Any) -> None:
    assert not times.is_long(10**12)
    now = steps(times, at, [10] * 20)
    begins(times, at, now)
    assert [times.is_long((now + ms) * MS) for ms in (14, 16)] == [False, True]
    times.apart += 10 * MS
    assert not times.is_long((now + 16) * MS)


# One by one, and counted


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.floats(0.01, 5000), min_size=1, max_size=20), min_size=1, max_size=6), st.integers(0, 60)
)
def test_counted_or_not_no_step_is_lost(parts: list[list[float]], left: int) -> None:
    """In parts, as the file is told them, the sums stay exact and times are known to 2 %."""
    times, at, now, joined, expected = step_times.RunStepTimes(), place(), 0.0, dict[Any, Any](), list[float]()
    for part in parts:
        now = steps(times, at, part, now)
        times.passes_over()
        expected += [*part[:-1], part[-1] / 2]
        _, left = times.take(left, joined)
        assert left >= 0
    told = joined[at].describe(at)
    assert times.taken == len(expected)
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
    times, _ = timed([1] * 200)
    assert times.ended.maxlen == step_times.WAITING
    assert len(ended(times, left=100).each) == 0

"""How often the stack is sampled: whatever the run does, the recorder takes its share of it at most."""

from tests.capture.run.kit import *

paces: Any = agent.load("run.pace")

hooks_s = paces.hooks_s


def run(seconds: float, sample_s: float, steps_a_second: float) -> tuple[int, float]:
    """Return how many samples a run gets that takes so long, and what the recorder took of it."""
    pace, now, samples = paces.SamplePace(0), 0.0, 0
    while now < seconds:
        samples += 1
        pace.thread_s += sample_s
        steps = int(now * steps_a_second)
        now += pace.rest(int(now * S), sample_s, steps)
    return samples, (pace.thread_s + hooks_s(seconds * steps_a_second, seconds)) / seconds


def test_a_run_without_steps_is_sampled_as_often_as_one_may() -> None:
    assert run(10, 0.00004, 0)[0] >= 480
    assert run(1000, 0.00004, 0)[0] >= 19_000


def test_slow_samples_are_rare() -> None:
    samples, share = run(1000, 0.005, 0)
    assert samples >= 480
    assert share <= paces.BUDGET + 1e-4


@cases((0.004, 0.2), (0.01, 5))  # the first samples read new stacks; what the imports left is used in short runs
def test_samples_are_frequent_as_a_run_begins(used_s: float, at_s: float) -> None:
    pace = paces.SamplePace(0)
    pace.thread_s = used_s
    assert pace.rest(int(at_s * S), 0.00004, 0) == paces.OFTEN_S


def test_one_slow_sample_hides_little_of_what_follows() -> None:
    """Python collects garbage in the thread that samples, while TensorFlow is imported and later."""
    for at_s, longest_s in ((2, paces.FIRST_REST_S), (100, 0.25)):
        pace, now = paces.SamplePace(0), at_s * S
        pace.thread_s = paces.BUDGET * (at_s + 1)  # the budget is spent
        for sample_s in (0.00004, 0.06, 0.00004, 0.00004, 0.00004):
            pace.thread_s += sample_s
            assert pace.rest(now, sample_s, 0) <= longest_s


def test_samples_give_way_to_the_hooks_of_short_steps() -> None:
    (usual, share), (fewer, most), (fewest, _) = (run(1000, 0.00012, steps) for steps in (100, 150, 5000))
    assert max(share, most) <= paces.BUDGET + 1e-4
    assert usual > fewer >= fewest >= paces.FEWEST


def test_the_hooks_take_more_of_more_steps_and_of_a_longer_run() -> None:
    assert hooks_s(2000, 10.0) > hooks_s(1000, 10.0)
    assert hooks_s(1000, 10.0) > hooks_s(1000, 5.0)


@given(st.floats(1, 1e5), st.floats(0, 1), st.integers(0, 10**9))
def test_a_rest_is_bounded(age_s: float, took_s: float, steps: int) -> None:
    rest = paces.SamplePace(0).rest(int(age_s * S), took_s, steps)
    assert paces.OFTEN_S <= rest <= max(paces.LATER_S, paces.AT_MOST * took_s)

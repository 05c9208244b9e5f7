"""python-in-loop: Python of the loop's body within each step, by its lines."""

from tests.rules.kit import *
from tfdoctor.rules.execution import python_in_loop
from tfdoctor.rules.execution.python_in_loop import IF_NOT_NEEDED, LoopLines

HISTOGRAM = Location("train.py", 36)


def example(
    *lines: TimedLine, seen: int = 11, samples: int = 12, body_ms: float | None = None, step: float | None = None,
    syncs_ms: float = 0.0, single: SingleOperations | None = None,
) -> Verdict:  # fmt: skip
    """Judge these lines of a loop over a dataset, in steps of ``step`` or that compute for 3 ms."""
    time_ms = sum(line.ms for line in lines) if body_ms is None else body_ms
    return python_in_loop.check(
        LoopLines(lines, seen, samples, time_ms),
        Breakdown.of(host=time_ms, device=step - time_ms if step else 3.0),
        HostSyncs(1.0, 1.0, host_ms=syncs_ms) if syncs_ms else None,
        single,
    )


def sick() -> Verdict:
    """Histograms of the weights take 4 of each 7 ms step, in a loop over a dataset."""
    return example(TimedLine(HISTOGRAM, 9, 4.0, makes=False))


def healthy() -> Verdict:
    """The same loop, which makes histograms every 100 steps: 0.04 ms of each 3 ms step."""
    return example(TimedLine(HISTOGRAM, 9, 0.04, makes=False))


def check(*times: float, seen: int = 9, step: float = 10.0, aside: bool = True, **more: Any) -> Verdict:
    placed = zip((HISTOGRAM, Location("train.py", 39)), times, strict=False)
    lines = (TimedLine(place, 9, ms, makes=False if aside else None) for place, ms in placed)
    return example(*lines, seen=seen, step=step, **more)


def test_a_share_of_the_step_that_enough_samples_show() -> None:
    for ms, step in ((1.0, 20.0), (0.5, 2.0)):
        assert kinds(check(ms, step=step), check(ms - 0.01, step=step)) == [Finding, Healthy]
    assert kinds(check(5.0, seen=5), check(5.0, seen=4)) == [Finding, Healthy]


def test_the_line_with_most_of_the_time_is_named() -> None:
    finding = as_finding(check(4.0, 1.0))
    assert "train.py:36" in finding.summary
    assert finding.remedies[0].at == HISTOGRAM
    assert [len(table.rows) for table in finding.evidence if isinstance(table, Table)] == [2]
    assert effects(finding)[0][2:] == (near(0.01), Bound.EXPECTED)


def test_what_the_next_step_may_need_promises_a_ceiling() -> None:
    """Trap: the loop of reinforcement learning plays a game between its steps, and cannot do without."""
    finding = check(5.0, aside=False)
    assert (effects(finding)[0][3], first_action(finding)) == (Bound.AT_MOST, IF_NOT_NEEDED)


def test_waiting_after_a_read_is_left_to_host_sync() -> None:
    assert kinds(check(5.0, syncs_ms=4.6), check(5.0, syncs_ms=4.4)) == [Healthy, Finding]


def test_logging_every_hundred_steps_is_healthy() -> None:
    """Trap: the only step that logs in the window is an outlier, whose time the steady steps do not have."""
    assert isinstance(check(0.05, seen=12), Healthy)


def test_even_lines_are_not_named_in_the_summary() -> None:
    places = tuple(TimedLine(Location("train.py", n), 9, 2.0, makes=False) for n in (1, 2, 3))
    assert "train.py" not in as_finding(example(*places, step=10.0)).summary


def test_time_without_samples_has_no_line() -> None:
    """Trap: a body of no length is healthy although no sample met it; making batches is python-input's."""
    cases = (4, 5.0), (5, 5.0), (0, 0.4), (0, 0.5)
    found = [example(seen=0, samples=samples, body_ms=body, step=body + 4.0) for samples, body in cases]
    assert kinds(*found) == [NotApplicable, Healthy, Healthy, NotApplicable]


def test_operations_that_the_lines_run_one_by_one_are_spared_with_them() -> None:
    """A moving average of the weights assigns each of them by operations of its own."""
    found = effects(check(4.0, single=SingleOperations(inside_ms=2.0, between_ms=1.0)))
    assert {part: of for part, of, *_ in found if of} == {Stage.HOST: 4.0, Stage.DEVICE: 2.0}
    assert [left for _, _, left, _ in found] == near([0.01, 0.01])

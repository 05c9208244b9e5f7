"""python-in-loop: Python of the loop's body within each step, by its lines."""

from tests.rules.kit import *
from tfdoctor.rules.execution import python_in_loop
from tfdoctor.rules.execution.python_in_loop import LoopLines

HISTOGRAM = script(36)


def example(
    *lines: TimedLine, seen: int = 11, samples: int = 12, body_ms: float | None = None, step: float | None = None,
    syncs_ms: float = 0.0, single: SingleOperations | None = None,
) -> Verdict:  # fmt: skip
    """Judge these lines of a loop over a dataset, in steps of ``step`` or that compute for 3 ms."""
    time_ms = sum(line.ms for line in lines) if body_ms is None else body_ms
    work, whole = LoopLines(lines, seen, samples, time_ms), step - time_ms if step else 3.0
    syncs = HostSyncs(1.0, 1.0, host_ms=syncs_ms) if syncs_ms else None
    return python_in_loop.check(work, Breakdown.of(host=time_ms, device=whole), syncs, single)


def check(*times: float, seen: int = 9, step: float = 10.0, aside: bool = True, **more: Any) -> Verdict:
    placed = zip((HISTOGRAM, script(39)), times, strict=False)
    lines = (TimedLine(place, 9, ms, makes=False if aside else None) for place, ms in placed)
    return example(*lines, seen=seen, step=step, **more)


OFTEN, RARE = (TimedLine(HISTOGRAM, 9, ms, makes=False) for ms in (4.0, 0.04))
sick = described("Histograms of the weights take 4 of each 7 ms step, in a loop over a dataset.", example, OFTEN)
healthy = described(
    "The same loop, which makes histograms every 100 steps: 0.04 ms of each 3 ms step.", example, RARE
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = check(1.0, step=20.0), check(0.99, step=20.0)
    told["half a millisecond, and less"] = check(0.5, step=2.0), check(0.49, step=2.0)
    told["five samples, and four"] = check(5.0, seen=5), check(5.0, seen=4)
    told["the line with most of the time is named"] = check(4.0, 1.0)
    told["trap: reinforcement learning plays a game between its steps"] = check(5.0, aside=False)
    told["waiting after a read is left to host-sync"] = check(5.0, syncs_ms=4.6), check(5.0, syncs_ms=4.4)
    told["trap: the only step that logs in the window is an outlier"] = check(0.05, seen=12)
    places = tuple(TimedLine(script(n), 9, 2.0, makes=False) for n in (1, 2, 3))
    told["even lines are not named in the summary"] = example(*places, step=10.0)
    for name, samples, body in (
        ("four samples, none of them in the body", 4, 5.0),
        ("five samples that make batches, which is python-input's", 5, 5.0),
        ("trap: a body of no length, which no sample met", 0, 0.4),
        ("a body of half a millisecond, which no sample met", 0, 0.5),
    ):
        told[name] = example(seen=0, samples=samples, body_ms=body, step=body + 4.0)
    told["a moving average of the weights assigns each by operations of its own, which are spared with it"] = check(
        4.0, single=SingleOperations(inside_ms=2.0, between_ms=1.0)
    )

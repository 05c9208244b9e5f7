"""The cases of hot-line: what its tests judge, and the examples of its page."""

from collections.abc import Mapping

from tests.rules.kit import *
from tfdoctor.rules.execution.hot_line import check

HISTOGRAM = TimedLine(Location("train.py", 36), 20, 4.3, calls={"numpy.histogram": 16, "": 4})


def example(  # noqa: PLR0913 - each says of a line that it is another finding's
    *lines: TimedLine,
    step: Breakdown | None = None,
    left: Mapping[str, float] | None = None,
    between: tuple[TimedLine, ...] = (),
    subjects: frozenset[str] = frozenset(),
    around: Location | None = None,
    model: Location | None = None,
    makers: tuple[TimedLine, ...] = (),
) -> Verdict:
    """A line calls numpy.histogram in each step, for 4.3 of 11 ms."""
    parts: Mapping[str, float] = {Stage.HOST: 6.6} if left is None else left
    seen = {Stage.HOST: lines or (() if between else (HISTOGRAM,)), Stage.BETWEEN: between}
    whole = step or Breakdown.of(host=6.6, device=4.4)
    outer = frozenset((around,) if around else ())
    samples = StackSamples(makers, new_arguments=((64, 16),), models_at=frozenset((model,) if model else ()))
    return check(Unexplained(parts, subjects), whole, HostLines(seen, outer), samples)


sick = example


def healthy() -> Verdict:
    """Other findings explain the host's time."""
    return example(left={})

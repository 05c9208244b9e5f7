"""The cases of between-steps: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.between_steps import check

WEIGHTS = TimedLine(Location("train.py", 27), 11, callback="Weights.on_train_batch_end")


def example(  # noqa: PLR0913 - each may explain the time between two steps
    between: float = 7.0,
    *places: TimedLine,
    step: float | None = None,
    new_arguments: tuple[tuple[int, ...], ...] = (),
    retracing: Retracing | None = None,
    slow: SlowCalls | None = None,
    untraced: float | None = None,
    single: SingleOperations | None = None,
    lines: HostLines | None = None,
    saves: MadeCall | None = None,
    with_it: int | None = None,
) -> Verdict:
    """Judge steps that compute for 6 ms, or take ``step``, of which these places were seen between calls.

    ``with_it`` of 30 steps have the time between calls; None is all. The run has 1000 steps and these saves.
    """
    usual = Breakdown.of(between=between, device=step - between if step else 6.0)
    rows = [{**usual.median, Stage.BETWEEN: between if at < (with_it or 0) else 0.1} for at in range(30)]
    return check(
        usual if with_it is None else replace(usual, steps=tuple(rows)),
        StackSamples(places, new_arguments=new_arguments) if places else None,
        retracing,
        slow,
        None if untraced is None else UntracedPace(untraced, 20.0 * untraced),
        single,
        lines,
        RunCalls((saves,), epochs=1) if saves else None,
        equal_steps(Location("train.py", 1), 1000, 10.0),
    )


def sick() -> Verdict:
    """A callback takes 7 ms of each 13 ms step."""
    return example(7.0, WEIGHTS)


def healthy() -> Verdict:
    """Steps of 6 ms with a pause of 0.1 ms between them."""
    return example(0.1)

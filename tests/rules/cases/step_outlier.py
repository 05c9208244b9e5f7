"""The cases of step-outlier: what its tests judge, and the examples of its page."""

from itertools import accumulate, pairwise
from types import MappingProxyType

from tests.rules.kit import *
from tfdoctor.facts.phases.run_steps import RunLongLines
from tfdoctor.facts.steps.steps import PS_PER_MS, Step
from tfdoctor.rules.execution.step_outlier import check

SAVE = TimedLine(
    Location("train.py", 30), 40, callback="Save.on_train_batch_end", calls={"keras.Model.save_weights": 40}
)


SAVES = LongStepLines({Stage.BETWEEN: (SAVE,)})


def example(  # noqa: PLR0913 - the rule's own
    extra: Mapping[int, tuple[str, float]] = MappingProxyType(dict.fromkeys((5, 15, 25), (Stage.BETWEEN, 100.0))),
    *,
    count: int = 30,
    compiling: CompileTime | None = None,
    lines: LongStepLines | None = SAVES,
    program: Program | None = None,
    starts: PassStarts | None = None,
    cores: Cores | None = None,
    pace: UntracedPace | None = None,
    run: RunSteps | None = None,
    phases: RunPhases | None = None,
    sampled: RunLongLines | None = None,
    usual: HostLines | None = None,
    source: StepSource = StepSource.MARKERS,
) -> Verdict:
    """A checkpoint of 100 ms follows every tenth step."""
    rows = [{**Breakdown.of(device=10.0).steps[0]} for _ in range(count)]
    for at, (part, more) in extra.items():
        rows[at][part] += more
    ends = [0, *accumulate(round(sum(row.values()) * PS_PER_MS) for row in rows)]
    steps = [Step(at, start, end, end) for at, (start, end) in enumerate(pairwise(ends))]
    parts = Breakdown(tuple(rows), rows[0])
    found = Steps.of(steps, source)
    return check(found, parts, compiling, lines, program, starts, cores, pace, run, phases, sampled, usual)


sick = example


def healthy() -> Verdict:
    """Thirty steps of the same length."""
    return example({}, lines=None)

"""Reports of made-up runs to compare."""

from benchmarks.regression import step_series
from tests.kit import *
from tests.report.diagnoses import rule
from tfdoctor.compare.step_times import ComparedSteps
from tfdoctor.diagnosis import Conditions, Diagnosis, Subject, Trust
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.diagnosis.savings import Saving
from tfdoctor.diagnosis.step import StepRow, StepsSummary
from tfdoctor.diagnosis.work import OperationRow, PipelineStage
from tfdoctor.terms.kinds import DeviceKind, StepSource, TrustLevel
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Outcome, Remedy, Severity

MACHINE = Conditions(cpu_model="EPYC", cores_usable=2.0, batch_size=32)
SUBJECT = Subject(
    title="train.py",
    command=("python", "train.py"),
    device=DeviceKind.CPU,
    framework={"tensorflow": "2.21.0"},
    hosts=("builder",),
)


def series(seed: int, jitter: float = 0.01, *, step_ms: float = 20.0, steps: int = 60) -> list[float]:
    """Return steps whose times depend on those before, with a long one now and then; ms."""
    rng = np.random.default_rng(seed)
    return [float(value) for value in step_series(rng, jitter, step_ms, steps)]


def run(seed: int, jitter: float = 0.01, *, step_ms: float = 20.0, steps: int = 60) -> ComparedSteps:
    """Return a run as its step times."""
    times = np.array(series(seed, jitter, step_ms=step_ms, steps=steps))
    return ComparedSteps(times, float(np.median(times)))


def report(
    times: Sequence[float],
    parts: Mapping[str, float] | None = None,
    results: Sequence[Result] = (),
    *,
    conditions: Conditions = MACHINE,
    subject: Subject = SUBJECT,
) -> Diagnosis:
    """Return a report of steps of these times, ms; `parts` are shares of each step, "device" all of it."""
    shares = parts or {"device": 1.0}
    parts_ms = [{part: time * share for part, share in shares.items()} for time in times]
    rows = tuple(
        StepRow(number=number, total_ms=time, parts_ms=own, steady=True)
        for number, (time, own) in enumerate(zip(times, parts_ms, strict=True))
    )
    step = float(np.median(times)) if times else None
    summary = StepsSummary(
        source=StepSource.REPEATED_CALL,
        missing="" if times else "no steps",
        step_ms=step,
        rows=rows,
        breakdown_ms={part: (step or 0.0) * share for part, share in shares.items()},
    )
    return Diagnosis(
        version="0.1.0",
        subject=subject,
        steps=summary,
        trust=Trust(level=TrustLevel.HIGH),
        results=tuple(results),
        conditions=conditions,
    )


def finding(name: str, path: str, saves_ms: float, line: int = 3, topic: Topic = Topic.INPUT) -> Result:
    """Return a finding with a place and a saving."""
    remedy = Remedy("change it", at=Location(path, line))
    saving = Saving(ms_per_step=saves_ms, share=saves_ms / 20, bound=Bound.EXPECTED, how="")
    return Result(
        rule=rule(name, topic),
        outcome=Finding(summary=f"{name} costs time", evidence=(), remedies=(remedy,)),
        severity=Severity.WARNING,
        saving=saving,
    )


def with_outcome(result: Result, outcome: Outcome = Healthy(summary="nothing")) -> Result:  # noqa: B008 - frozen
    """Return a result that is no finding."""
    return Result(rule=result.rule, outcome=outcome)


def with_work(made: Diagnosis, operations: Mapping[str, float], stages: Mapping[str, float]) -> Diagnosis:
    """Return a report with operations of one layer and stages of the pipeline, ms per step."""
    rows = [
        OperationRow(layer="dense", operation=name, self_ms=ms, share=ms / 20) for name, ms in operations.items()
    ]
    pipeline = [
        PipelineStage(name=name, parent=None, self_ms=ms, parallelism=1, calls=1, critical=True)
        for name, ms in stages.items()
    ]
    return replace(made, operations=tuple(rows), pipeline=tuple(pipeline))

"""Reports of made-up runs to compare."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.regression import step_series
from tfdoctor.compare.report_data import (
    OperationData,
    RemedyData,
    ReportData,
    ResultData,
    SavingData,
    StageData,
    StepData,
    StepsData,
    SubjectData,
)
from tfdoctor.compare.step_times import ComparedSteps
from tfdoctor.diagnosis import Conditions
from tfdoctor.verdict import Location

MACHINE = Conditions(cpu_model="EPYC", cores_usable=2.0, batch_size=32)
SUBJECT = SubjectData(
    title="train.py",
    command=("python", "train.py"),
    device="CPU",
    framework={"tensorflow": "2.21.0"},
    hosts=("builder",),
)


def series(
    seed: int, jitter: float = 0.01, *, step_ms: float = 20.0, steps: int = 60
) -> list[float]:
    """Return steps whose times depend on those before, with a long one now and then; ms."""
    rng = np.random.default_rng(seed)
    return [float(value) for value in step_series(rng, jitter, step_ms, steps)]


def run(
    seed: int, jitter: float = 0.01, *, step_ms: float = 20.0, steps: int = 60
) -> ComparedSteps:
    """Return a run as its step times."""
    times = np.array(series(seed, jitter, step_ms=step_ms, steps=steps))
    return ComparedSteps(times, float(np.median(times)))


def report(
    times: Sequence[float],
    parts: Mapping[str, float] | None = None,
    results: Sequence[ResultData] = (),
    *,
    conditions: Conditions = MACHINE,
    subject: SubjectData = SUBJECT,
) -> ReportData:
    """Return a report of steps of these times, ms; `parts` are shares of each step, "device" all of it."""
    shares = parts or {"device": 1.0}
    rows = tuple(
        StepData(time, parts_ms={part: time * share for part, share in shares.items()})
        for time in times
    )
    step = float(np.median(times)) if times else None
    return ReportData(
        schema=1,
        tfdoctor="0.1.0",
        subject=subject,
        steps=StepsData(missing="" if times else "no steps", step_ms=step, rows=rows),
        results=tuple(results),
        breakdown_ms={part: (step or 0.0) * share for part, share in shares.items()},
        conditions=conditions,
    )


def finding(rule: str, path: str, saves_ms: float, line: int = 3) -> ResultData:
    """Return a finding with a place and a saving."""
    return ResultData(
        rule=rule,
        outcome="finding",
        topic="input",
        severity="warning",
        summary=f"{rule} costs time",
        saving=SavingData(saves_ms, saves_ms / 20),
        remedies=(RemedyData("change it", Location(path, line)),),
    )


def with_work(
    made: ReportData, operations: Mapping[str, float], stages: Mapping[str, float]
) -> ReportData:
    """Return a report with operations of one layer and stages of the pipeline, ms per step."""
    return replace(
        made,
        operations=tuple(OperationData(name, ms, "dense") for name, ms in operations.items()),
        pipeline=tuple(StageData(name, ms) for name, ms in stages.items()),
    )

"""Comparisons to render: a faster run, no difference, and unlike runs."""

from dataclasses import replace
from typing import Any

from tfdoctor.diagnosis.comparison import (
    ChangeOfRun,
    ChangeOfStep,
    Direction,
    FindingChange,
    FindingState,
    Mismatch,
    Mover,
    PartChange,
    PhaseChange,
    RegressionGate,
    RunComparison,
    RunSide,
    Undecided,
)
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Place

HOSTILE = "</script><img src=x onerror=alert(1)>|`@all"

BEFORE = RunSide(
    title="train.py",
    recordings=1,
    steps=60,
    step_ms=26.1,
    parts_ms={"input": 12.0, "host": 4.1, "device": 10.0},
    tfdoctor="0.1.0",
)
AFTER = replace(BEFORE, step_ms=18.0, parts_ms={"input": 0.3, "host": 4.2, "device": 13.5})


def compared(before: RunSide, after: RunSide, step: ChangeOfStep | None, **more: Any) -> RunComparison:
    return RunComparison(version="0.1.0", before=before, after=after, step=step, **more)


def part(name: str, before: float, after: float, *, changed: bool) -> PartChange:
    return PartChange(part=name, before=before, after=after, changed=changed)


def found(
    state: FindingState, rule: str, summary: str, severity: str, line: int = 12, **more: Any
) -> FindingChange:
    at = Place("src/train.py", line)
    return FindingChange(state=state, rule=rule, summary=summary, severity=severity, at=at, **more)


NEW, GONE = FindingState.NEW, FindingState.GONE


def phases(**times: tuple[float, float]) -> tuple[PhaseChange, ...]:
    return tuple(
        PhaseChange(phase=Phase[name.upper()], before_ms=first, after_ms=last)
        for name, (first, last) in times.items()
    )


def faster() -> RunComparison:
    waits = "Each step waits 12.0 ms for input"
    findings = (
        found(NEW, "float32-matmul", "Matmuls run in float32", "warning", 40, after_ms=4.0, after_kind="saving"),
        found(GONE, "input-bound", waits, "critical", before_ms=12.0, before_kind="cost"),
        found(GONE, "python-input", "The input pipeline runs Python", "critical", shown_by="input-bound"),
        replace(
            found(FindingState.UNCHECKED_AFTER, "matrix-unit", "The matrix unit is used to 4 %", "note"),
            at=None,
            before_ms=3.0,
            before_kind="cost",
        ),
    )
    return compared(
        BEFORE,
        AFTER,
        ChangeOfStep(change=-0.31, low=-0.34, high=-0.28, least=0.05, direction=Direction.FASTER),
        wider=("Other programs used 4 % of the cores while the steps after the change were traced.",),
        parts=(
            part("input", 12.0, 0.3, changed=True),
            part("host", 4.1, 4.2, changed=False),
            part("device", 10.0, 13.5, changed=True),
        ),
        movers=(
            Mover(kind="stage", name=".map(decode)", before=14.0, after=None),
            Mover(kind="operation", name="Conv2D (conv1)", before=4.0, after=6.0),
        ),
        findings=findings,
        gate=RegressionGate(most=0.05, failed=False),
    )


def alike() -> RunComparison:
    step = ChangeOfStep(change=0.004, low=-0.04, high=0.05, least=0.045, direction=Direction.NONE)
    return compared(BEFORE, BEFORE, step, parts=(part("input", 12.0, 12.0, changed=False),))


def unlike() -> RunComparison:
    return compared(
        BEFORE,
        AFTER,
        None,
        missing="the runs are not compared in milliseconds",
        in_ms=False,
        mismatches=(Mismatch("CPU", "EPYC", "Xeon"), Mismatch("command", "train.py", HOSTILE)),
        parts=(part("input", 0.46, 0.02, changed=True),),
        findings=(replace(found(FindingState.WORSE, HOSTILE, HOSTILE, ""), at=Place(HOSTILE, 1)),),
    )


def slower() -> RunComparison:
    step = ChangeOfStep(change=0.45, low=0.41, high=0.5, least=0.03, direction=Direction.SLOWER)
    gate = RegressionGate(most=0.05, failed=True)
    return compared(AFTER, BEFORE, step, parts=(part("input", 0.3, 12.0, changed=True),), gate=gate)


def unknown() -> RunComparison:
    """Two runs that differ too much in themselves, with few long steps after the change."""
    step = ChangeOfStep(change=-0.31, low=-0.62, high=0.25, least=0.81, direction=Direction.UNKNOWN)
    return compared(
        replace(BEFORE, mean_ms=26.4),
        replace(AFTER, mean_ms=44.0),
        replace(step, doubt=Undecided.WIDE),
        parts=(part("input", 12.0, 0.3, changed=False),),
        gate=RegressionGate(most=0.05, failed=False, unclear=True),
        long_steps=True,
    )


def whole() -> RunComparison:
    """Two runs that train nothing and are known whole: predict was called for each example."""
    nothing = RunSide(title="embed.py", recordings=1, steps=0, tfdoctor="0.1.0")
    times = phases(
        imports=(6_100.0, 6_300.0),
        preparing=(21_400.0, 21_600.0),
        prediction=(103_100.0, 11_100.0),
        end=(400.0, 400.0),
    )
    called = found(GONE, "slow-prediction", "predict is called for each example", "critical")
    return compared(
        nothing,
        nothing,
        None,
        missing="the step before the change is unknown: the run trains nothing",
        run=ChangeOfRun(before_ms=131_000.0, after_ms=39_400.0, phases=times),
        findings=(replace(called, at=Place("embed.py", 20), before_run_ms=92_000.0),),
    )


def sooner() -> RunComparison:
    """The same traced step, in a run whose functions are traced once: what users wait for."""
    traced = replace(BEFORE, untraced_ms=21.3)
    times = phases(imports=(2_600.0, 2_500.0), tracing=(7_400.0, 600.0), steps=(500.0, 500.0))
    run = ChangeOfRun(before_ms=10_500.0, after_ms=3_600.0, phases=times, epochs=(2, 2), steps=(60, 60))
    return replace(alike(), before=traced, after=traced, run=run)


def longer() -> RunComparison:
    """A slower step in a run of more epochs."""
    times = phases(steps=(50_000.0, 120_000.0), boundaries=(10_000.0, 20_000.0))
    run = ChangeOfRun(before_ms=60_000.0, after_ms=140_000.0, phases=times)
    return replace(slower(), run=replace(run, epochs=(10, 20), steps=(2_500, 5_000)))


ALL = {one.__name__: one for one in (faster, alike, unlike, slower, unknown, whole, longer, sooner)}

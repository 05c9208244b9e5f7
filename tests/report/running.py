"""Reports with an account of the run: one that trains, one that only predicts, a traced window, hostile names."""

from dataclasses import replace

from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import RunSaving, RunTogether
from tfdoctor.diagnosis.step import StepsSummary
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.terms.kinds import Phase, StepSource
from tfdoctor.terms.run_time import LongStepTime, PhaseLine, PhaseSegment
from tfdoctor.terms.verdict import Bound, Finding, Location, Recurrence, Remedy, Severity

TIMES = {
    Phase.START: 0.4,
    Phase.IMPORTS: 5.7,
    Phase.PREPARING: 21.4,
    Phase.TRACING: 9.8,
    Phase.STEPS: 72.0,
    Phase.BOUNDARIES: 17.3,
    Phase.EVALUATION: 4.2,
    Phase.END: 0.4,
}
"""Seconds of each phase of the run that trains."""

PREPARES = Location("prepare.py", 33)
COMPILES = Location("train.py", 31)
TRAINS = Location("train.py", 52)
EPOCHS = 10


def trains(base: Diagnosis) -> Diagnosis:
    """Return a report on a run of ten epochs, with a finding in each unit."""
    step, *others = base.results
    assert isinstance(step.outcome, Finding)
    per_step = replace(step, run=saving(17.3, Recurrence.PER_STEP, each=0.0041, times=4220, extrapolated=0.3))
    once = found(step, "slow-preparation", "Read the table once, with vectorized operations", PREPARES)
    epochs = found(step, "compile-in-loop", "Compile once, and assign the learning rate", COMPILES)
    results = (
        replace(
            once,
            run=saving(19.8, Recurrence.ONCE, bound=Bound.AT_MOST, extrapolated=0.02),
            severity=Severity.WARNING,
        ),
        per_step,
        replace(epochs, run=saving(9.4, Recurrence.PER_EPOCH, each=0.94, times=EPOCHS, extrapolated=0.09)),
    )
    together = RunTogether(
        ms=46_500.0,
        share=46.5 / 131.2,
        rules=("slow-preparation", step.rule.name, "compile-in-loop"),
        bound=Bound.AT_MOST,
        phases_after_ms={Phase.STEPS: 54_700.0, Phase.PREPARING: 1600.0},
        extrapolated_share=0.41,
    )
    return replace(base, results=(*results, *others), run=account(), run_together=together)


def predicts(base: Diagnosis) -> Diagnosis:
    """Return a report on a run that trains nothing."""
    where = Location("score.py", 18)
    times = {Phase.IMPORTS: 6.0, Phase.BUILDING: 4.0, Phase.PREDICTION: 30.0, Phase.UNNAMED: 1.0}
    run = RunAccount(
        total_ms=41_000.0,
        rows=rows(times, {Phase.PREDICTION: (line(where, 29.0, "Model.predict"),)}),
        segments=segments(times),
        recurring_ms=30_000.0,
    )
    result = found(base.results[0], "slow-prediction", "Predict all examples at once", where)
    result = replace(result, run=saving(26.0, Recurrence.PER_CALL, each=0.0026, times=10_000, whole=41.0))
    together = RunTogether(ms=26_000.0, share=26 / 41, rules=("slow-prediction",), bound=Bound.EXPECTED)
    return replace(
        base,
        steps=StepsSummary(source=StepSource.NONE, missing="nothing in the trace repeats"),
        results=(result, *base.results[4:]),
        together=None,
        timeline=None,
        accounts=(),
        run=run,
        run_together=together,
    )


def window(base: Diagnosis) -> Diagnosis:
    """Return a report on a trace from elsewhere: the account covers its window."""
    times = {Phase.STEPS: 1.1, Phase.UNNAMED: 0.1}
    run = RunAccount(
        total_ms=1200.0,
        rows=rows(times, {}),
        whole=False,
        missing="the rest of the run was not recorded: a trace contains the traced window only",
        window_steps=20,
    )
    return replace(base, run=run)


def hostile(base: Diagnosis, evil: str, long: str) -> Diagnosis:
    """Return a report in whose account every text is an attack on some rendering."""
    where = Location(evil, 3)
    run = account()
    bad = (line(where, 3.0, evil), line(None, 2.0, long), line(where, 1.0), line(where, 0.5))
    first, *others = base.results
    return replace(
        base,
        results=(replace(first, run=replace(saving(4.0, Recurrence.ONCE), how=evil)), *others),
        run=replace(
            run,
            rows=tuple(replace(row, lines=bad) for row in run.rows),
            segments=tuple(replace(one, at=where) for one in run.segments),
            others=(evil, long),
            notes=(evil, long),
            missing=evil,
            long_steps=LongStepTime(count=1, ms=20.0, beyond_ms=15_000.0, lines=bad),
        ),
        run_together=RunTogether(ms=4000.0, share=0.03, rules=(evil,), bound=Bound.AT_MOST),
    )


def account() -> RunAccount:
    """Return the account of a run of 131 s with four lines of preparing."""
    lines = {
        Phase.PREPARING: (
            line(PREPARES, 19.8, "pandas.DataFrame.iterrows"),
            line(Location("prepare.py", 12), 0.9, "pandas.read_csv"),
            line(Location("prepare.py", 40), 0.4),
            line(Location("prepare.py", 41), 0.2, "numpy.concatenate"),
        ),
        Phase.TRACING: (line(COMPILES, 9.4, "Model.compile"), line(None, 0.4)),
        Phase.STEPS: (line(TRAINS, 70.0, "Model.fit"),),
        Phase.BOUNDARIES: (line(Location("train.py", 47), 16.1, "Model.save_weights"),),
        Phase.EVALUATION: (line(TRAINS, 4.2, "Model.fit"),),
    }
    return RunAccount(
        total_ms=1000 * sum(TIMES.values()),
        rows=rows(TIMES, lines),
        segments=in_order(),
        recurring_ms=103_300.0,
        steps=4220,
        step_mean_ms=17.06,
        step_median_ms=16.9,
        epochs=EPOCHS,
        planned_epochs=90,
        for_epochs=90,
        window_share=0.96,
        window_steps=20,
        peak_bytes=5.1e9,
        others=("python loader.py (pid 4120)",),
        notes=("the machine was suspended for 20 s, which the run does not contain",),
        long_steps=LongStepTime(
            count=31,
            ms=4100.0,
            beyond_ms=3600.0,
            lines=(line(Location("train.py", 60), 2.8, "tf.summary.image"),),
            unknown_ms=800.0,
            first=10,
            first_beyond_ms=700.0,
        ),
    )


def line(at: Location | None, seconds: float, calls: str = "") -> PhaseLine:
    """Return time at a line, sampled 20 times a second."""
    return PhaseLine(at=at, ms=1000 * seconds, calls=calls, samples=int(20 * seconds))


def rows(times: dict[Phase, float], lines: dict[Phase, tuple[PhaseLine, ...]]) -> tuple[PhaseRow, ...]:
    """Return phases of so many seconds."""
    return tuple(
        PhaseRow(phase=phase, ms=1000 * seconds, lines=lines.get(phase, ())) for phase, seconds in times.items()
    )


def segments(times: dict[Phase, float]) -> tuple[PhaseSegment, ...]:
    """Return stretches that follow one another."""
    found, start = [], 0.0
    for phase, seconds in times.items():
        end = start + 1000 * seconds
        found.append(PhaseSegment(phase=phase, start_ms=start, end_ms=end))
        start = end
    return tuple(found)


def in_order() -> tuple[PhaseSegment, ...]:
    """Return the stretches of the run that trains: preparation, then its epochs, each with a boundary."""
    places = {Phase.PREPARING: PREPARES, Phase.TRACING: COMPILES, Phase.STEPS: TRAINS}
    times = [(phase, TIMES[phase]) for phase in (Phase.START, Phase.IMPORTS, Phase.PREPARING)]
    each = (Phase.TRACING, Phase.STEPS, Phase.EVALUATION, Phase.BOUNDARIES)
    times += [(phase, TIMES[phase] / EPOCHS) for _ in range(EPOCHS) for phase in each]
    times.append((Phase.END, TIMES[Phase.END]))
    found, start = [], 0.0
    for phase, seconds in times:
        end = start + 1000 * seconds
        at = places.get(phase)
        found.append(PhaseSegment(phase=phase, start_ms=start, end_ms=end, at=at))
        start = end
    return tuple(found)


def found(like: Result, name: str, action: str, at: Location) -> Result:
    """Return a finding of the run by a rule that is like another's."""
    doc = replace(like.rule.doc, title=name.replace("-", " ").capitalize())
    finding = Finding(
        summary=f"{action}: this is what it takes.",
        evidence=(),
        remedies=(Remedy(action=action, code="model.compile(optimizer)", at=at),),
    )
    return Result(rule=replace(like.rule, name=name, doc=doc), outcome=finding, severity=Severity.WARNING)


def saving(  # noqa: PLR0913 - the fields that differ
    seconds: float,
    recurs: Recurrence,
    *,
    each: float | None = None,
    times: int = 1,
    bound: Bound = Bound.EXPECTED,
    extrapolated: float | None = None,
    whole: float = 131.2,
) -> RunSaving:
    """Return a saving of a run of so many seconds."""
    return RunSaving(
        ms=1000 * seconds,
        share=seconds / whole,
        rated_share=max(seconds / whole, extrapolated or 0.0),
        recurs=recurs,
        each_ms=1000 * (seconds if each is None else each),
        times=times,
        bound=bound,
        how="The time of the line in the recorded run.",
        extrapolated_share=extrapolated,
    )

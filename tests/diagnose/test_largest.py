"""Places that take much and that no finding explains: of each case all that is said is in golden/largest.txt."""

from tests.diagnose.kit import *
from tests.facts.kit import Run, Told
from tfdoctor.diagnose.summary.largest import large_places
from tfdoctor.diagnosis.work import LargePlace, ProfileRow, WorkKind
from tfdoctor.facts.savings.layer_work import LayerCalls
from tfdoctor.recording.agent import *
from tfdoctor.recording.run_log import TrainingCall

TIMES = {Phase.IMPORTS: 30_000.0, Phase.STEPS: 40_000.0, Phase.EVALUATION: 20_000.0, Phase.PREPARING: 10_000.0}
FIT, CALL = 50, 51


def at(line: int) -> Location:
    return Location("train.py", line)


def run_of(*lines: RunLine, once_ms: float = 40_000.0, whole: bool = True) -> RunPhases:
    return RunPhases(total_ms=sum(TIMES.values()), times=TIMES, lines=lines, once_ms=once_ms, whole=whole)


def of(line: int, ms: float, phase: Phase = Phase.EVALUATION, calls: str = "numpy.sort", **more: Any) -> RunLine:
    return RunLine(phase=phase, at=at(line), ms=ms, samples=50, calls=calls, **{"exact": True, **more})


def row(line: int, share: float, what: str = "Conv2D", **more: Any) -> ProfileRow:
    made = ProfileRow(kind=WorkKind.OPERATION, what=what, part="device", ms=10 * share, share=share, at=at(line))
    return replace(made, **more)


def found(
    *lines: int, severity: Severity | None = Severity.WARNING, saves_ms: float = 0.0, of_step: float = 0.0
) -> Result:
    table = Table(("line",), tuple((at(line),) for line in lines))
    saving = replace(saving_of_run, ms=saves_ms) if saves_ms else None
    made = Finding(summary="Slow", evidence=(table,), remedies=())
    step = Saving(ms_per_step=1.0, share=of_step, bound=Bound.EXPECTED, how="") if of_step else None
    return Result(rule=rule(lambda: made), outcome=made, severity=severity, run=saving, saving=step)


def said_of(result: Result, **effects: Any) -> Result:
    return replace(result, outcome=replace(sure(result.finding), **effects))


saving_of_run = RunSaving(
    ms=1.0, share=0.1, rated_share=0.1, recurs=Recurrence.PER_STEP, each_ms=1.0, times=1, bound=Bound.EXPECTED
)


def places(
    phases: RunPhases | None = None, *results: Result, step: Sequence[ProfileRow] = ()
) -> tuple[LargePlace, ...]:
    return large_places(run_chart(phases, None, KNOWN), step, results)


CALLS = TrainingCall(frames=(("/home/me/train.py", CALL, "main"), ("/home/me/train.py", 70, "<module>")))
KNOWN = replace(
    recording(manifest=manifest(steps=StepsSeen(at=("/home/me/train.py", FIT)))),
    run=replace(Run().log(), training=(CALLS,)),
)


def again(calls: int, *around: int) -> object:
    """The places of a step of 10 ms, so many of which are calls of the layer of line 5 from the first line."""
    rows = tuple(
        OperationTime(
            name=f"cell_{n}/MatMul", type="MatMul", ms=1.0, layer="cell", at=at(5), around=(*map(at, around),)
        )
        for n in range(calls)
    )
    group = OperationGroup(type="MatMul", at=at(5), layers=("cell",), rows=rows)
    made = (*((row.name,) for row in rows), ("other",))  # another line calls it once
    chart = run_chart(None, None, KNOWN, OperationGroups((group,)), LayerCalls({"cell": made}))
    return large_places(chart, [row(5, calls / 10, "MatMul")], ())


told = Told()
told[places] = {
    "a line that takes a tenth of the run": run_of(
        of(7, 10_000.0, Phase.PREPARING), of(70, 9_999.0, Phase.PREPARING)
    ),
    "a tenth of what recurs is enough": run_of(of(7, 6_000.0), of(70, 5_999.0)),
    "the three largest": run_of(*(of(10 * at, 10_000.0 + at) for at in range(1, 6))),
    "lines of one loop are one place": run_of(
        *(of(line, 4_000.0, repeats=True, calls="", exact=False) for line in (7, 8, 9)),
        of(30, 4_000.0),
        once_ms=0.0,
    ),
    "of the call that trains evaluation alone is a place": (
        run_of(of(FIT, 40_000.0, Phase.STEPS), of(FIT, 20_000.0)),
    ),
    "lines of functions that one line calls": run_of(
        *(of(line, 3_000.0, around=(at(30), at(CALL))) for line in (100, 120, 140, 160)),
        of(200, 15_000.0, around=(at(31), at(CALL))),
        of(220, 2_000.0, around=(at(31), at(CALL))),
    ),
    "imports are no place": run_of(of(1, 30_000.0, Phase.IMPORTS)),
    "a window of steps has no places of a run": run_of(of(7, 20_000.0), whole=False),
    "a warning names the line": (run_of(of(7, 20_000.0)), found(7)),
    "a warning names another line": (run_of(of(7, 20_000.0)), found(8)),
    "notes that save half of it": (
        run_of(of(7, 20_000.0)),
        found(7, severity=Severity.NOTE, saves_ms=6_000.0),
        found(7, 8, severity=Severity.NOTE, saves_ms=4_000.0),
    ),
    "a note without a figure names the line": (run_of(of(7, 20_000.0)), found(7, severity=Severity.NOTE)),
    "a change leaves less of the steps than half of the line's time": (
        run_of(of(7, 20_000.0, Phase.STEPS)),
        found(8, of_step=0.76),
    ),
    "a change leaves more of the steps": (run_of(of(7, 20_000.0, Phase.STEPS)), found(8, of_step=0.74)),
    "a line that calls the training function": run_of(of(CALL, 40_000.0, Phase.STEPS)),
    "the loop's own time between epochs": run_of(
        of(FIT, 40_000.0, Phase.STEPS), of(FIT, 12_000.0, Phase.BOUNDARIES)
    ),
    "a note without a figure about steps, at a line that traces": (
        replace(run_of(of(7, 20_000.0, Phase.TRACING)), times={Phase.TRACING: 20_000.0}),
        said_of(found(7, severity=Severity.NOTE), effects=(Effect(Stage.HOST, 0.5, of=ms(1.0)),)),
    ),
    "a change at another line leaves less of the phase than half of the line's time": (
        run_of(of(7, 20_000.0)),
        said_of(found(8), run_effects=(RunEffect(phase=Phase.EVALUATION, of=ms(11_000.0)),)),
    ),
    "a note that saves less": (run_of(of(7, 20_000.0)), found(7, severity=Severity.NOTE, saves_ms=9_999.0)),
}
told[lambda *rows: places(None, step=rows)] = {
    "operations of a step": (row(7, 0.3), row(7, 0.2, "Relu"), row(8, 0.09)),
    "near the hardware's rates": row(7, 0.4, attained=0.5),
    "far from them": row(7, 0.4, attained=0.49),
    "near to the fastest of the run": row(7, 0.4, of_fastest=0.8),
    "half of a line's operations have a rate": (row(7, 0.2, attained=0.9), row(7, 0.2, "Mul")),
    "work beside the step costs it nothing": row(7, 0.4, beside=True),
    "no line is known": row(7, 0.4, at=None),
}

told[again] = {
    "a line calls a layer in a loop": (4, 9, 20, FIT, 60),
    "calls outside of the training say nothing of a step": (4, FIT, 60),
    "a layer that is called twice is shared by two parts of a network": (1, 9, 20, FIT),
}


@told
def what_a_line_takes_of_a_step_counts_in_all_of_the_run() -> object:
    return places(run_of(of(FIT, 40_000.0, Phase.STEPS), of(7, 1_000.0)), step=[row(7, 0.4), row(8, 0.1)])


test_largest = told.test("largest")


def test_what_a_rule_itself_makes_a_note_of_explains_no_place() -> None:
    """Such as a long call, whose result may be needed."""
    run, noted = run_of(of(12, 30_000.0)), found(12, severity=Severity.NOTE)
    assert [place.at for place in places(run, said_of(noted, severity=Severity.NOTE))] == [at(12)]
    assert places(run, noted) == ()

"""What a report says of a run: the sentences of each case, as ``golden/sentences.txt`` has them."""

from tests.report.kit import *
from tfdoctor.report import words
from tfdoctor.report.page import page


def with_steps(base: Diagnosis | None = None, **changes: Any) -> Diagnosis:
    base = base or full()
    return replace(base, steps=replace(base.steps, **changes))


def with_together(base: Diagnosis | None = None, **changes: Any) -> Diagnosis:
    base = base or full()
    assert base.together
    return replace(base, together=replace(base.together, **changes))


def outside(untraced_ms: float, base: Diagnosis | None = None) -> Diagnosis:
    base = base or full()
    return replace(base, conditions=replace(base.conditions, untraced_ms=untraced_ms))


def slowed() -> Diagnosis:
    """Return a report about the step without the profiler's cost: 30 of the 53.9 ms that were traced."""
    parts = {"input": 18.0, "device": 12.0}
    return with_together(with_steps(untraced_ms=30.0, untraced_breakdown_ms=parts), ms_per_step=20.0)


def few(base: Diagnosis, count: int) -> Diagnosis:
    return with_steps(base, count=count, rows=base.steps.rows[:count])


def unlike_the_first(base: Diagnosis, **changes: Any) -> Diagnosis:
    return replace(base, results=(*base.results, replace(full().results[0], **changes)))


def compiled() -> Diagnosis:
    """Return long steps whose cause is known."""
    outcome = full().results[0].outcome
    assert isinstance(outcome, Finding)
    long = replace(outcome, concern=Concern.LONG_STEPS)
    return unlike_the_first(with_steps(mean_ms=90.0), outcome=long, saving=None)


def doubtful() -> Diagnosis:
    """Return a healthy run whose recording is poor."""
    poor = diagnoses.rule("doubtful-recording", Topic.RECORDING)
    return unlike_the_first(healthy(), rule=poor, outcome=poor.counted(full().results[0].outcome))


GENERAL = replace(diagnoses.rule("hot-operation", Topic.OPERATIONS), general=True)
UNPRICED = tuple(replace(result, saving=None) for result in full().results)
PARTS = {
    "copies": {"transfer": 40.0, "input": 12.0},
    "the host": {"host": 40.0, "input": 12.0},
    "compute": {"device": 40.0, "input": 12.0},
    "collectives": {"collective": 40.0, "input": 12.0},
    "time between": {"between": 40.0, "input": 12.0},
    "unknown": {"unknown": 40.0, "input": 12.0},
    "nothing else": {"device": 52.0},
}

STEP = {
    "each step": full(),
    "the untraced step differs from the traced one": outside(40.0),
    "the untraced step is near the traced one": outside(51.0),
    "other programs delay the steps outside of the window": outside(1.5 * 52.0),
    "a few percent more outside": outside(1.2 * 52.0),
    "a ceiling is called one": with_together(bound=Bound.AT_MOST),
    "an impossible total is not shown": with_together(ms_per_step=60.0),
    "outliers raise the mean, and typical steps have no factor": with_steps(mean_ms=90.0),
    "a mean near the median is not told": with_steps(mean_ms=64.9),
    "an unknown mean": with_steps(mean_ms=None),
    "stalled steps are part of the mean": with_steps(stalled=2, step_ms=90.0, mean_ms=95.0),
    "the cause of long steps comes before the saving of typical ones": compiled(),
    "a step of unknown parts": with_steps(breakdown_ms={}),
    **{f"mostly {part}": with_steps(breakdown_ms=times) for part, times in PARTS.items()},
    "calls of several steps are counted as steps": with_steps(count=200),
    "a single step promises nothing": single_step(),
    "no steps": no_steps(),
    "no steps, no source": replace(full(), steps=StepsSummary(source=StepSource.NONE)),
    "without steps no speed is claimed": replace(no_steps(), results=healthy().results[:2]),
    "slow steps come first": slow_steps(),
    "a typical step beside slow ones is the untraced one too": outside(40.0, slow_steps()),
    "healthy counts what was checked": healthy(),
    "few checks are no bill of health": replace(healthy(), results=(healthy().results[0], *no_steps().results)),
    "a crash is no health": stored("errored"),
    "a poor recording is no fault of the run": doubtful(),
    "a general finding is a problem with its time": unlike_the_first(
        healthy(), rule=GENERAL, saving=None, takes=Takes(1.3, 0.13)
    ),
    "parts without a finding, the largest first": unexplained(),
    "part of the traced step": few(unexplained(), 1),
    "part of two traced steps": few(unexplained(), 2),
    "part of each step": few(unexplained(), 3),
    "without a total the best is named": replace(full(), together=None),
    "neither total nor price": replace(full(), together=None, results=UNPRICED),
    "without the cost of tracing": slowed(),
    "a few slowed steps are not each step": few(slowed(), 2),
    "times of traced steps beside bars without the profiler": with_steps(untraced_ms=30.0),
    "the ceiling of a symptom is no sentence beside its cause": caused(),
    "an exit code": replace(full(), subject=replace(full().subject, exit_code=3)),
}

NO_STEPS = StepsSummary(source=StepSource.NONE, missing="nothing repeats")


def seconds(**times: float) -> dict[Phase, float]:
    return {Phase[name.upper()]: time for name, time in times.items()}


def untraced(**changes: Any) -> Diagnosis:
    """Return a run without a trace, whose steps are known nonetheless."""
    known = {"step_mean_ms": 39.0, "step_median_ms": 25.8} | changes
    return of_run(spent(seconds(steps=72.0), **known), steps=NO_STEPS)


def ended(code: int | None) -> Diagnosis:
    unfinished = of_run(spent(seconds(steps=72.0), finished=False))
    return replace(unfinished, subject=replace(unfinished.subject, exit_code=code))


def long_steps(**changes: Any) -> Diagnosis:
    long = {"count": 3, "ms": 14_000.0, "beyond_ms": 13_000.0, "unknown_ms": 13_000.0} | changes
    return of_run(spent(seconds(steps=100.0), long_steps=LongStepTime(**long)))


def firsts(count: int, first: int) -> Diagnosis:
    """Return long steps of which so many are the first of a pass."""
    return long_steps(count=count, ms=1000.0, beyond_ms=950.0, unknown_ms=0.0, first=first, first_beyond_ms=900.0)


def with_summaries(step_mean_ms: float, *, known: bool = True) -> Diagnosis:
    """Return 400 steps, 10 s of whose 85 s are the phase of steps; the profiler runs after them."""
    calls = PhaseLine(at=None, ms=70_000.0, calls="tensorflow.summary.histogram")
    times = ((Phase.STEPS, 0, 5), (Phase.SAVING, 5, 75), (Phase.STEPS, 75, 80), (Phase.PROFILER, 80, 155))
    pieces = [PhaseSegment(phase=phase, start_ms=1e3 * at, end_ms=1e3 * end) for phase, at, end in times]
    made = spent(seconds(steps=10.0, saving=70.0, profiler=75.0), segments=tuple(pieces) if known else ())
    steps, saving, profiler = made.rows
    rows = (steps, replace(saving, lines=(calls,)), profiler)
    return of_run(replace(made, rows=rows, steps=400, step_mean_ms=step_mean_ms))


def saves_files(*calls: str) -> Diagnosis:
    lines = tuple(PhaseLine(at=None, ms=60_000.0, calls=one) for one in calls)
    row = PhaseRow(phase=Phase.SAVING, ms=120_000.0, lines=lines)
    return of_run(RunAccount(total_ms=120_000.0, rows=(row,)))


def long_end(end_ms: float, at: Location | None) -> Diagnosis:
    end = PhaseRow(phase=Phase.END, ms=end_ms, lines=(PhaseLine(at=at, ms=end_ms),))
    return of_run(RunAccount(total_ms=10_000.0 + end_ms, rows=(PhaseRow(phase=Phase.STEPS, ms=10_000.0), end)))


def with_run(**changes: Any) -> Diagnosis:
    return replace(diagnoses.run(), run=replace(account(), **changes))


def with_run_together(base: Diagnosis | None = None, **changes: Any) -> Diagnosis:
    base = base or diagnoses.run()
    assert base.run_together
    return replace(base, run_together=replace(base.run_together, **changes))


def bounded(share: float, rules: tuple[str, ...], bound: Bound = Bound.AT_MOST) -> Diagnosis:
    """Return a sum of these rules, where the traced steps are like so much of the steps' time."""
    return with_run_together(with_run(window_share=share), rules=rules, bound=bound)


def once_longer() -> Diagnosis:
    """Return a run that was ended early, and whose preparing takes longer than all of the planned steps."""
    rows = (*account().rows, PhaseRow(phase=Phase.PREPARING, ms=1e8))
    longer = {"total_ms": account().total_ms + 1e8, "rows": rows}
    return with_run(ended_early=True, for_epochs=2, for_times=2.0, **longer)


OF_STEP = tuple(one.rule.name for one in diagnoses.run().results if one.saving and one.saving.ms_per_step > 0)
OF_RUN = tuple(one.rule.name for one in diagnoses.run().results if one.run and not one.saving)
LITTLE = spent(seconds(steps=9.0, preparing=91.0))
WITHOUT_PRICES = tuple(replace(result, run=None) for result in diagnoses.run().results)

RUN = {
    "little preparing": of_run(spent(seconds(preparing=59.2, steps=72.0))),
    "mostly tracing": of_run(spent(seconds(tracing=11.3, steps=1.0))),
    "the largest other part": of_run(spent(seconds(preparing=23.0, imports=27.0, steps=20.0))),
    "steps alone": of_run(spent(seconds(steps=72.0))),
    "nothing named": of_run(spent(seconds(unnamed=72.0))),
    "it trains nothing, and no step is missed": of_run(
        spent(seconds(imports=11.0, prediction=30.0)), steps=NO_STEPS, results=(), together=None
    ),
    "training may have gone unseen": of_run(spent(seconds(children=11.0), unseen=True), steps=NO_STEPS),
    "steps that the recorder cannot see are not nothing": of_run(
        spent(seconds(tracing=10.0, end=2.0)), steps=replace(NO_STEPS, source=StepSource.GRAPH_LOOP)
    ),
    "untraced steps": untraced(steps=4220, step_median_ms=16.9),
    "one untraced step": untraced(steps=1),
    "two untraced steps have no median": untraced(steps=2),
    "three untraced steps": untraced(steps=3),
    "untraced steps of three loops": untraced(steps=500, step_loops=3),
    "no recorded end": ended(None),
    "ended by SIGKILL": ended(137),
    "ended by an unknown signal": ended(128 + 99),
    "ended by os._exit": ended(3),
    "little unnamed time": of_run(spent(seconds(steps=91.0, unnamed=9.0))),
    "much unnamed time": of_run(spent(seconds(steps=88.0, unnamed=12.0))),
    "the profiler is no work of the script": of_run(spent(seconds(steps=4.0, profiler=6.0, end=1.0))),
    "the traced steps stand for most": of_run(spent(seconds(steps=72.0), window_share=0.96, window_steps=20)),
    "the traced steps stand for little": of_run(spent(seconds(steps=72.0), window_share=0.08, window_steps=20)),
    "long steps without a cause": long_steps(),
    "long steps with some cause": long_steps(unknown_ms=8000.0),
    "the long step is a first one": firsts(1, 1),
    "each long step is a first one": firsts(2, 2),
    "one of the long steps is a first one": firsts(3, 1),
    "some long steps are first ones": firsts(3, 2),
    "a traced window is not the run": run_window(),
    "changes save of the run, then of a step": diagnoses.run(),
    "a step that is little of the run promises nothing": replace(diagnoses.run(), run=LITTLE),
    "and nothing is priced": replace(diagnoses.run(), run=LITTLE, run_together=None, results=WITHOUT_PRICES),
    "slow steps are told by the account": replace(slow_steps(), run=spent(seconds(steps=72.0))),
    "too few steps forbid savings of the step alone": with_steps(diagnoses.run(), too_few=True),
    "without a trace no traced steps are missed": with_steps(
        of_run(spent(seconds(steps=10.0, imports=2.0))), too_few=True, rows=()
    ),
    "without a sum the largest saving is named": replace(diagnoses.run(), run_together=None),
    "fewer entries in the sum": replace(
        with_run_together(rules=("slow-preparation", "compile-in-loop")), order=None
    ),
    # Rounded to two digits, 10.5 s of 10.7 s is 11 s.
    "a run is not said to become longer": replace(with_run_together(share=0.04), order=None),
    # Trap: most steps are unlike the traced ones, so that more can be saved than "at best".
    "a bound counts the steps that are like the traced ones": bounded(0.37, OF_STEP),
    "also beside changes of the run": bounded(0.79, OF_STEP + OF_RUN),
    "not for changes of the run alone": bounded(0.37, OF_RUN),
    "not where it is no bound": bounded(0.37, OF_STEP, Bound.EXPECTED),
    "not where nearly all are like them": bounded(0.81, OF_STEP),
    "ended early: the steps first": with_run(ended_early=True),
    "ended early, but the steps are little": once_longer(),
    "a long end without a line": long_end(20_000.0, None),
    "a long end at a line": long_end(20_000.0, Location("train.py", 9)),
    "a short end": long_end(900.0, None),
    # Else the step times the number of steps contradicts the time of all steps.
    "what lies between steps": with_summaries(200.0),
    "what lies between steps is not known": with_summaries(200.0, known=False),
    "nothing lies between steps": with_summaries(27.0),
    "saves summaries": saves_files("tensorflow.summary.histogram", "TensorBoard.on_epoch_end"),
    "saves all": saves_files("python.ops.summary_ops_v2.flush", "Model.save"),
    "saves models": saves_files("Model.summary", "ModelCheckpoint.on_epoch_end"),
    "saves something": saves_files(),
}


def of_the_run() -> Diagnosis:
    """Return a promise that is little of the step and most of the run, whose time passes between steps."""
    first, *others, last = full().results
    promise = replace(saves(40.0, Recurrence.PER_EPOCH, times=10), share=0.9, rated_share=0.9)
    results = (first, *others, replace(last, outcome=first.outcome, run=promise))
    tried_one = trial("a", NOTHING, promised=replace(PROMISED, share=0.85))
    return with_trials(tried_one, base=replace(full(), results=results, run=account()))


KEPT, LOST = trial("a", HELPS, kept=True), trial("b", HURTS)
UNTRIED = Trial(name="c", missing="there was no time left for it")
SAME, UNCLEAR = trial("d", NOTHING), trial("e", NOISY)
LARGER = trial("batch", HELPS, training=CHANGED, examples=2.0)
WIDE = replace(NOISY, rounds=(*NOISY.rounds, *NOISY.rounds))
NO_TIME = Trial(name="c", missing="its two rounds did not fit into one minute", promised=PROMISED)

TRIED = {
    "what was measured stands before what was predicted": tried(),
    "one helps, and one was not tried": with_trials(KEPT, UNTRIED),
    "a larger promise was not tried": with_trials(KEPT),
    "no larger promise": with_trials(replace(KEPT, promised=replace(PROMISED, share=0.99))),
    "one of two helps": with_trials(KEPT, LOST),
    "one does not help": with_trials(LOST, UNTRIED),
    # As no trial is stored: a variant with a figure ran, whatever the number of its runs says.
    "a figure means that it ran": with_trials(replace(LOST, runs=0)),
    "neither helps": with_trials(LOST, SAME),
    "none helps": with_trials(LOST, SAME, UNCLEAR),
    "unclear, and nothing": with_trials(UNCLEAR, SAME),
    "nothing was measured": with_trials(UNTRIED),
    "how long is enough": with_trials(UNTRIED, needed_minutes=2.2),
    "a larger batch is no change without effect": with_trials(LARGER),
    "a larger batch is kept": with_trials(replace(LARGER, kept=True)),
    "a set counts once": with_trials(
        KEPT, trial("b", HELPS, kept=True), trial("a + b", HELPS, parts=("a", "b")), together="a + b"
    ),
    "a plus in the name of a patch makes no set": with_trials(KEPT, trial("b", NOTHING), trial("a + b", NOTHING)),
    "rounds that differ too much": with_trials(trial("a", WIDE)),
    "rounds that are too few": with_trials(trial("a", NOISY), trial("b", WIDE)),
    "the promise is unclear, another change costs": with_trials(trial("a", WIDE, promised=PROMISED), LOST),
    "no time for the promise, another change costs": with_trials(NO_TIME, LOST),
    "promises are compared by the run": of_the_run(),
    "parts alone": without(INPUT, CHECKPOINT),
    "parts without a figure": without(BROKEN),
    "parts beside changes": without(INPUT, base=tried()),
}


def caused_by(changes: dict[str, Any], general: dict[str, Any] | None = None) -> Diagnosis:
    """Return a symptom and its two causes alone: these changes are of both, or of the first and of the other."""
    symptom, specific, other = caused().results[:3]
    causes = (replace(specific, **changes), replace(other, **(changes if general is None else general)))
    return replace(caused(), results=(symptom, *causes))


def weaker(ms: float) -> dict[str, Any]:
    known = caused().results[0].saving
    assert known
    return {"saving": replace(known, ms_per_step=ms)}


def is_general(takes_ms: float, **more: Any) -> dict[str, Any]:
    """Return the changes of a cause that make its rule a general one."""
    rule = replace(caused().results[2].rule, general=True)
    return {"rule": rule, "saving": None, "takes": Takes(takes_ms, takes_ms / 52.0), **more}


def ceilings(takes_ms: float) -> Diagnosis:
    """Return a symptom that bounds its stage, and a general rule that names the stage with its time."""
    symptom, _, other = caused().results[:3]
    effect = Effect(Stage.INPUT, 0.0, bound=Bound.AT_MOST)
    symptom = replace(symptom, outcome=replace(findings.finding(symptom), effects=(effect,)))
    return replace(caused(), results=(symptom, replace(other, **is_general(takes_ms))))


def edits_differ() -> Diagnosis:
    symptom, *causes = caused().results[:3]
    at = Location("train.py", 41)
    edited = [diagnoses.edited(one, Edit(at, "x", new)) for one, new in zip(causes, "yz", strict=True)]
    return replace(caused(), results=(symptom, *edited))


def about_calls() -> Diagnosis:
    """Return findings about calls of the step and of the run, of which two are the same calls."""
    about = ((RunCall.PREDICT, 30), (RunCall.PREDICT, 30), (RunCall.PREDICT, 31), (RunCall.SAVE, 30))
    results = []
    for result, (call, line) in zip(full().results, about, strict=False):
        found = findings.finding(result)
        remedy = replace(found.remedies[0], at=Location("train.py", line))
        results.append(replace(result, outcome=replace(found, about=call, remedies=(remedy,))))
    return replace(full(), results=tuple(results), order=None)


def padding(alike: int, *remedies: Remedy) -> Diagnosis:
    found = Finding(summary="Padding", evidence=(), remedies=remedies, alike=alike)
    return replace(full(), results=(Result(rule=diagnoses.rule("padding"), outcome=found),))


FIRST = Remedy("choose 32 in a", at=Location("train.py", 3))
INSTEAD = Remedy("Or train in bfloat16", at=Location("train.py", 9))
LESS = replace(findings.finding(caused().results[2]), remedies=(Remedy("Let it handle less"),))

ENTRIES = {
    "findings without relations": full(),
    "a symptom is told with its cause, and one edit is one entry": caused(),
    # Trap: 41.5 ms of wait must not vanish behind a cause of 5 ms.
    "causes that explain little": caused_by(weaker(5.0)),
    "causes without a figure": caused_by({"saving": None}),
    # A stage beside the slow one would stand first, with all of the wait as its saving.
    "a general cause beside a specific one": caused_by({}, is_general(12.0, outcome=LESS)),
    # A general rule names the stage that steps wait for, and states its time; its saving is that of the wait.
    "two ceilings of one stage": ceilings(22.0),
    "a ceiling and a shorter stage": ceilings(21.0),
    "edits that differ": edits_differ(),
    "the same calls of the step and of the run": about_calls(),
    "a poor recording is none": doubtful(),
    "one change": padding(0, FIRST, INSTEAD),
    "one more like it": padding(1, FIRST, INSTEAD),
    "seven more like it": padding(7, FIRST, INSTEAD),
    "no change": padding(0),
}
BARS = {
    "now and predicted": full(),
    "beside an untraced step the prediction is a share": outside(40.0),
    "a bound beside an untraced step": with_together(outside(40.0), bound=Bound.AT_MOST),
    "as measured with the changes that help": with_trials(KEPT, LOST),
    "nothing helped": with_trials(LOST),
    # Trap: with a larger batch the saving is one per example, and the step itself is longer.
    "a larger batch": with_trials(replace(KEPT, examples=2.0)),
    "no steps": no_steps(),
    "unknown numbers": diagnoses.unknown_numbers(),
    "changes that do not shorten it": with_together(after_ms={"device": 60.0}),
}


def entries(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the entries: rules, what to change, where, how bad, what it saves, and in which sum."""
    for one in page(diagnosis).entries:
        saved = words.joined(*findings.saving(one, diagnosis)) or words.takes(one.result.takes) or "no figure"
        where, sums = place(one.result.place), "in the sum" if one.in_sum else "not in the sum"
        told = (findings.what(one.result), where, findings.severity(one), saved, sums)
        yield f"{findings.rules(one)}: {words.joined(*told, by=' | ')}"


def bars(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the bars of a step, with the widths of their parts."""
    for bar in step_bars(diagnosis):
        yield f"{bar.label}, {bar.time}: {', '.join(f'{one.words} ({one.width:.3f})' for one in bar.pieces)}"


def said(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what is said of a run; of the trust and of each part, what is not said of the full report as well."""
    shown, usual = page(diagnosis), {*sentences.trust(full()), *(told for _, _, told in words.accounts(full()))}
    yield from shown.verdict
    yield from (f"- {one}" for one in (*shown.remarks, *shown.order, *sentences.unknown(diagnosis)))
    own = (*sentences.trust(diagnosis), *(told for _, _, told in words.accounts(diagnosis)))
    yield from (f"- {one}" for one in own if one not in usual)
    if made := section(diagnosis.run):
        yield from (f"* {one}" for one in (made.step_title, made.long, *made.notes) if one)


def test_what_is_said_of_each_run(golden: Compare) -> None:
    topics = (("Steps", STEP, said), ("Runs", RUN, said), ("Trials", TRIED, said))
    texts = [
        "\n".join([f"## {topic}: {name}", "", *tell(diagnosis), ""])
        for topic, cases, tell in (*topics, ("Entries", ENTRIES, entries), ("Bars", BARS, bars))
        for name, diagnosis in cases.items()
    ]
    golden("sentences.txt", "\n".join(texts))

"""Diagnoses to render: a full one, and one for each way in which a report can be unusual.

Most are stored: what ``golden/NAME.json`` holds is read, and rendered as that same file.
"""

from itertools import zip_longest

from tests.cases import sure
from tests.kit import *
from tfdoctor.diagnose.summary.timeline import TimelineWork, drawn
from tfdoctor.diagnosis import Diagnosis, SecondOpinion, Subject, Trust, work
from tfdoctor.diagnosis.hosts import Hosts
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import RunSaving, RunTogether, Saving, Together
from tfdoctor.diagnosis.step import Account, AccountState, StepsSummary
from tfdoctor.diagnosis.trials import Difference, Measured, PartTrial, TrainingMatch, TrainingState, Trial, Trials
from tfdoctor.diagnosis.work import LargePlace, OperationRow, PhaseRow, Profile, ProfileRow, RunAccount, WorkKind
from tfdoctor.report import sentences
from tfdoctor.report.formats import html, render
from tfdoctor.report.page import page, prospects
from tfdoctor.report.pictures import charts as pictures
from tfdoctor.report.pictures.figures import Figure
from tfdoctor.stored import report as stored_report
from tfdoctor.terms.kinds import DeviceKind, Part, Phase, TrustLevel
from tfdoctor.terms.pages import RuleDoc
from tfdoctor.terms.run_time import LongStepTime, PhaseLine, PhaseSegment, SlowStepsSummary
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Edit,
    Errored,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Recurrence,
    Remedy,
    Severity,
    Table,
    Verdict,
)


def told(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the sentences of the verdict: what run and step take, and what would change it."""
    return (*sentences.account(diagnosis), *prospects(diagnosis))


def charts(diagnosis: Diagnosis) -> tuple[Figure, ...]:
    return pictures.charts(page(diagnosis))


HOSTILE = "</script><img src=x onerror=alert(1)><!--<script>`|[bold red]@all *x* <b>y</b> &lt; %{x} $z$"
INVISIBLE = "a\x00b\u202ec\u2028d\ud800e\x1b[31mf\ng"
LONG = "tensorflow::functor::" + "x" * 10_000 + "::operator()"

WHY = """\
While the trainer waits, the device does nothing: `IteratorGetNext` blocks until a batch is ready.

- Each waiting millisecond is paid in **every** step.
- See [the guide](https://www.tensorflow.org/guide/data), not [this](javascript:alert(1)).
"""
SOURCES = "- [tf.data performance](https://www.tensorflow.org/guide/data_performance)"


def rule(name: str, topic: Topic = Topic.INPUT, title: str = "", why: str = WHY) -> Rule:
    """Return a rule that only has a name and a documentation."""
    sections = {
        "What it checks": "The wait.",
        "Why it matters": why,
        "How to fix": "Prefetch.",
        "Holds for": "TensorFlow 2.18 and later.",
        "Sources": SOURCES,
    }
    doc = RuleDoc(title or name.replace("-", " ").capitalize(), sections)
    return Rule(name, topic, "0.1.0", doc, ("Steps",), _never, _never, _never)


def _never() -> Verdict:
    raise AssertionError("a renderer must not run a rule")


@cache
def stored(kind: str) -> Diagnosis:
    """Return the diagnosis of a golden file, with rules that only have a name and a documentation."""
    content = json.loads((Path(__file__).with_name("golden") / f"{kind}.json").read_text("utf-8"))
    named = [(rule(one["rule"], Topic(one["topic"]), one["title"]), one) for one in content["results"]]
    return stored_report.read(content, [replace(made, own=one.get("own", False)) for made, one in named])


STORED = {
    "full": "an input-bound run on a GPU, with all that a report can show",
    "run": "the run with its account of ten epochs, and findings in each unit",
    "run-predicts": "a run that trains nothing",
    "gated": "a budget in each state, and a baseline that knows one finding",
    "configured": "as judged by what a user chose and set, with findings that bear on each other",
    "several-hosts": "one host among four",
    "tried": "changes that help, do nothing, hurt, train something else, crashed and never ran",
    "caused": "a cause of the wait for input, and a second rule that asks for the same edit",
    "healthy": "it computes all the time and nothing is wrong",
    "unexplained": "no rule explains the host time, and only a part of the compute",
    "no-steps": "no step can be seen, so that hardly a rule applies",
    "errored": "the only rule crashed",
    "single-step": "one step, which tells nothing of the spread",
}

full, run = partial(stored, "full"), partial(stored, "run")
tried, caused, gated = partial(stored, "tried"), partial(stored, "caused"), partial(stored, "gated")
healthy, unexplained = partial(stored, "healthy"), partial(stored, "unexplained")
no_steps, single_step = partial(stored, "no-steps"), partial(stored, "single-step")
several_hosts = partial(stored, "several-hosts")


def untried() -> Diagnosis:
    """Return the tried one as it was before its trial."""
    return replace(tried(), trials=None, results=tuple(replace(one, measured=None) for one in tried().results))


RATE = "Matmuls run at 71 % of the rate that this GPU reaches"
WHOLE = ("html", "json", "md")
"""Formats that contain all of a diagnosis."""

HELPS = Measured(share=0.31, low=0.28, high=0.34, difference=Difference.SAVES, rounds=(0.3, 0.31, 0.33))
NOTHING = Measured(share=0.01, low=-0.02, high=0.03, difference=Difference.NONE, rounds=(0.0, 0.01))
HURTS = Measured(share=-0.26, low=-0.29, high=-0.24, difference=Difference.COSTS, rounds=(-0.26,))
NOISY = replace(NOTHING, low=-0.4, high=0.5, difference=Difference.UNKNOWN)
SLOW = Measured(share=-1.87, low=-2.43, high=-1.4, difference=Difference.COSTS, rounds=(-1.67, -2.09))

PROMISED = Saving(ms_per_step=4.0, share=0.4, bound=Bound.EXPECTED, how="By the step model.")
AT_MOST = Saving(ms_per_step=0.4, share=0.04, bound=Bound.AT_MOST, how="By the step model.")

LOSSES = TrainingMatch(
    state=TrainingState.LOSSES, step=20, losses=((1, 2.0, 2.1), (2, 1.5, 1.6)), apart=0.05, usual=0.0002
)
CHANGED = TrainingMatch(state=TrainingState.CHANGED, why="the batch is twice as large")
DIFFERENT = TrainingMatch(state=TrainingState.DIFFERENT, step=20, losses=((1, 2.0, 2.1),))


def trial(name: str, measured: Measured, **more: Any) -> Trial:
    """Return a variant of a program whose step is 10 ms, with a run in each round."""
    step_ms = 10 * (1 - measured.share)
    return Trial(name=name, measured=measured, step_ms=step_ms, runs=len(measured.rounds), **more)


def edited(result: Result, *edits: Edit) -> Result:
    """Return a finding with edits of its first remedies, and none of the others."""
    found = sure(result.finding)
    each = [edit for edit, _ in zip_longest(edits, found.remedies)]
    return replace(result, outcome=found.edited(each[: len(found.remedies)]))


def steps(number: int) -> StepsSummary:
    """Return so many steps like those of the full diagnosis."""
    known = full().steps
    rows = (replace(known.rows[at % len(known.rows)], number=10 + at) for at in range(number))
    return replace(known, rows=tuple(rows), count=number)


# The account of a run


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


def account() -> RunAccount:
    """Return the account of a run of 131 s with four lines of preparing."""
    return sure(run().run)


def spent(times: dict[Phase, float], **changes: Any) -> RunAccount:
    """Return the account of a run with so many seconds of each phase, one after the other."""
    rows = tuple(PhaseRow(phase=phase, ms=1000 * seconds) for phase, seconds in times.items())
    segments, start = [], 0.0
    for row in rows:
        segments.append(PhaseSegment(phase=row.phase, start_ms=start, end_ms=start + row.ms))
        start += row.ms
    return replace(RunAccount(total_ms=start, rows=rows, segments=tuple(segments)), **changes)


def of_run(run: RunAccount, **changes: Any) -> Diagnosis:
    return replace(full(), run=run, **changes)


def run_window() -> Diagnosis:
    """Return a report on a trace from elsewhere: the account covers its window."""
    window = spent({Phase.STEPS: 1.1, Phase.UNNAMED: 0.1}, segments=(), whole=False, window_steps=20)
    missing = "the rest of the run was not recorded: a trace contains the traced window only"
    return of_run(replace(window, missing=missing))


def with_trials(*rows: Trial, base: Diagnosis | None = None, **more: Any) -> Diagnosis:
    """Return the full report with these trials."""
    return replace(base or full(), trials=Trials(rows=rows, **more))


def without(*parts: PartTrial, base: Diagnosis | None = None) -> Diagnosis:
    base = base or full()
    known = base.trials or Trials(rows=(), runs=9, rounds=3, minutes=4.0)
    return replace(base, trials=replace(known, parts=parts))


CHECKPOINT = PartTrial(
    part=Part.CALLBACK,
    name="ModelCheckpoint",
    at=Location("train.py", 9),
    share=0.4,
    measured=replace(HELPS, share=0.47, low=0.44, high=0.5, of_run=True),
    as_is_ms=20_000.0,
    without_ms=10_600.0,
    runs=3,
)
INPUT = PartTrial(
    part=Part.INPUT,
    name="input",
    measured=replace(HELPS, share=0.38, low=0.33, high=0.42),
    rule="input-bound",
    promised=AT_MOST,
)
BROKEN = PartTrial(part=Part.SUMMARIES, name="tf.summary", missing="the program fails without it (KeyError: 'a')")


# What is unusual


def slow_steps() -> Diagnosis:
    """Return a run that spends most of its time in slow steps."""
    slow = SlowStepsSummary(number=16, ms=4650.0, timed=91, timed_ms=4780.0)
    return replace(full(), steps=replace(steps(5), slow=slow))


def hostile() -> Diagnosis:
    """Return a run in which every text is an attack on some rendering."""
    evil = HOSTILE + INVISIBLE
    where, nan, inf = Location(HOSTILE, 3), float("nan"), float("inf")
    table = Table((HOSTILE, LONG), ((HOSTILE, LONG), (INVISIBLE, where)))
    remedies = (
        Remedy(action=evil, code=f"```\n{HOSTILE}\n~~~\n{LONG}", at=where, edit_id=HOSTILE),
        Remedy(action=evil, at=where),
    )
    finding = Finding(
        summary=evil, evidence=(Measure(HOSTILE, ratio(nan), ms(inf)), table), remedies=remedies
    ).edited((Edit(where, missing=evil), Edit(where, f"```\n{HOSTILE}", f"{INVISIBLE}\n</pre>{HOSTILE}\n{LONG}")))
    saving = Saving(ms_per_step=4.0, share=0.1, bound=Bound.AT_MOST, how=evil, after=(HOSTILE,))
    why = f"{HOSTILE}\n\n<img src=x>\n\n![x](https://x.test/x.png)"
    bad = [rule(f"{HOSTILE}{more}", title=HOSTILE, why=why) for more in ("", "2", "3", "4")]
    crash = Errored(error=evil, traceback=f"```\n{evil}\n</pre>{LONG}")
    row = ProfileRow(
        kind=WorkKind.LINE, what=evil, part=HOSTILE, ms=nan, share=inf, at=where, layer=LONG, unknown=evil
    )
    unexplained = Account(
        part="input",
        total_ms=43.1,
        state=AccountState.UNEXPLAINED,
        unexplained_ms=43.1,
        rules=(HOSTILE,),
        why=(evil,),
    )
    base = full()
    known = sure(base.timeline)
    lanes = [replace(lane, name=lane.name and evil) for lane in known.lanes]
    return replace(
        base,
        version=HOSTILE,
        subject=Subject(
            title=evil,
            command=("python", evil),
            device=DeviceKind.GPU,
            device_name=LONG,
            framework={HOSTILE: HOSTILE},
            hosts=(evil,),
            exit_code=3,
        ),
        trust=Trust(level=TrustLevel.LOW, reasons=(evil, LONG)),
        profile=Profile(rows=(row,)),
        large=(LargePlace(at=where, what=evil, phase=Phase.STEPS, ms=1.0),),
        results=(
            Result(rule=bad[0], outcome=finding, saving=saving, severity=Severity.CRITICAL),
            Result(rule=bad[1], outcome=Healthy(summary=evil, evidence=(table,))),
            Result(rule=bad[2], outcome=NotApplicable(reason=evil)),
            Result(rule=bad[3], outcome=crash),
        ),
        together=Together(ms_per_step=4.0, share=0.1, rules=(HOSTILE,)),
        xprof=SecondOpinion(conclusion=evil, agrees=False, why=LONG),
        timeline=replace(known, names=(evil,) * len(known.names), lanes=tuple(lanes)),
        pipeline=tuple(replace(one, name=HOSTILE, written=evil, note=LONG, at=where) for one in base.pipeline),
        operations=tuple(
            replace(row, layer=f"{row.layer}{HOSTILE}", operation=evil, detail=LONG, at=where)
            for row in base.operations
        ),
        model=(Measure(evil, ms(1.0)),),
        machine=((evil, evil),),
        samples=(Measure(LONG, ratio(0.5)),),
        device_time=(Measure(evil, ms(1.0)),),
        device_time_missing=evil,
        unrecorded=(evil,),
        accounts=(unexplained,),
    )


def hostile_run() -> Diagnosis:
    """Return a report in whose account every text is an attack on some rendering."""
    evil, base, run = HOSTILE + INVISIBLE, hostile(), account()
    where = Location(evil, 3)
    bad = tuple(
        PhaseLine(at=at, ms=time, calls=calls, samples=int(time / 50))
        for at, time, calls in ((where, 3e3, evil), (None, 2e3, LONG), (where, 1e3, ""), (where, 500.0, ""))
    )
    first, *others = base.results
    return replace(
        base,
        results=(replace(first, run=replace(saving(4.0, Recurrence.ONCE), how=evil)), *others),
        run=replace(
            run,
            rows=tuple(replace(row, lines=bad) for row in run.rows),
            segments=tuple(replace(one, at=where) for one in run.segments),
            others=(evil, LONG),
            notes=(evil, LONG),
            imports=(work.ImportedPackage(package=evil, at=None, ms=1.0, late=evil),),
            missing=evil,
            long_steps=LongStepTime(count=1, ms=20.0, beyond_ms=15_000.0, lines=bad),
        ),
        run_together=RunTogether(ms=4000.0, share=0.03, rules=(evil,), bound=Bound.AT_MOST),
    )


def hostile_hosts(prefix: str = HOSTILE + INVISIBLE, count: int = 64) -> Diagnosis:
    """Return many hosts, whose names are attacks."""
    hosts = sure(several_hosts().hosts)
    fast, slow, _, server = hosts.rows
    names = [f"{prefix}{number}" for number in range(count)]
    rows = [replace(slow if name == names[1] else fast, name=name) for name in names]
    first, second = hosts.findings
    found = (replace(first, hosts=(names[1],)), replace(second, hosts=tuple(names[::2])))
    server = replace(server, name=f"{prefix}ps")
    return replace(full(), hosts=renamed(hosts, rows=(*rows, server), name=names[1], findings=found))


def renamed(hosts: Hosts, name: str, **changes: Any) -> Hosts:
    slowest = f"The other hosts wait for {name}: its own work takes 34.0 ms more per step"
    return replace(hosts, shown=name, straggler=name, slowest=slowest, **changes)


def huge() -> Diagnosis:
    """Return a run with 500 offenders in a table and 3000 operations."""
    rows = tuple((f"layer_{at}", Location("model.py", at), ms(at / 7), ratio(at / 5000)) for at in range(500))
    padded = Table(("layer", "line", "time", "share"), rows)
    remedies = (Remedy(action="Make widths a multiple of 128"),)
    plain = Finding(summary="500 layers are padded.", evidence=(), remedies=remedies)
    found = (
        Result(
            rule=rule(f"rule-{at}", Topic.OPERATIONS),
            outcome=plain if at else replace(plain, evidence=(padded,)),
            severity=Severity.NOTE,
        )
        for at in range(40)
    )
    heavy = tuple(
        OperationRow(
            layer=f"block_{at % 60}/layer_{at}",
            operation=("Conv2D", "MatMul", "AddV2", "Relu")[at % 4],
            self_ms=30 / (at + 1),
            share=30 / (at + 1) / 52,
            detail="f32[256,56,56,64] x f32[3,3,64,64]",
        )
        for at in range(3000)
    )
    work = [TimelineWork(52.0 * at / 4000, 0.01, "device", f"conv_{at % 9} (Conv2D)") for at in range(4000)]
    timeline = drawn(12, 52.0, [("step", work), ("operations", work)], 3)
    results = (*found, *full().results)
    return replace(full(), results=results, operations=heavy, steps=steps(300), timeline=timeline)


def unknown_numbers() -> Diagnosis:
    """Return a run whose every number came out as NaN or infinite."""
    base, nan, inf = full(), float("nan"), float("inf")
    each = (nan, inf, 1.0, 0.0, -1.0)
    rows = tuple(
        replace(row, total_ms=at, parts_ms={part: nan for part, time in row.parts_ms.items() if time})
        for row, at in zip(base.steps.rows, (nan, inf, 52.0), strict=False)
    )
    parts = dict.fromkeys(base.steps.breakdown_ms, nan)
    bad = Saving(ms_per_step=nan, share=nan, bound=Bound.EXPECTED, how="0 / 0", after=("x",))
    stages, operations = zip(base.pipeline, each, strict=True), zip(base.operations, each, strict=False)
    return replace(
        base,
        steps=replace(base.steps, rows=rows, p10_ms=nan, p90_ms=inf, mean_ms=nan, breakdown_ms=parts),
        results=tuple(replace(result, saving=bad) for result in base.results),
        together=Together(ms_per_step=nan, share=nan, rules=("input-bound",)),
        pipeline=tuple(replace(one, self_ms=at, parallelism=nan, calls=inf) for one, at in stages),
        operations=tuple(replace(row, self_ms=at, share=nan) for row, at in operations),
        model=(Measure("x", ms(nan)),),
    )


ALL: dict[str, Callable[[], Diagnosis]] = {kind: partial(stored, kind) for kind in STORED} | {
    "hostile-run": hostile_run,
    "hostile-hosts": hostile_hosts,
    "slow-steps": slow_steps,
    "hostile": hostile,
    "huge": huge,
    "unknown-numbers": unknown_numbers,
}


@cache
def rendered(file_format: str, kind: str) -> str:
    """Return a rendering; "page" is HTML without the code that draws its charts."""
    return html.render_without_plotly(ALL[kind]()) if file_format == "page" else render(file_format, ALL[kind]())

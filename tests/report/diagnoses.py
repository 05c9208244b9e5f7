"""Diagnoses to render: a full one, and one for each way in which a report can be unusual."""

from dataclasses import replace
from itertools import zip_longest
from typing import Any

from tests.report import running, several
from tfdoctor.diagnose.summary.timeline import TimelineWork, drawn
from tfdoctor.diagnosis import Diagnosis, SecondOpinion, Subject, Trust
from tfdoctor.diagnosis.gates import BaselineUse, BudgetCheck, BudgetState, KnownFinding, LimitSet, Off, Settings
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Saving, Together, Turn
from tfdoctor.diagnosis.step import Account, AccountState, Seen, StepRow, StepsSummary, Timeline
from tfdoctor.diagnosis.trials import Beside, Difference, Measured, TrainingMatch, TrainingState, Trial, Trials
from tfdoctor.diagnosis.work import DeviceRates, OperationRow, PipelineStage, Profile, ProfileRow, WorkKind
from tfdoctor.report import sentences
from tfdoctor.report.page import page, prospects
from tfdoctor.report.pictures import charts as pictures
from tfdoctor.report.pictures.figures import Figure
from tfdoctor.terms.kinds import DeviceKind, StepSource, TrustLevel
from tfdoctor.terms.pages import RuleDoc
from tfdoctor.terms.run_time import SlowStepsSummary
from tfdoctor.terms.units import Unit, bandwidth, count, flop_rate, ms, nbytes, ratio
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
from tfdoctor.trial.trial import with_measured


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


RATE = "Matmuls run at 71 % of the rate that this GPU reaches"
WHOLE = ("html", "json", "md")
"""Formats that contain all of a diagnosis."""


def full() -> Diagnosis:
    """Return an input-bound run on a GPU, with all that a report can show."""
    return Diagnosis(
        version="0.1.0",
        subject=Subject(
            title="train.py",
            command=("python", "train.py", "--epochs", "3", "--name", "two words"),
            device=DeviceKind.GPU,
            device_name="NVIDIA H200",
            devices_used=1,
            devices_visible=4,
            framework={"tensorflow": "2.21.0", "keras": "3.15.1"},
            hosts=("trainer-0",),
            exit_code=0,
        ),
        steps=steps(20),
        trust=Trust(
            level=TrustLevel.HIGH, reasons=("The step model's own time is within 2 % of the measured one.",)
        ),
        results=(*findings(), *healthy_results(), *not_applicable_results(), errored_result()),
        together=Together(
            ms_per_step=43.0,
            share=0.827,
            rules=("input-bound", "float32-matmul", "between-steps"),
            after_ms={"host": 0.5, "device": 7.7, "between": 0.4, "unknown": 0.4},
        ),
        xprof=SecondOpinion(
            conclusion="HIGHLY input-bound: 71 % of the step time is spent waiting for input.",
            agrees=True,
            why="xprof counts the first batch of the window, tfdoctor leaves it out.",
        ),
        timeline=timeline(),
        profile=profile(),
        pipeline=pipeline(),
        operations=operations(),
        rates=DeviceRates(flop_s=9.89e14, bytes_s=4.8e12),
        model=(
            Measure("exposed input wait", ms(43.1)),
            Measure("input work per step", ms(50.6)),
            Measure("device work per step", ms(8.0)),
            Measure("step time predicted before any change", ms(51.6), ms(52.0)),
        ),
        machine=(("cores the run may use", "16"), ("memory", "128 GiB")),
        samples=(
            Measure("GPU busy", ratio(0.16)),
            Measure("GPU memory used", nbytes(5.1e9), nbytes(150.8e9)),
            Measure("host to device", bandwidth(1.3e9), bandwidth(6.3e10)),
            Measure("matrix unit", flop_rate(4.1e12), flop_rate(9.89e14)),
        ),
        device_time=(
            Measure("step (median)", ms(52.0)),
            Measure("kernels of GPU 0", ms(8.0)),
            Measure("idle, host: waiting for input", ms(43.1)),
            Measure("rate of copies host to device", bandwidth(4.1e9)),
            Measure("number of gaps below 10 µs", count(31)),
        ),
        unrecorded=("GPU power: NVML refused it (Insufficient Permissions); run as root to record it.",),
        accounts=(
            Account(part="input", total_ms=43.1, state=AccountState.NAMED, rules=("input-bound",)),
            Account(part="device", total_ms=7.6, state=AccountState.NECESSARY, why=(RATE,)),
        ),
    )


HELPS = Measured(share=0.31, low=0.28, high=0.34, difference=Difference.SAVES, rounds=(0.3, 0.31, 0.33))
NOTHING = Measured(share=0.01, low=-0.02, high=0.03, difference=Difference.NONE, rounds=(0.0, 0.01))
HURTS = Measured(share=-0.26, low=-0.29, high=-0.24, difference=Difference.COSTS, rounds=(-0.26,))
NOISY = replace(NOTHING, low=-0.4, high=0.5, difference=Difference.UNKNOWN)
SLOW = Measured(share=-1.87, low=-2.43, high=-1.4, difference=Difference.COSTS, rounds=(-1.67, -2.09))

PROMISED = Saving(ms_per_step=4.0, share=0.4, bound=Bound.EXPECTED, how="By the step model.")
AT_MOST = Saving(ms_per_step=0.4, share=0.04, bound=Bound.AT_MOST, how="By the step model.")


def tried() -> Diagnosis:
    """Return a report with changes that help, do nothing, hurt, train something else, crashed and never ran."""
    diagnosis = full()
    first, second, third, *_ = (result.rule.name for result in diagnosis.results)
    beside = Beside(others=(first,), instead=False, measured=helps(0.08, 0.05, 0.12, 0.07, 0.08, 0.1))
    cached = {"action": "Cache the dataset", "rules": (first,), "promised": PROMISED}
    printed = {"action": "Print every 100 steps", "rules": (second,), "promised": AT_MOST, "beside": beside}
    read_once = {"action": "Read the table once, with vectorized operations", "rules": ("slow-preparation",)}
    unknown = TrainingMatch(state=TrainingState.UNKNOWN, why="the steps return no loss")
    both = helps(0.37, 0.36, 0.39, 0.37, 0.38, 0.38)
    once = running.saving(19.8, Recurrence.ONCE, bound=Bound.AT_MOST, whole=132.0)
    rows = (
        trial(first, HELPS, training=SAME, kept=True, **cached),
        trial(second, helps(0.1, 0.09, 0.11, 0.095, 0.1, 0.105), training=SAME, kept=True, **printed),
        trial("TF_ENABLE_ONEDNN_OPTS=0", NOTHING, training=LOSSES),
        trial("mine.diff", HURTS, training=replace(LOSSES, apart=0.0001)),
        trial("a-wider-convolution-with-a-name-that-is-longer-than-a-phone-is-wide.diff", SLOW, training=unknown),
        trial("half-the-batch.diff", HELPS, training=DIFFERENT),
        trial(
            third,
            helps(0.4, 0.39, 0.42, 0.4, 0.41),
            action="Compute in float16",
            rules=(third,),
            training=TrainingMatch(state=TrainingState.NOT_FINITE),
        ),
        trial("OMP_NUM_THREADS=1", NOISY),
        replace(trial("small-batch", HELPS, training=CHANGED), examples=2.0, step_ms=13.8),
        replace(
            trial("slow-preparation", helps(0.14, 0.12, 0.16, 0.13, 0.15, of_run=True), training=SAME, **read_once),
            step_ms=None,
            run_ms=112_000.0,
            promised_run=replace(once, how="", share=0.15, rated_share=0.15),
        ),
        Trial(name="tcmalloc", missing="OSError: <b>no library</b>", runs=1),
        Trial(name="XLA for all graphs", missing="there was no time left for it"),
        trial(f"{first} + {second}", both, rules=(first, second), training=SAME, parts=(first, second)),
    )
    found = Trials(
        rows=rows,
        as_is_ms=10.0,
        as_is_run_ms=131_000.0,
        as_is=NOTHING,
        rounds=3,
        runs=16,
        minutes=4.2,
        foreign=0.2,
        layer=False,
        not_tried=(("late-shrink", "the change moves code"),),
        together=f"{first} + {second}",
    )
    return with_measured(diagnosis, found)


def helps(share: float, low: float, high: float, *rounds: float, of_run: bool = False) -> Measured:
    """Return the saving of a change that helps."""
    return replace(HELPS, share=share, low=low, high=high, rounds=rounds, of_run=of_run)


SAME = TrainingMatch(state=TrainingState.EQUAL, step=20)


LOSSES = TrainingMatch(
    state=TrainingState.LOSSES, step=20, losses=((1, 2.0, 2.1), (2, 1.5, 1.6)), apart=0.05, usual=0.0002
)
CHANGED = TrainingMatch(state=TrainingState.CHANGED, why="the batch is twice as large")
DIFFERENT = TrainingMatch(state=TrainingState.DIFFERENT, step=20, losses=((1, 2.0, 2.1),))


def trial(name: str, measured: Measured, **more: Any) -> Trial:
    """Return a variant of a program whose step is 10 ms, with a run in each round."""
    step_ms = 10 * (1 - measured.share)
    return Trial(name=name, measured=measured, step_ms=step_ms, runs=len(measured.rounds), **more)


def profile() -> Profile:
    """Return a row of each kind, near the hardware's rates, near this run's own and neither."""
    decode, why = Location("train.py", 41), "what a function of the input needs is not computed"
    stage = worked(WorkKind.STAGE, "Map(decode)", "input", 41.2, 0.79, at=decode, unknown=why)
    reads = replace(stage, what="Interleave(read)", ms=6.1, share=0.12, beside=True, at=None)
    conv = worked(WorkKind.OPERATION, "Conv2D", "device", 2.4, 0.046, layer="conv2_block1", attained=0.83)
    unrated = replace(conv, attained=None, unknown="peak FLOP/s unknown")
    product = replace(unrated, what="MatMul", ms=1.1, share=0.021, of_fastest=0.6)
    line = worked(WorkKind.LINE, "numpy.histogram", "host", 0.5, 0.01, at=Location("train.py", 60))
    line = replace(line, unknown="no rate of the hardware bounds Python")
    fastest = replace(product, of_fastest=1.0, ms=0.9)
    return Profile(rows=(stage, reads, conv, product, fastest, line), omitted=12, omitted_ms=0.34)


def worked(kind: WorkKind, what: str, part: str, time: float, share: float, **more: Any) -> ProfileRow:
    return ProfileRow(kind=kind, what=what, part=part, ms=time, share=share, **more)


def steps(number: int) -> StepsSummary:
    """Return so many steps around 52 ms, every eighth an outlier."""
    parts = {"input": 43.1, "transfer": 0.0, "host": 0.5, "device": 7.6}
    return StepsSummary(
        source=StepSource.KERAS_FIT,
        rows=tuple(step_row(at) for at in range(10, 10 + number)),
        count=number,
        median_ms=52.0,
        mean_ms=52.4,
        p10_ms=50.2,
        p90_ms=54.9,
        between_ms=0.4,
        breakdown_ms=parts | {"collective": 0.0, "between": 0.4, "unknown": 0.4},
    )


def step_row(number: int) -> StepRow:
    """Return one step; its wait varies with its number."""
    outlier = number % 8 == 7
    wait = 240.0 if outlier else 40.0 + (number * 7) % 6
    parts = {"input": wait, "host": 0.5, "device": 7.6, "between": 0.4, "unknown": 0.4}
    return StepRow(number=number, total_ms=sum(parts.values()), parts_ms=parts, steady=not outlier)


def findings() -> tuple[Result, ...]:
    """Return four findings: critical, a ceiling, one that waits for another, one with no number."""
    return (_input_bound(), _between_steps(), _float32(), _idle_devices())


def found(
    about: Rule,
    summary: str,
    evidence: Measure | Table,
    *remedies: Remedy,
    saving: Saving | None = None,
    severity: Severity = Severity.NOTE,
) -> Result:
    """Return a finding with a piece of evidence."""
    finding = Finding(summary=summary, evidence=(evidence,), remedies=remedies)
    return Result(rule=about, outcome=finding, saving=saving, severity=severity)


def edited(result: Result, *edits: Edit) -> Result:
    """Return a finding with edits of its first remedies, and none of the others."""
    finding = result.outcome
    assert isinstance(finding, Finding)
    each = [edit for edit, _ in zip_longest(edits, finding.remedies)]
    return replace(result, outcome=finding.edited(each[: len(finding.remedies)]))


def _input_bound() -> Result:
    rows = (
        ("Map", Location("train.py", 41), ms(41.2), count(1.0), ratio(0.82)),
        ("Interleave", Location("train.py", 38), ms(6.1), count(1.0), ratio(0.12)),
        ("Batch", Location("train.py", 42), ms(2.0), count(1.0), ratio(0.04)),
    )
    old, new = (
        "dataset = dataset.map(decode)",
        "dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
    )
    at, cached = Location("train.py", 41), f"{old}\ndataset = dataset.cache()"
    finding = Finding(
        summary="The step waits 43.1 ms for input: .map(decode) runs on one thread and limits it.",
        evidence=(
            Measure("wait per step", ratio(0.83), ratio(0.05)),
            Measure("wait", ms(43.1)),
            Table(("stage", "line", "own time", "threads", "share"), rows),
        ),
        remedies=(
            Remedy(action="Run decode on several threads", code=new, at=at, edit_id="parallel-map"),
            Remedy(action="Keep the decoded images in memory", code=cached, at=at, edit_id="cache"),
        ),
    )
    how = "The map takes 41.2 ms on 1 thread; on 15 idle cores 2.7 ms, beside 8.5 ms of compute."
    return Result(
        rule=rule("input-bound", title="The step waits for input"),
        outcome=finding.edited((Edit(at, old, new), Edit(at, missing="what comes before is random"))),
        saving=Saving(ms_per_step=41.5, share=0.798, bound=Bound.EXPECTED, how=how),
        severity=Severity.CRITICAL,
    )


def _between_steps() -> Result:
    return found(
        rule("between-steps", Topic.EXECUTION),
        "0.4 ms pass between steps in the callback LossPrinter.",
        Measure("between steps", ms(0.4), ms(0.26)),
        Remedy(action="Print every 100 steps", at=Location("callbacks/printer.py", 7)),
        saving=Saving(ms_per_step=0.4, share=0.0077, bound=Bound.AT_MOST, how="All of the time between steps."),
    )


def _float32() -> Result:
    rows = (
        ("conv2_block1", "Conv2D", "f32[256,56,56,64]", ms(2.4), ratio(0.046)),
        ("predictions", "MatMul", "f32[256,2048] x f32[2048,1000]", ms(1.1), ratio(0.021)),
    )
    change = Remedy(
        action="Compute in bfloat16, keep the variables in float32",
        code='tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")',
        at=Location("train.py", 12),
        edit_id="bfloat16",
    )
    how = "Compute is hidden behind the input; once that is fixed, 3.1 ms."
    return found(
        rule("float32-matmul", Topic.PRECISION),
        "Convolutions and matrix products run in float32.",
        Table(("layer", "operation", "shapes", "time", "share"), rows),
        change,
        saving=Saving(ms_per_step=0.0, share=0.0, bound=Bound.EXPECTED, how=how, after=("input-bound",)),
    )


def _idle_devices() -> Result:
    code = "with tf.distribute.MirroredStrategy().scope():\n    model = build()"
    finding = Finding(
        summary="3 of 4 GPUs do nothing.",
        evidence=(Measure("GPUs at work", count(1), count(4)),),
        remedies=(Remedy(action="Train on all of them", code=code, at=Location("train.py", 55)),),
        severity=Severity.WARNING,
    )
    return Result(rule=rule("idle-device", Topic.SCALE), outcome=finding, severity=Severity.WARNING)


def healthy_results() -> tuple[Result, ...]:
    """Return two rules that found no fault."""
    traces = (Measure("traces", count(0), count(1)),)
    once = Healthy(summary="No function was traced again in 20 steps.", evidence=traces)
    little = Healthy(summary="Transposes take 0.2 % of the step.")
    return (
        Result(rule=rule("retracing", Topic.EXECUTION), outcome=once),
        Result(rule=rule("layout-change", Topic.OPERATIONS), outcome=little),
    )


def not_applicable_results() -> tuple[Result, ...]:
    """Return two rules that could not be checked."""
    alone = NotApplicable(reason="Only one device took part: there is nothing to reduce.")
    no_shapes = NotApplicable(reason="No shapes were recorded; profile the script with tfdoctor profile.")
    return (
        Result(rule=rule("collective-bound", Topic.SCALE), outcome=alone),
        Result(rule=rule("unaligned-dimension", Topic.PRECISION), outcome=no_shapes),
    )


def errored_result() -> Result:
    """Return a rule that crashed."""
    error = "ZeroDivisionError: division by zero"
    traceback = f'Traceback (most recent call last):\n  File "host_sync.py", line 9, in check\n{error}'
    return Result(rule=rule("host-sync", Topic.EXECUTION), outcome=Errored(error=error, traceback=traceback))


def pipeline() -> tuple[PipelineStage, ...]:
    """Return a pipeline of five stages and a side branch."""
    prefetch = stage("Prefetch", None, 0.1, note="injected by tf.data")
    return (
        prefetch,
        stage("Batch", 0, 2.0, written=".batch(256)", at=Location("train.py", 42)),
        stage("Map", 1, 41.2, calls=256.0, written=".map(decode)", at=Location("train.py", 41)),
        stage("Interleave", 2, 6.1, calls=256.0, written=".interleave(read)", at=Location("train.py", 38)),
        replace(
            stage("TFRecord", 3, 1.2, calls=256.0, note="ran in parallel (autotuned)"),
            parallelism=4.0,
            critical=False,
        ),
    )


def stage(name: str, parent: int | None, self_ms: float, calls: float = 1.0, **more: Any) -> PipelineStage:
    """Return a stage of one thread that limits the pipeline."""
    return PipelineStage(
        name=name, parent=parent, self_ms=self_ms, parallelism=1.0, calls=calls, critical=True, **more
    )


def operations() -> tuple[OperationRow, ...]:
    """Return the compute time of a small network."""
    heavy = (
        ("conv2_block1", "Conv2D", 2.4),
        ("predictions", "MatMul", 1.1),
        ("conv2_block1", "Conv2DBackpropFilter", 0.9),
        ("conv3_block1", "Conv2D", 0.8),
        ("conv2_bn", "FusedBatchNormV3", 0.6),
        ("", "AssignSubVariableOp", 0.4),
        ("conv3_block1", "Relu", 0.2),
    )
    return tuple(
        OperationRow(
            layer=layer,
            operation=operation,
            self_ms=time,
            share=time / 52.0,
            at=Location("model.py", 20) if layer else None,
            detail="f32[256,56,56,64]" if "Conv" in operation else "",
            flops=time * 2e11 if "Conv" in operation or operation == "MatMul" else None,
            nbytes=time * 1.5e9 if layer else None,
        )
        for layer, operation, time in heavy
    )


def timeline(name: str = "", pieces: int = 40) -> Timeline:
    """Return a step of 52 ms that waits 43 ms for input, then computes."""

    def piece(start_ms: float, duration_ms: float, part: str, what: str, *rules: str) -> TimelineWork:
        return TimelineWork(start_ms, duration_ms, part, name or what, rules=rules)

    step = (
        piece(0.0, 43.1, "input", "input", "input-bound"),
        piece(43.1, 0.5, "host", "host"),
        piece(43.6, 8.0, "device", "device"),
        piece(51.6, 0.4, "between", "between"),
    )
    maps = tuple(piece(at, 0.9, "input", ".map(decode)", "input-bound", "sequential-map") for at in range(43))
    products = tuple(
        piece(43.6 + 8.0 * at / pieces, 7.0 / pieces, "device", f"conv_{at % 9} (Conv2D)", *rules)
        for at in range(pieces)
        for rules in [() if at % 4 else ("float32-matmul",)]
    )
    alone = (TimelineWork(44.0, 2.0, "device", name or "conv_1 (Conv2D)", pieces=17),)
    lanes = (("step", step), (name or "input: .map(decode)", maps), (name or "operations", products), ("", alone))
    return drawn(12, 52.0, lanes, 3)


def caused() -> Diagnosis:
    """Return the run with a cause of the wait for input, and a second rule that asks for the same edit."""
    base = full()
    symptom, *others = base.results
    assert isinstance(symptom.outcome, Finding)
    (change, *_), at = symptom.outcome.remedies, Location("train.py", 41)
    remedies = (replace(change, edit_id="parallel-map", at=at, edit=None),)
    outcome = replace(symptom.outcome, summary=".map(decode) runs on one thread.", remedies=remedies)
    cause = replace(symptom, rule=rule("sequential-map"), outcome=outcome)
    again = replace(cause, rule=rule("hot-stage"))
    ceiling = Relation(Relationship.CEILING, "input-bound", ("sequential-map", "hot-stage"), "input")
    order = Order(turns=(Turn("sequential-map", 41.5, Bound.EXPECTED),), relations=(ceiling,))
    return replace(base, results=(symptom, cause, again, *others), order=order)


def healthy() -> Diagnosis:
    """Return a run that computes all the time and in which nothing is wrong."""
    breakdown = {"input": 0.0, "device": 8.0, "host": 0.2}
    rows = tuple(
        StepRow(number=at, total_ms=8.2, parts_ms={"device": 8.0, "host": 0.2}, steady=True) for at in range(8)
    )
    return replace(
        full(),
        accounts=full().accounts[1:],
        profile=replace(profile(), rows=profile().rows[2:]),
        steps=replace(steps(8), rows=rows, median_ms=8.2, p10_ms=8.1, p90_ms=8.3, breakdown_ms=breakdown),
        results=(*healthy_results(), not_applicable_results()[0]),
        together=None,
        unrecorded=(),
    )


def unexplained() -> Diagnosis:
    """Return a run whose host time no rule explains, and only a part of its compute."""
    base = healthy()
    parts = {"host": 6.9, "device": 5.1}
    rows = tuple(replace(row, total_ms=12.0, parts_ms=parts) for row in base.steps.rows)
    seen = (
        Seen("Python", 0.62, Unit.RATIO, Location("train.py", 41)),
        Seen("Log.on_train_batch_end", 0.2, Unit.RATIO, Location("train.py", 12)),
        Seen("tf.constant (thread python)", 0.9, Unit.MILLISECONDS),
    )
    steps = replace(base.steps, rows=rows, median_ms=12.0, p10_ms=11.9, p90_ms=12.2, breakdown_ms=parts)
    accounts = (
        unexplained_part("host", 6.9, seen=seen),
        replace(unexplained_part("device", 5.1, rules=("layout-change",), why=(RATE,)), unexplained_ms=2.3),
    )
    return replace(base, steps=steps, accounts=accounts, profile=Profile())


def unexplained_part(part: str, time: float, **more: Any) -> Account:
    state = AccountState.UNEXPLAINED
    return Account(part=part, total_ms=time, state=state, unexplained_ms=time, **more)


def no_steps() -> Diagnosis:
    """Return a recording in which no step can be seen, so that hardly a rule applies."""
    missing = "the trace contains no step marker and no repeated call"
    return Diagnosis(
        version="0.1.0",
        subject=Subject(title="host.xplane.pb"),
        steps=StepsSummary(source=StepSource.NONE, missing=missing),
        trust=Trust(level=TrustLevel.LOW, reasons=("There are no steps to measure.",)),
        results=not_applicable_results(),
        pipeline_missing="The trace contains no tf.data iterator.",
        operations_missing="The trace contains no operation.",
        device_time_missing="the run used no GPU: there are no kernels of one",
    )


def single_step() -> Diagnosis:
    """Return a run of one step, which tells nothing of the spread."""
    doubtful = Trust(level=TrustLevel.LOW, reasons=("One step only.",))
    return replace(full(), steps=replace(steps(1), too_few=True), trust=doubtful)


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
    bad = rule(HOSTILE, title=HOSTILE, why=f"{HOSTILE}\n\n<img src=x>\n\n![x](https://x.test/x.png)")
    crash = Errored(error=evil, traceback=f"```\n{evil}\n</pre>{LONG}")
    seen = (Seen(evil, 1.0, Unit.MILLISECONDS, where), Seen(LONG, 0.5, Unit.RATIO))
    return replace(
        full(),
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
        profile=Profile(rows=(worked(WorkKind.LINE, evil, HOSTILE, nan, inf, at=where, layer=LONG, unknown=evil),)),
        results=(
            Result(rule=bad, outcome=finding, saving=saving, severity=Severity.CRITICAL),
            Result(rule=named(bad, "2"), outcome=Healthy(summary=evil, evidence=(table,))),
            Result(rule=named(bad, "3"), outcome=NotApplicable(reason=evil)),
            Result(rule=named(bad, "4"), outcome=crash),
        ),
        together=Together(ms_per_step=4.0, share=0.1, rules=(HOSTILE,)),
        xprof=SecondOpinion(conclusion=evil, agrees=False, why=LONG),
        timeline=timeline(evil),
        pipeline=tuple(replace(stage, name=HOSTILE, written=evil, note=LONG, at=where) for stage in pipeline()),
        operations=tuple(
            replace(row, layer=f"{row.layer}{HOSTILE}", operation=evil, detail=LONG, at=where)
            for row in operations()
        ),
        model=(Measure(evil, ms(1.0)),),
        machine=((evil, evil),),
        samples=(Measure(LONG, ratio(0.5)),),
        device_time=(Measure(evil, ms(1.0)),),
        device_time_missing=evil,
        unrecorded=(evil,),
        accounts=(unexplained_part("input", 43.1, rules=(HOSTILE,), why=(evil,), seen=seen),),
    )


def huge() -> Diagnosis:
    """Return a run with 500 offenders in a table and 3000 operations."""
    rows = tuple((f"layer_{at}", Location("model.py", at), ms(at / 7), ratio(at / 5000)) for at in range(500))
    padded = Table(("layer", "line", "time", "share"), rows)
    remedy = Remedy(action="Make widths a multiple of 128")
    first = found(rule("rule-0", Topic.OPERATIONS), "500 layers are padded.", padded, remedy)
    assert isinstance(first.outcome, Finding)
    plain = replace(first.outcome, evidence=())
    others = (replace(first, rule=rule(f"rule-{at}", Topic.OPERATIONS), outcome=plain) for at in range(1, 40))
    base, detail = full(), "f32[256,56,56,64] x f32[3,3,64,64]"
    heavy = tuple(
        OperationRow(
            layer=f"block_{at % 60}/layer_{at}",
            operation=("Conv2D", "MatMul", "AddV2", "Relu")[at % 4],
            self_ms=30 / (at + 1),
            share=30 / (at + 1) / 52,
            detail=detail,
        )
        for at in range(3000)
    )
    results, drawn = (first, *others, *base.results), timeline(pieces=4000)
    return replace(base, results=results, operations=heavy, steps=steps(300), timeline=drawn)


def unknown_numbers() -> Diagnosis:
    """Return a run whose every number came out as NaN or infinite."""
    base, nan, inf = full(), float("nan"), float("inf")
    each = (nan, inf, 1.0, 0.0, -1.0)
    rows = tuple(
        replace(row, total_ms=at, parts_ms=dict.fromkeys(row.parts_ms, nan))
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


def several_hosts() -> Diagnosis:
    """Return the run of one host among four."""
    return replace(full(), hosts=several.hosts())


def named(base: Rule, more: str) -> Rule:
    """Return a rule with more in its name: a report has one result of each."""
    return replace(base, name=f"{base.name}{more}")


def gated() -> Diagnosis:
    """Return the run with a budget in each state, and a baseline that knows one finding."""
    base = full()
    why = "the trace does not show the arithmetic of each matmul and convolution"
    rate, memory = Unit.EXAMPLES_PER_SECOND, budget("memory-gb", 8e9, Unit.BYTES, BudgetState.MET, 0, 5.1e9)
    budgets = (
        budget("step-ms", 60.0, Unit.MILLISECONDS, BudgetState.UNCLEAR, 4, 52.0, low=44.1, high=61.3),
        budget("input-wait", 0.05, Unit.RATIO, BudgetState.EXCEEDED, 5, 0.829, low=0.8, high=0.86),
        budget("examples-per-second", 1e3, rate, BudgetState.EXCEEDED, 6, 615.4, low=522.0, high=725.6),
        budget("matrix-unit", 0.4, Unit.RATIO, BudgetState.UNKNOWN, 7, why=why),
        replace(memory, at=None),
    )
    first, *others = base.results
    marked = [replace(first, known=True)]
    marked += [replace(r, known=False) if isinstance(r.outcome, Finding) else r for r in others]
    gone = (KnownFinding("eager-step", "train.py"), KnownFinding("small-batch", ""))
    use = BaselineUse(file="tfdoctor-baseline.json", gone=gone)
    return replace(base, results=tuple(marked), budgets=budgets, baseline=use)


def budget(
    key: str, limit: float, unit: Unit, state: BudgetState, line: int, value: float | None = None, **more: Any
) -> BudgetCheck:
    """Return a budget of a line of tfdoctor.toml."""
    at, floor = Location("tfdoctor.toml", line), key in {"examples-per-second", "matrix-unit"}
    return BudgetCheck(key=key, limit=limit, unit=unit, at_least=floor, state=state, at=at, value=value, **more)


def configured() -> Diagnosis:
    """Return the run as judged by what a user chose and set, with findings that bear on each other."""
    base = full()
    (first, *others) = base.results
    why = "a step that runs eagerly is not compiled as a whole"
    order = Order(
        turns=(Turn("input-bound", 43.0, Bound.AT_MOST), Turn("float32-matmul", 3.1, Bound.EXPECTED)),
        relations=(
            Relation(Relationship.UNNEEDED, "python-input", ("input-bound",)),
            Relation(Relationship.FIRST, "kernel-launch-bound", ("eager-step",), why),
        ),
    )
    settings = Settings(
        off=(
            Off("cost", "What the waste costs", "ignored by pyproject.toml"),
            Off("small-files", "Many small files", "not selected by --select"),
        ),
        limits=(LimitSet("input-bound", "share", 0.2, 0.05, "pyproject.toml"),),
        own=("input-bound",),
    )
    mine = replace(first, rule=replace(first.rule, own=True))
    return replace(base, results=(mine, *others), order=order, settings=settings)


def run() -> Diagnosis:
    """Return the run with its account, and findings in each unit."""
    return running.trains(full())


def run_window() -> Diagnosis:
    """Return a report whose account covers the traced window alone."""
    return running.window(full())


ALL = {
    "run": run,
    "run-predicts": lambda: running.predicts(full()),
    "run-window": run_window,
    "hostile-run": lambda: running.hostile(hostile(), HOSTILE + INVISIBLE, LONG),
    "gated": gated,
    "configured": configured,
    "several-hosts": several_hosts,
    "hostile-hosts": lambda: replace(full(), hosts=several.hosts(HOSTILE + INVISIBLE, 64)),
    "full": full,
    "tried": tried,
    "caused": caused,
    "healthy": healthy,
    "unexplained": unexplained,
    "no-steps": no_steps,
    "errored": lambda: replace(healthy(), results=(errored_result(),)),  # the only rule crashed
    "single-step": single_step,
    "slow-steps": slow_steps,
    "hostile": hostile,
    "huge": huge,
    "unknown-numbers": unknown_numbers,
}

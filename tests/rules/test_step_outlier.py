"""step-outlier: long steps that recur, and those that show no pattern."""

from itertools import accumulate, pairwise
from types import MappingProxyType

from tests.rules.kit import *
from tfdoctor.facts.phases.run_steps import LongLine, RunLongLines
from tfdoctor.facts.steps.steps import PS_PER_MS, Step
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.rules.execution import step_outlier
from tfdoctor.rules.execution.step_outlier import LONGER_EPOCHS

EXAMPLE_SAVE = TimedLine(
    Location("train.py", 30), 40, callback="Save.on_train_batch_end", calls={"keras.Model.save_weights": 40}
)


SAVES = LongStepLines({Stage.BETWEEN: (EXAMPLE_SAVE,)})


def example(  # noqa: PLR0913 - the rule's own
    extra: Mapping[int, tuple[str, float]] = MappingProxyType(dict.fromkeys((5, 15, 25), (Stage.BETWEEN, 100.0))),
    *, count: int = 30, compiling: CompileTime | None = None, lines: LongStepLines | None = SAVES,
    program: Program | None = None, starts: PassStarts | None = None, cores: Cores | None = None,
    pace: UntracedPace | None = None, run: RunSteps | None = None, phases: RunPhases | None = None,
    sampled: RunLongLines | None = None, usual: HostLines | None = None, source: StepSource = StepSource.MARKERS,
) -> Verdict:  # fmt: skip
    """A checkpoint of 100 ms follows every tenth step."""
    rows = [{**Breakdown.of(device=10.0).steps[0]} for _ in range(count)]
    for at, (part, more) in extra.items():
        rows[at][part] += more
    ends = [0, *accumulate(round(sum(row.values()) * PS_PER_MS) for row in rows)]
    steps = [Step(at, start, end, end) for at, (start, end) in enumerate(pairwise(ends))]
    parts = Breakdown(tuple(rows), rows[0])
    found = Steps.of(steps, source)
    return step_outlier.check(
        found, parts, compiling, lines, program, starts, cores, pace, run, phases, sampled, usual
    )


sick = example


def healthy() -> Verdict:
    """Thirty steps of the same length."""
    return example({}, lines=None)


check = partial(example, count=20, lines=None)

BUSY = Cores(2.0, 1.5, 1.0)
"""Other programs use a core of two, and none is free."""


def long(part: str, more: float = 100.0, *at: int, **others: Any) -> Verdict:
    """Judge twenty steps, of which those two, or others, take so much longer in a part."""
    return check(dict.fromkeys(at or (4, 14), (part, more)), **others)


def test_on_a_busy_machine_other_programs_may_be_the_cause() -> None:
    busy, idle = (long("device", cores=Cores(2.0, 1.5, others)) for others in (1.0, 0.4))
    assert kinds(busy, idle) == [NotApplicable, Finding]
    callback = example(dict.fromkeys((4, 14), ("between", 100.0)), cores=BUSY)
    assert isinstance(callback, Finding)


def test_two_long_steps_of_one_cause_are_found() -> None:
    finding = as_finding(long("between"))
    assert (finding.severity, finding.effects) == (Severity.CRITICAL, ())  # the median step does not show it
    assert "between steps" in finding.summary


def test_the_summary_holds_the_period_where_there_is_one() -> None:
    """Trap: a check of function tracing was advised "every 5 steps", by three steps that other programs hit."""
    for at, every in (((3, 8, 13, 18), True), ((3, 8, 14, 18), False), ((3, 8, 13), False)):
        summary = as_finding(long("input", 30.0, *at)).summary
        assert ("every 5 steps" in summary, "every" in summary) == (every, every)


def test_one_long_step_is_no_pattern() -> None:
    """Trap: on a shared machine there always is one."""
    assert "may be chance" in as_healthy(long("device", 40.0, 4)).summary


def test_one_occasion_that_takes_much_of_the_trace_is_not_healthy() -> None:
    """Nor is the end of an epoch, which is both."""
    for extra, words in (
        ({4: ("input", 100.0), 5: ("input", 100.0)}, ("input", "one occasion: 50 %")),
        ({4: ("between", 100.0), 5: ("input", 100.0)}, ("work between steps and a wait for input",)),
        ({4: ("between", 50.0), 14: ("input", 50.0)}, ("two occasions",)),
    ):
        reason = as_not_applicable(check(extra)).reason
        assert all(word in reason for word in words)


def test_adjacent_long_steps_are_one_occasion() -> None:
    """Trap: another program's second of work covers several steps."""
    assert kinds(long("device", 20.0, 4, 5), long("device", 20.0, 4, 6)) == [Healthy, Finding]


def test_long_steps_without_a_common_cause_are_no_pattern() -> None:
    finding = as_healthy(check({4: ("device", 20.0), 14: ("input", 20.0)}))
    assert "without a common cause" in finding.summary


def test_a_twentieth_of_the_time() -> None:
    assert kinds(long("between", 5.5), long("between", 5.0)) == [Finding, Healthy]


def test_without_steady_steps_nothing_is_judged() -> None:
    assert isinstance(long("between", 50.0, 2, count=5), NotApplicable)


def test_steps_that_compile_are_left_to_recompilation() -> None:
    compiling = CompileTime(2, 20, 1, share=0.5, apart=frozenset((4, 14)))
    assert "recompilation" in as_not_applicable(long("host", compiling=compiling)).reason
    assert isinstance(long("host", 100.0, 4, 9, 14, compiling=compiling), Finding)


AT = Location("train.py", 9)
PREDICT = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict"
FIT = TimedLine(AT, 40, calls={"keras.Model.fit": 40})


def between(line: TimedLine | None, **more: Any) -> Verdict:
    """Two long steps, with samples of a line between them."""
    return long("between", lines=LongStepLines({Stage.BETWEEN: (line,)}) if line else None, **more)


def remedy(
    *lines: TimedLine, part: str = "between", more: float = 100.0, timed: bool = True
) -> tuple[str, Location | None]:
    """What two long steps are told to change, with these samples between the calls."""
    finding = as_finding(long(part, more, lines=LongStepLines({Stage.BETWEEN: lines}, timed)))
    assert ("predict at train.py:9" in finding.summary) == (finding.remedies[0].at is not None)
    return finding.remedies[0].action, finding.remedies[0].at


def test_the_line_and_its_call_are_named() -> None:
    line = TimedLine(AT, 40, callback="Eval.on_train_batch_end", calls={PREDICT: 40})
    action = "Call predict in Eval.on_train_batch_end less often, or once per epoch"
    assert remedy(line) == (action, AT)


def test_a_few_samples_name_no_line() -> None:
    assert [remedy(TimedLine(AT, seen, calls={PREDICT: seen}))[1] for seen in (5, 4)] == [AT, None]


def test_half_of_the_samples_name_a_line() -> None:
    for other, at in ((10, AT), (11, None)):
        others = (TimedLine(Location("train.py", line), 1) for line in range(20, 20 + other))
        assert remedy(TimedLine(AT, 10, calls={PREDICT: 10}), *others)[1] == at


def test_samples_of_python_do_not_explain_a_slow_device() -> None:
    """Trap: the device is slow in these steps, while a callback is sampled as in any other."""
    assert remedy(TimedLine(AT, 40, calls={PREDICT: 40}), part="device")[1] is None


def test_samples_without_times_count_where_long_steps_take_half() -> None:
    line = TimedLine(AT, 40, calls={PREDICT: 40})
    assert [remedy(line, more=more, timed=False)[1] for more in (101.0, 99.0)] == [AT, None]


def test_the_end_of_fits_own_epoch_is_no_call_to_make_less_often() -> None:
    """Trap: fit is called once; the long steps are those between which it ends an epoch of eight batches."""
    for callback, fit_at in (("", AT), ("Eval.on_epoch_end", AT), ("", Location("train.py", 1)), ("", None)):
        program = Program(settings=RunSettings(epochs=50), fit_at=fit_at)
        finding = as_finding(between(replace(FIT, callback=callback), program=program))
        assert finding.remedies[0].at == AT
        assert (finding.remedies[0].action == LONGER_EPOCHS) is (fit_at == AT and not callback)


def test_an_epoch_of_fit_ends_where_its_steps_are_over() -> None:
    for steps, number, epochs, own in (
        *((10, number, 5, True) for number in (9, 10, 11)),
        (10, 14, 5, False),
        (None, 14, 5, True),
        (None, 14, 1, False),  # a fit over one epoch may be called for each
        (None, 14, None, False),
    ):
        lines = LongStepLines({Stage.BETWEEN: (FIT,)})
        program = Program(settings=RunSettings(epochs=epochs, steps_per_epoch=steps), fit_at=AT)
        verdict = long("between", 100.0, 4, number, lines=lines, program=program)
        assert (first_action(verdict) == LONGER_EPOCHS) is own


def test_long_first_steps_of_passes_that_were_not_traced_are_found() -> None:
    found, short = (check({}, starts=PassStarts(7, 30, 392.0, 28.0, share, 12.0)) for share in (0.051, 0.049))
    assert "392 ms instead of 28.0 ms" in as_finding(found).summary
    assert isinstance(short, Healthy)
    traced = long("between", starts=PassStarts(7, 30, 392.0, 28.0, 0.25, 12.0))  # comes first
    assert traced == long("between")


SAVE = TimedLine(
    AT, 8, callback="ModelCheckpoint.on_train_batch_end", calls={"tf_keras.src.engine.training.Model.fit": 8}
)


def checkpoint(seen: int = 8, at: tuple[int, ...] = (4, 9, 14, 19), more: float = 6.0) -> Verdict:
    """A checkpoint in some steps, among device times that vary so much that no step is an outlier."""
    extra = {n: ("device", 3.0 * (n % 4)) for n in range(20)} | dict.fromkeys(at, ("host", more))
    callbacks = ((Stage.HOST, replace(SAVE, seen=seen, steps=frozenset(at))),)
    return check(extra, lines=LongStepLines(callbacks=callbacks), cores=BUSY)


def test_a_callback_in_every_fifth_step_is_found_without_outliers() -> None:
    finding = as_finding(checkpoint())
    for words in ("4 of 20 steps", "ModelCheckpoint.on_train_batch_end at train.py:9", "every 5 steps"):
        assert words in finding.summary
    assert (finding.severity, finding.remedies[0].at) == (Severity.WARNING, AT)  # 24 of 279 ms
    assert "fit" not in finding.remedies[0].action


def test_a_callback_that_makes_no_pattern_is_none() -> None:
    rare, short = checkpoint(seen=4), checkpoint(more=2.0)  # 3 % of the time
    often, once = checkpoint(at=tuple(range(0, 20, 2))), checkpoint(at=(4, 5, 6))  # other rules report the first
    assert Finding not in kinds(rare, short, often, once)


def test_long_steps_that_the_untraced_ones_lack_are_none() -> None:
    """Where those have long ones as well, or are too few to tell, they are found."""
    lacking, same, few = (
        long("between", pace=UntracedPace(1.0, 10.0, UntracedSteps(count, 10.0, "steps", total_ms=total), 20))
        for count, total in ((100, 1000.0), (100, 1900.0), (19, 190.0))
    )
    assert "untraced steps lack" in as_not_applicable(lacking).reason
    assert kinds(same, few) == [Finding, Finding]


def run(beyond_ms: float) -> RunSteps:
    """Steps of 10 ms of a whole run, without the boundaries of its epochs; long ones have so many ms more."""
    beyond = LongSteps(count=20, ms=200.0 + beyond_ms, beyond_ms=beyond_ms)
    total = 10_000.0 + beyond_ms
    return replace(equal_steps(AT, 1000, 10.0, beyond), total_ms=total, mean_ms=total / 1000)


def test_what_lies_between_epochs_in_the_account_of_the_run_is_no_long_step() -> None:
    for line in (None, FIT):
        assert "between epochs" in as_not_applicable(between(line, run=run(0.0))).reason
    for line in (replace(FIT, callback="Save.on_train_batch_end"), replace(FIT, calls={"train.save": 40})):
        assert isinstance(between(line, run=run(0.0)), Finding)
    assert isinstance(between(None, run=run(10_000.0)), Finding)  # in all of the run
    assert isinstance(long("device", run=run(0.0)), Finding)  # no boundary of an epoch


def test_on_a_busy_machine_long_steps_without_a_period_are_not_judged() -> None:
    for at in ((4, 9, 14), (4, 9, 15, 19)):
        reason = as_not_applicable(long("host", 40.0, *at, cores=BUSY)).reason
        assert "other programs used 1 of 2 cores" in reason


def test_on_a_busy_machine_a_strict_period_is_a_note_that_says_so() -> None:
    at = 4, 9, 14, 19
    finding = as_finding(long("between", 40.0, *at, cores=BUSY))
    assert finding.severity is Severity.NOTE
    assert "every 5 steps, while other programs used 1 of 2 cores" in finding.summary
    assert as_finding(long("between", 40.0, *at)).severity is Severity.CRITICAL


def test_a_loop_of_single_operations_traces_no_function() -> None:
    for source, says in ((StepSource.EAGER_GRADIENT, "Python"), (StepSource.KERAS_FIT, "traced")):
        assert says in first_action(long("host", source=source))


# Long steps of the whole run


def seen(number: int, time: float, work: RunWork = RunWork.OTHER, **more: Any) -> LongLine:
    at = Location("train.py", number)
    return LongLine(at=at, ms=time, samples=more.pop("samples", 50), work=work, **more)


def occasional(
    *lines: LongLine, beyond_ms: float = 6_000.0, usual: HostLines | None = None, cores: Cores | None = None,
    extra: dict[int, tuple[str, float]] | None = None, **more: Any,
) -> Verdict:  # fmt: skip
    """A run of a minute with 120 long steps of 600, of which the traced window holds none."""
    run = equal_steps(
        Location("train.py", 40), 600, 20.0, LongSteps(count=120, ms=7_000.0, beyond_ms=beyond_ms, every=5)
    )
    phases = divided_run(60_000.0, {})
    return check(extra or {}, run=run, phases=phases, sampled=RunLongLines(lines), usual=usual, cores=cores, **more)


def at_lines(verdict: Verdict) -> list[str]:
    return [effect.subject for effect in as_finding(verdict).run_effects]


def usually(*lines: TimedLine) -> HostLines:
    return HostLines({Stage.HOST: lines})


def test_work_in_some_steps_of_the_run_is_found_without_a_traced_one() -> None:
    finding = as_finding(occasional(seen(23, 5_000.0, calls="matplotlib.figure.Figure.savefig")))
    assert (finding.at, finding.severity) == (Location("train.py", 23), None)  # by its share of the run
    assert "120 of 600 steps" in finding.summary
    assert "about every five steps, with 6 s (10 % of what recurs)" in finding.summary
    (effect,) = finding.run_effects
    assert (effect.phase, effect.of.value, effect.times) == (Phase.STEPS, 6_000.0, 0)  # not counted


def test_a_special_method_is_named_with_its_class() -> None:
    finding = as_finding(occasional(seen(23, 5_000.0, calls="keras.src.layers.layer.Layer.__call__")))
    assert first_action(finding).startswith("Call Layer.__call__ less often")
    assert "(Layer.__call__)" in finding.summary


def test_what_each_step_consists_of_is_no_occasional_work() -> None:
    """Other programs make the optimizer's update long; the program must not be told to make it less often."""
    update, save = seen(23, 1_000.0, calls="Optimizer.apply_gradients"), seen(30, 5_000.0)
    own = seen(31, 500.0)
    usual = usually(
        TimedLine(update.at, 50, 5.0, work=LineWork.OPERATIONS),
        TimedLine(save.at, 2, 0.2, work=LineWork.OPERATIONS),
        TimedLine(own.at, 50, 5.0, work=LineWork.PYTHON),  # the script's own may be made rarer
    )
    assert at_lines(occasional(update, save, own, usual=usual)) == ["train.py:30", "train.py:31"]
    assert isinstance(occasional(update, usual=usual), Healthy)


def test_on_a_busy_machine_no_line_of_each_step_is_occasional_work() -> None:
    """Trap: a step waits for a core in whichever line it is in, the script's own Python included."""
    own, save = seen(31, 1_000.0), seen(30, 5_000.0)
    lines = usually(TimedLine(own.at, 50, 5.0, work=LineWork.PYTHON))
    assert at_lines(occasional(own, save, usual=lines, cores=BUSY)) == ["train.py:30"]
    assert len(at_lines(occasional(own, save, usual=lines))) == 2
    assert isinstance(occasional(own, save, cores=BUSY), Healthy)


def test_a_traced_pattern_gets_the_price_of_the_run() -> None:
    line = TimedLine(AT, 40, callback="Save.on_train_batch_end", calls={PREDICT: 40})
    traced: dict[str, Any] = {
        "extra": dict.fromkeys((4, 14), ("between", 100.0)),
        "lines": LongStepLines({Stage.BETWEEN: (line,)}),
    }
    finding = as_finding(occasional(seen(30, 5_000.0), **traced))
    assert "of 20 steps took much longer" in finding.summary
    assert [effect.of.value for effect in finding.run_effects] == [6_000.0]


def test_little_of_the_run_is_no_finding() -> None:
    for beyond_ms in (900.0, 2_000.0):  # below a second, below 5 %
        assert isinstance(occasional(seen(23, 5_000.0), beyond_ms=beyond_ms), Healthy)


def test_waits_and_lines_that_are_seen_rarely_are_no_work_of_their_own() -> None:
    waits = (seen(23, 5_000.0, work) for work in (RunWork.INPUT, RunWork.TRACING))
    for line in (*waits, seen(23, 5_000.0, samples=2), seen(40, 5_000.0, trains=True)):
        assert isinstance(occasional(line), Healthy)


def test_what_other_lines_take_is_not_theirs() -> None:
    (effect,) = as_finding(occasional(seen(23, 2_000.0), seen(24, 1_000.0, RunWork.INPUT))).run_effects
    assert effect.of.value == near(4_000.0)  # two thirds of what long steps take beyond usual

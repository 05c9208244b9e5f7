"""step-outlier: long steps that recur, and those that show no pattern."""

import pytest

from tests.rules.cases.step_outlier import example
from tests.rules.kit import *
from tfdoctor.facts.phases.run_steps import LongLine, LongSteps, RunLongLines
from tfdoctor.facts.step_time.host_lines import LongStepLines
from tfdoctor.facts.steps.untraced_pace import UntracedPace
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.rules.step_outlier import LONGER_EPOCHS
from tfdoctor.terms.kinds import RunWork

check = partial(example, count=20, lines=None)

BUSY = Cores(2.0, 1.5, 1.0)
"""Other programs use a core of two, and none is free."""


@pytest.mark.parametrize(("others", "kind"), [(1.0, NotApplicable), (0.4, Finding)], ids=["busy", "idle"])
def test_on_a_busy_machine_other_programs_may_be_the_cause(others: float, kind: type) -> None:
    cores = Cores(2.0, 1.5, others)
    assert isinstance(check(dict.fromkeys((4, 14), ("device", 100.0)), cores=cores), kind)


def test_on_a_busy_machine_a_callback_is_still_the_cause() -> None:
    extra = dict.fromkeys((4, 14), ("between", 100.0))
    assert isinstance(example(extra, cores=Cores(2.0, 1.5, 1.0)), Finding)


def test_two_long_steps_of_one_cause_are_found() -> None:
    finding = as_finding(check({4: ("between", 100.0), 14: ("between", 100.0)}))
    assert finding.severity is Severity.CRITICAL
    assert "between steps" in finding.summary
    assert not finding.effects  # the median step does not show it


def test_the_summary_holds_the_period_where_there_is_one() -> None:
    finding = as_finding(check(dict.fromkeys((3, 8, 13, 18), ("input", 30.0))))
    assert "every 5 steps" in finding.summary
    assert "every" not in as_finding(check(dict.fromkeys((3, 8, 14, 18), ("input", 30.0)))).summary


def test_three_steps_at_equal_distances_may_be_chance() -> None:
    """Trap: a check of function tracing was advised "every 5 steps", by three steps that other programs hit."""
    assert "every" not in as_finding(check(dict.fromkeys((3, 8, 13), ("input", 30.0)))).summary


def test_one_long_step_is_no_pattern() -> None:
    """Trap: on a shared machine there always is one."""
    assert "may be chance" in as_healthy(check({4: ("device", 40.0)})).summary


def test_one_occasion_that_takes_much_of_the_trace_is_not_healthy() -> None:
    verdict = as_not_applicable(check({4: ("input", 100.0), 5: ("input", 100.0)}))
    assert "input" in verdict.reason
    assert "one occasion: 50 %" in verdict.reason


def test_the_end_of_an_epoch_is_not_healthy_either() -> None:
    verdict = as_not_applicable(check({4: ("between", 100.0), 5: ("input", 100.0)}))
    assert "work between steps and a wait for input" in verdict.reason
    several = as_not_applicable(check({4: ("between", 50.0), 14: ("input", 50.0)}))
    assert "two occasions" in several.reason


def test_adjacent_long_steps_are_one_occasion() -> None:
    """Trap: another program's second of work covers several steps."""
    assert isinstance(check({4: ("device", 20.0), 5: ("device", 20.0)}), Healthy)
    assert isinstance(check({4: ("device", 20.0), 6: ("device", 20.0)}), Finding)


def test_long_steps_without_a_common_cause_are_no_pattern() -> None:
    finding = as_healthy(check({4: ("device", 20.0), 14: ("input", 20.0)}))
    assert "without a common cause" in finding.summary


def test_a_twentieth_of_the_time() -> None:
    assert [type(check({4: ("between", more), 14: ("between", more)})) for more in (5.5, 5.0)] == [Finding, Healthy]


def test_without_steady_steps_nothing_is_judged() -> None:
    assert isinstance(check({2: ("between", 50.0)}, count=5), NotApplicable)


def test_steps_that_compile_are_left_to_recompilation() -> None:
    long = dict.fromkeys((4, 14), ("host", 100.0))
    compiling = CompileTime(2, 20, 1, share=0.5, apart=frozenset((4, 14)))
    assert "recompilation" in as_not_applicable(check(long, compiling=compiling)).reason
    assert isinstance(check(long | {9: ("host", 100.0)}, compiling=compiling), Finding)


AT = Location("train.py", 9)
PREDICT = "keras.src.backend.tensorflow.trainer.TensorFlowTrainer.predict"


def remedy(
    *lines: TimedLine, part: str = "between", more: float = 100.0, timed: bool = True
) -> tuple[str, Location | None]:
    """What two long steps are told to change, with these samples between the calls."""
    seen = LongStepLines({Stage.BETWEEN: lines}, timed)
    finding = as_finding(check({4: (part, more), 14: (part, more)}, lines=seen))
    assert ("predict at train.py:9" in finding.summary) == (finding.remedies[0].at is not None)
    return finding.remedies[0].action, finding.remedies[0].at


def test_the_line_and_its_call_are_named() -> None:
    line = TimedLine(AT, 40, callback="Eval.on_train_batch_end", calls={PREDICT: 40})
    action = "Call predict in Eval.on_train_batch_end less often, or once per epoch"
    assert remedy(line) == (action, AT)


def test_a_few_samples_name_no_line() -> None:
    assert [remedy(TimedLine(AT, seen, calls={PREDICT: seen}))[1] for seen in (5, 4)] == [AT, None]


@pytest.mark.parametrize(("other", "at"), [(10, AT), (11, None)])
def test_half_of_the_samples_name_a_line(other: int, at: Location | None) -> None:
    others = [TimedLine(Location("train.py", at), 1) for at in range(20, 20 + other)]
    assert remedy(TimedLine(AT, 10, calls={PREDICT: 10}), *others)[1] == at


def test_samples_of_python_do_not_explain_a_slow_device() -> None:
    """Trap: the device is slow in these steps, while a callback is sampled as in any other."""
    assert remedy(TimedLine(AT, 40, calls={PREDICT: 40}), part="device")[1] is None


@pytest.mark.parametrize(("more", "at"), [(101.0, AT), (99.0, None)])
def test_samples_without_times_count_where_long_steps_take_half(more: float, at: Location | None) -> None:
    assert remedy(TimedLine(AT, 40, calls={PREDICT: 40}), more=more, timed=False)[1] == at


@pytest.mark.parametrize(
    ("callback", "fit_at", "own"),
    [("", AT, True), ("Eval.on_epoch_end", AT, False), ("", Location("train.py", 1), False), ("", None, False)],
)
def test_the_end_of_fits_own_epoch_is_no_call_to_make_less_often(
    callback: str, fit_at: Location | None, *, own: bool
) -> None:
    """Trap: fit is called once; the long steps are those between which it ends an epoch of eight batches."""
    line = TimedLine(AT, 40, callback=callback, calls={"keras.Model.fit": 40})
    long = {4: ("between", 100.0), 14: ("between", 100.0)}
    program = Program(settings=RunSettings(epochs=50), fit_at=fit_at)
    finding = as_finding(check(long, lines=LongStepLines({Stage.BETWEEN: (line,)}), program=program))
    assert finding.remedies[0].at == AT
    assert (finding.remedies[0].action == LONGER_EPOCHS) is own


@pytest.mark.parametrize(
    ("steps", "number", "epochs", "own"),
    [
        (10, 9, 5, True),
        (10, 10, 5, True),
        (10, 11, 5, True),
        (10, 14, 5, False),
        (None, 14, 5, True),
        (None, 14, 1, False),
        (None, 14, None, False),
    ],
)
def test_an_epoch_of_fit_ends_where_its_steps_are_over(
    steps: int | None, number: int, epochs: int | None, *, own: bool
) -> None:
    """A fit over one epoch may be called for each."""
    line = TimedLine(AT, 40, calls={"keras.Model.fit": 40})
    program = Program(settings=RunSettings(epochs=epochs, steps_per_epoch=steps), fit_at=AT)
    long = dict.fromkeys((4, number), ("between", 100.0))
    finding = as_finding(check(long, lines=LongStepLines({Stage.BETWEEN: (line,)}), program=program))
    assert (finding.remedies[0].action == LONGER_EPOCHS) is own


@pytest.mark.parametrize(("share", "kind"), [(0.051, Finding), (0.049, Healthy)])
def test_long_first_steps_of_passes_that_were_not_traced_are_found(share: float, kind: type) -> None:
    verdict = check({}, starts=PassStarts(7, 30, 392.0, 28.0, share, 12.0))
    assert isinstance(verdict, kind)
    assert not isinstance(verdict, Finding) or "392 ms instead of 28.0 ms" in verdict.summary


def test_what_the_traced_steps_show_comes_first() -> None:
    long = {4: ("between", 100.0), 14: ("between", 100.0)}
    verdict = check(long, starts=PassStarts(7, 30, 392.0, 28.0, 0.25, 12.0))
    assert verdict == check(long)


SAVE = TimedLine(
    AT, 8, callback="ModelCheckpoint.on_train_batch_end", calls={"tf_keras.src.engine.training.Model.fit": 8}
)


def checkpoint(seen: int = 8, at: tuple[int, ...] = (4, 9, 14, 19), more: float = 6.0) -> Verdict:
    """A checkpoint in some steps, among device times that vary so much that no step is an outlier."""
    extra = {n: ("device", 3.0 * (n % 4)) for n in range(20)} | dict.fromkeys(at, ("host", more))
    line = replace(SAVE, seen=seen)
    callbacks = ((Stage.HOST, replace(line, steps=frozenset(at))),)
    return check(extra, lines=LongStepLines(callbacks=callbacks), cores=Cores(2.0, 1.5, 1.0))


def test_a_callback_in_every_fifth_step_is_found_without_outliers() -> None:
    finding = as_finding(checkpoint())
    assert "4 of 20 steps" in finding.summary
    assert "ModelCheckpoint.on_train_batch_end at train.py:9" in finding.summary
    assert "every 5 steps" in finding.summary
    assert finding.severity is Severity.WARNING  # 24 of 279 ms
    assert "fit" not in finding.remedies[0].action
    assert finding.remedies[0].at == AT


@pytest.mark.parametrize(
    "verdict",
    [
        checkpoint(seen=4),
        checkpoint(more=2.0),  # 3 % of the time
        checkpoint(at=tuple(range(0, 20, 2))),  # no minority: other rules report work in each step
        checkpoint(at=(4, 5, 6)),  # one occasion
    ],
)
def test_a_callback_that_makes_no_pattern_is_none(verdict: Verdict) -> None:
    assert not isinstance(verdict, Finding)


@pytest.mark.parametrize(
    ("count", "total_ms", "kind"),
    [(100, 1000.0, NotApplicable), (100, 1900.0, Finding), (19, 190.0, Finding)],
    ids=["no long ones", "long ones as well", "too few to tell"],
)
def test_long_steps_that_the_untraced_ones_lack_are_none(count: int, total_ms: float, kind: type) -> None:
    untraced = UntracedSteps(count=count, median_ms=10.0, of="steps", total_ms=total_ms)
    pace = UntracedPace(1.0, 10.0, untraced, 20)
    verdict = check(dict.fromkeys((4, 14), ("between", 100.0)), pace=pace)
    assert isinstance(verdict, kind)
    assert not isinstance(verdict, NotApplicable) or "untraced steps lack" in verdict.reason


def run(beyond_ms: float) -> RunSteps:
    """Steps of 10 ms of a whole run, without the boundaries of its epochs; long ones have so many ms more."""
    long = LongSteps(count=20, ms=200.0 + beyond_ms, beyond_ms=beyond_ms)
    total = 10_000.0 + beyond_ms
    return RunSteps(
        at=AT, source="fit", count=1000, total_ms=total, mean_ms=total / 1000,
        median_ms=10.0, p10_ms=9.0, p90_ms=11.0, long=long,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "beyond_ms", "kind"),
    [
        (None, 0.0, NotApplicable),
        (TimedLine(AT, 40, calls={"keras.Model.fit": 40}), 0.0, NotApplicable),
        (TimedLine(AT, 40, callback="Save.on_train_batch_end", calls={"keras.Model.fit": 40}), 0.0, Finding),
        (TimedLine(AT, 40, calls={"train.save": 40}), 0.0, Finding),
        (None, 10_000.0, Finding),
    ],
    ids=["no line", "fit itself", "a callback", "a line of the loop", "in all of the run"],
)
def test_what_lies_between_epochs_in_the_account_of_the_run_is_no_long_step(
    line: TimedLine | None, beyond_ms: float, kind: type
) -> None:
    lines = LongStepLines({Stage.BETWEEN: (line,)}) if line else None
    long = dict.fromkeys((4, 14), ("between", 100.0))
    verdict = check(long, lines=lines, run=run(beyond_ms))
    assert isinstance(verdict, kind)
    assert not isinstance(verdict, NotApplicable) or "between epochs" in verdict.reason


def test_a_slow_device_is_no_boundary_of_an_epoch() -> None:
    assert isinstance(check(dict.fromkeys((4, 14), ("device", 100.0)), run=run(0.0)), Finding)


@pytest.mark.parametrize("at", [(4, 9, 14), (4, 9, 15, 19)])
def test_on_a_busy_machine_long_steps_without_a_period_are_not_judged(at: tuple[int, ...]) -> None:
    verdict = as_not_applicable(check(dict.fromkeys(at, ("host", 40.0)), cores=BUSY))
    assert "other programs used 1 of 2 cores" in verdict.reason


def test_on_a_busy_machine_a_strict_period_is_a_note_that_says_so() -> None:
    long = dict.fromkeys((4, 9, 14, 19), ("between", 40.0))
    finding = as_finding(check(long, cores=BUSY))
    assert finding.severity is Severity.NOTE
    assert "every 5 steps, while other programs used 1 of 2 cores" in finding.summary
    assert as_finding(check(long)).severity is Severity.CRITICAL


@pytest.mark.parametrize(
    ("source", "says"), [(StepSource.EAGER_GRADIENT, "Python"), (StepSource.KERAS_FIT, "traced")]
)
def test_a_loop_of_single_operations_traces_no_function(source: StepSource, says: str) -> None:
    finding = as_finding(check(dict.fromkeys((4, 14), ("host", 100.0)), source=source))
    assert says in finding.remedies[0].action


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


def test_work_in_some_steps_of_the_run_is_found_without_a_traced_one() -> None:
    finding = as_finding(occasional(seen(23, 5_000.0, calls="matplotlib.figure.Figure.savefig")))
    assert finding.at == Location("train.py", 23)
    assert "120 of 600 steps" in finding.summary
    assert "about every five steps, with 6 s (10 % of what recurs)" in finding.summary
    (effect,) = finding.run_effects
    assert (effect.phase, effect.of.value, effect.times) == (Phase.STEPS, 6_000.0, 0)  # not counted
    assert finding.severity is None  # by its share of the run


def test_a_special_method_is_named_with_its_class() -> None:
    finding = as_finding(occasional(seen(23, 5_000.0, calls="keras.src.layers.layer.Layer.__call__")))
    assert finding.remedies[0].action.startswith("Call Layer.__call__ less often")
    assert "(Layer.__call__)" in finding.summary


def test_what_each_step_consists_of_is_no_occasional_work() -> None:
    """Other programs make the optimizer's update long; the program must not be told to make it less often."""
    update, save = seen(23, 1_000.0, calls="Optimizer.apply_gradients"), seen(30, 5_000.0)
    own = seen(31, 500.0)
    lines = {
        Stage.HOST: (
            TimedLine(update.at, 50, 5.0, work=LineWork.OPERATIONS),
            TimedLine(save.at, 2, 0.2, work=LineWork.OPERATIONS),
            TimedLine(own.at, 50, 5.0, work=LineWork.PYTHON),  # the script's own may be made rarer
        )
    }
    assert at_lines(occasional(update, save, own, usual=HostLines(lines))) == ["train.py:30", "train.py:31"]
    assert isinstance(occasional(update, usual=HostLines(lines)), Healthy)


def test_on_a_busy_machine_no_line_of_each_step_is_occasional_work() -> None:
    """Trap: a step waits for a core in whichever line it is in, the script's own Python included."""
    own, save = seen(31, 1_000.0), seen(30, 5_000.0)
    lines = HostLines({Stage.HOST: (TimedLine(own.at, 50, 5.0, work=LineWork.PYTHON),)})
    assert at_lines(occasional(own, save, usual=lines, cores=BUSY)) == ["train.py:30"]
    assert len(at_lines(occasional(own, save, usual=lines))) == 2
    assert isinstance(occasional(own, save, cores=BUSY), Healthy)


def test_a_traced_pattern_gets_the_price_of_the_run() -> None:
    long = dict.fromkeys((4, 14), ("between", 100.0))
    line = TimedLine(AT, 40, callback="Save.on_train_batch_end", calls={PREDICT: 40})
    lines = LongStepLines({Stage.BETWEEN: (line,)})
    finding = as_finding(occasional(seen(30, 5_000.0), extra=long, lines=lines))
    assert "of 20 steps took much longer" in finding.summary
    assert [effect.of.value for effect in finding.run_effects] == [6_000.0]


@pytest.mark.parametrize("beyond_ms", [900.0, 2_000.0])  # below a second, below 5 %
def test_little_of_the_run_is_no_finding(beyond_ms: float) -> None:
    assert isinstance(occasional(seen(23, 5_000.0), beyond_ms=beyond_ms), Healthy)


@pytest.mark.parametrize(
    "line",
    [
        seen(23, 5_000.0, RunWork.INPUT),
        seen(23, 5_000.0, RunWork.TRACING),
        seen(23, 5_000.0, samples=2),
        seen(40, 5_000.0, trains=True),
    ],
)
def test_waits_and_lines_that_are_seen_rarely_are_no_work_of_their_own(line: LongLine) -> None:
    assert isinstance(occasional(line), Healthy)


def test_what_other_lines_take_is_not_theirs() -> None:
    (effect,) = as_finding(occasional(seen(23, 2_000.0), seen(24, 1_000.0, RunWork.INPUT))).run_effects
    assert effect.of.value == pytest.approx(4_000.0)  # two thirds of what long steps take beyond usual

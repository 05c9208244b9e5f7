"""retracing over the run: functions that are made or traced again and again, priced as time of the run."""

from tests.rules.kit import *
from tests.rules.test_retracing import example
from tfdoctor.facts.phases.run_calls import ChangingNumber
from tfdoctor.rules.tracing.retracing import KEPT_OPTIMIZER

FIT, COMPILE = Location("train.py", 33), Location("train.py", 31)

STEP = TracedDefinition(
    name="step", at=FIT, tracings=10, ms=5_500.0, first_ms=1_000.0, made=10, within=RunCall.EPOCH,
    starts_s=tuple(range(8, 28, 2)),
)  # fmt: skip

OWN = replace(STEP, at=Location("train.py", 50), within=RunCall.SCRIPT, tracings=100, made=100)

COMPILED = MadeCall(call=RunCall.COMPILE, name="Model.compile", at=COMPILE, count=10, ms=50.0, looped=True)

FITTED = MadeCall(call=RunCall.FIT, name="Model.fit", at=FIT, count=10, ms=20_000.0, looped=True, models=1)

PHASES = RunPhases(total_ms=30_000.0, times={Phase.TRACING: 5_500.0, Phase.IMPORTS: 24_500.0}, once_ms=10_000.0)


def check(
    *functions: TracedDefinition,
    calls: tuple[MadeCall, ...] = (COMPILED, FITTED),
    phases: RunPhases = PHASES,
    window: Retracing | None = None,
) -> Verdict:
    step = Breakdown.of(device=5.0, host=5.0) if window else None
    untraced = Unavailable("no trace")
    return example(window or untraced, step, *functions, phases=phases, calls=calls)


def test_a_model_that_is_compiled_in_each_epoch_is_found_with_its_line() -> None:
    finding = as_finding(check(STEP))
    assert (finding.at, finding.remedies[0].action, finding.concern) == (COMPILE, KEPT_OPTIMIZER, Concern.RUN)
    (effect,) = finding.run_effects
    assert (effect.phase, effect.of.value, effect.times) == (Phase.TRACING, 4_500.0, 9)
    assert (effect.recurs, effect.bound) == (Recurrence.PER_EPOCH, Bound.EXPECTED)
    assert "10 separate function objects, since train.py:31 compiles" in finding.summary


def test_the_time_of_compile_itself_counts_too() -> None:
    building = RunLine(phase=Phase.BUILDING, at=COMPILE, ms=400.0, samples=6)
    phases = replace(PHASES, lines=(building, replace(building, at=FIT)))
    effect = as_finding(check(STEP, phases=phases)).run_effects[-1]
    assert (effect.phase, effect.of.value, effect.subject) == (Phase.BUILDING, 360.0, "train.py:31")


def test_both_sides_of_each_limit() -> None:
    for changes, kind in (
        ({}, Finding),
        ({"tracings": 2, "made": 2}, Healthy),  # a model and its fine-tuned copy
        ({"tracings": 3, "made": 3}, Finding),
        ({"tracings": 5, "made": 1}, Healthy),
        ({"tracings": 6, "made": 1}, Finding),  # shapes or values that change
        ({"ms": 1_000.0 + 1_000.0}, Finding),  # 5 % of what recurs
        ({"ms": 1_000.0 + 999.0}, Healthy),
        ({"starts_s": (8.0, 9.0, 18.9)}, Healthy),  # trap: a slow first epoch, until all lengths were seen
        ({"starts_s": (8.0, 9.0, 19.0)}, Finding),
        ({"tracings": 2, "made": 1, "ms": 9_000.0, "first_ms": 8_000.0, "starts_s": (8.0, 9.0)}, Healthy),
    ):
        assert isinstance(check(replace(STEP, **changes)), kind)


def test_a_function_for_each_of_several_models_is_left_to_tuning_loop() -> None:
    found = [check(STEP, calls=(COMPILED, replace(FITTED, models=models))) for models in (10, 3, 2)]
    assert kinds(*found) == [Healthy, Finding, Finding]


def test_a_function_that_a_loop_makes_is_to_be_made_once() -> None:
    finding = as_finding(check(OWN))
    assert first_action(finding) == "Create step once, outside of the loop"
    assert (finding.at, finding.run_effects[0].recurs) == (OWN.at, Recurrence.PER_CALL)


def test_without_a_call_of_compile_the_line_of_fit_is_named() -> None:
    finding = as_finding(check(STEP, calls=(FITTED,)))
    assert finding.at == FIT
    assert "Compile the model once" in first_action(finding)


def test_python_numbers_that_change_are_named_with_the_line_that_assigns_them() -> None:
    line = Location("tune.py", 61)
    numbers = tuple(ChangingNumber(name, ("0.1", "0.2"), line) for name in ("lr", "clip", "noise"))
    finding = as_finding(check(replace(OWN, numbers=numbers, made=1)))
    assert "since Python values change in lr, clip and noise" in finding.summary
    assert finding.at == line
    assert "tensor" in finding.remedies[0].action
    assert "tf.constant(lr), tf.constant(clip), tf.constant(noise))" in finding.remedies[0].code


def test_a_function_that_is_made_again_is_named_where_it_is_defined() -> None:
    line, numbers = Location("gan.py", 46), (ChangingNumber("epoch", ("0", "1")),)
    finding = as_finding(check(replace(OWN, defined=line, redefined=True, numbers=numbers)))
    assert finding.summary.startswith("step (defined at gan.py:46) was traced")
    assert "Python values" not in finding.summary  # each is traced once, whatever it is given
    assert not any(isinstance(part, Table) and "parameter" in part.columns for part in finding.evidence)
    once = as_finding(check(replace(OWN, defined=line)))  # tf.function(step) in a loop: where it is called
    assert (finding.at, once.at) == (line, OWN.at)
    assert all("once" in first_action(one) for one in (finding, once))


def test_texts_that_change_get_no_tensor() -> None:
    line = Location("tune.py", 61)
    kind = ChangingNumber("kind", ("'a'", "'b'"), line)
    finding = as_finding(check(replace(OWN, numbers=(kind,), made=1)))
    assert "since Python values change in kind" in finding.summary
    assert finding.at == line
    both = as_finding(check(replace(OWN, numbers=(kind, ChangingNumber("lr", ("0.1", "0.2"))), made=1)))
    assert both.remedies[0].code.startswith("step(..., tf.constant(lr))")
    assert both.at == OWN.at


def test_what_new_shapes_cost_is_an_upper_bound() -> None:
    finding = as_finding(check(replace(STEP, made=1, tracings=40)))
    assert finding.run_effects[0].bound is Bound.AT_MOST
    assert "what changes" in finding.remedies[0].action


def test_several_functions_are_one_finding() -> None:
    test_step = replace(STEP, name="test_step", at=Location("train.py", 34), ms=2_000.0, first_ms=200.0)
    finding = as_finding(check(test_step, STEP))
    assert "step and 1 more were traced up to 10 times" in finding.summary
    assert [effect.of.value for effect in finding.run_effects] == [4_500.0, 1_800.0]


def test_what_the_window_shows_of_it_has_a_part_in_the_typical_step() -> None:
    for name, in_window in (("step", True), ("other", False)):
        window = Retracing((Retraced(name, 20, 5, 9, ("1", "2")),), host_ms=2.0, between_ms=1.0)
        finding = as_finding(check(STEP, window=window))
        assert finding.run_effects
        assert (bool(finding.effects), finding.concern is Concern.TYPICAL_STEP) == (in_window, in_window)


def test_the_changing_argument_is_taken_from_the_window() -> None:
    window = Retracing((Retraced("step", 20, 19, 30, ("1", "2")),), host_ms=2.0)
    assert "tensor" in first_action(check(replace(STEP, made=1, tracings=40), window=window))


def test_a_run_that_was_not_recorded_as_a_whole_is_not_judged() -> None:
    part = replace(PHASES, whole=False, missing="only its window was traced")
    assert isinstance(check(STEP, phases=part), NotApplicable)


def test_healthy_states_the_share_of_tracing() -> None:
    healthy = as_healthy(check(replace(STEP, tracings=2, made=1, starts_s=(8.0,))))
    assert "two calls of the run traced a tf.function" in healthy.summary
    assert "18 %" in healthy.summary

"""eager-step: more time in operations outside of tf.functions than in functions."""

from itertools import chain

import pytest

from tests.builders import line
from tests.rules.kit import *
from tests.run_logs import Run, place
from tfdoctor.recording.agent import Candidate
from tfdoctor.rules.tracing import eager_step
from tfdoctor.rules.tracing.eager_step import BESIDE


def example(
    work: EagerWork = EagerWork(525.0, 12.0, 0.0, asked=True, at=Location("train.py", 19), least_ms=4.0),
    breakdown: Breakdown | None = None,
    slow: SlowCalls | None = None,
    lines: HostLines | None = None,
) -> Verdict:
    """A Keras model compiled with run_eagerly=True: 525 operations per step."""
    return eager_step.check(work, breakdown or Breakdown.of(host=34.0, device=12.0), slow, lines)


sick = example


def healthy() -> Verdict:
    """The same model without run_eagerly: one function per step."""
    return example(EagerWork(0.0, 0.0, 3.8, asked=False), Breakdown.of(host=1.4, device=3.3))


STEP = Breakdown.of(host=10.0, device=5.0)
CALLER = Location("train.py", 30)


def check(operations: float, single: float, whole: float = 0.0, **more: Any) -> Verdict:
    facts = {"slow": more.pop("slow", None), "lines": more.pop("lines", None)}
    return example(EagerWork(operations, single, whole, **({"asked": None} | more)), STEP, **facts)


def runs(number: int, work: LineWork, caller: Location | None = None, time_ms: float = 4.0) -> TimedLine:
    callers = {caller: 4} if caller else {}
    return TimedLine(Location("train.py", number), 4, time_ms, callers=callers, work=work)


def on_host(*lines: TimedLine, between: tuple[TimedLine, ...] = ()) -> HostLines:
    return HostLines({Stage.HOST: lines, Stage.BETWEEN: between})


def slow(kind: SlowCall, stage: Stage, ms: float) -> SlowCalls:
    return SlowCalls((TimedLine.slow(Location("train.py", 9), kind, 9, range(9), {stage: ms}),), 10)


def beside_calls(own_ms: float) -> dict[str, Any]:
    """Operations of predict between the steps, and so many ms of operations of the step itself."""
    lines = on_host(runs(5, LineWork.OPERATIONS, time_ms=own_ms), between=(runs(9, LineWork.OPERATIONS),))
    return {"slow": slow(SlowCall.PREDICT, Stage.BETWEEN, 4.0), "lines": lines}


test_operations_next_to_a_function_or_in_slow_calls_are_no_eager_step = each_is(
    (check(20.0, 5.0, 0.0), Finding),
    (check(19.0, 5.0, 0.0), Healthy),
    # Trap: metrics and losses that are read next to a step that is a function
    (check(100.0, 2.0, 2.0), Healthy),
    (check(100.0, 2.1, 2.0), Finding),
    # Traps: predict builds its input pipeline, and summaries are written, beside a step that is a function
    (check(200.0, 5.0, 1.0, **beside_calls(0.9)), Healthy),
    (check(200.0, 5.0, 1.0, **beside_calls(1.1)), Finding),
)


def test_an_eager_step_is_found_beside_slow_calls_and_leaves_them() -> None:
    """Operations take 2 ms of the 3 ms of Python that writes summaries, and of the 6 ms of the eager step."""
    own, written = runs(5, LineWork.OPERATIONS, CALLER, 6.0), runs(9, LineWork.READING, None, 3.0)
    verdict = check(104.0, 2.0, slow=slow(SlowCall.WRITE, Stage.HOST, 3.0), lines=on_host(own, written))
    effect = as_finding(verdict).effects[0]
    assert effect.scales == pytest.approx((0.5 + 3.0) / 10.0)
    assert effect.bound is Bound.EXPECTED


def test_what_is_no_operation_and_the_call_of_one_function_remain() -> None:
    assert as_finding(check(200.0, 5.0)).effects[0].scales == pytest.approx(0.05)
    python = on_host(runs(5, LineWork.PYTHON, CALLER, time_ms=3.5))
    assert as_finding(check(200.0, 5.0, lines=python)).effects[0].scales == pytest.approx(0.4)


def test_operations_beside_a_compiled_step_are_not_called_the_step() -> None:
    lines = on_host(runs(40, LineWork.READING), runs(41, LineWork.OPERATIONS))
    finding = as_finding(check(60.0, 5.0, 1.0, beside="train_step", lines=lines))
    assert "one by one beside train_step" in finding.summary
    (remedy,) = finding.remedies
    assert (remedy.action, remedy.at, remedy.edit_id) == (BESIDE, Location("train.py", 41), "")


@pytest.mark.parametrize(("source", "name"), [("tf-data-loop", "f"), ("eager-gradient", "")])
def test_a_compiled_function_is_the_step_where_python_takes_no_gradients(source: str, name: str) -> None:
    seen = StepsSeen(candidates=(Candidate(source=source),))
    fed = {"at": ["t.py", 3], "function": "f", "arguments": []}
    known = recording({"python": {"fed": fed}}, manifest=manifest(steps=seen))
    rows = [(marker(n, 10 * n, 10 * n + 8), ("EagerLocalExecute: Mul", 10 * n, 10 * n + 1)) for n in range(8)]
    work = chart(trace([line("python", *chain(*rows))]), known).fact(EagerWork)
    assert (work.operations > 0, work.beside) == (True, name)


@pytest.mark.parametrize(
    ("second", "asked", "bound"),
    [
        (runs(5, LineWork.OPERATIONS, CALLER), None, Bound.EXPECTED),
        (runs(5, LineWork.OPERATIONS, None), None, Bound.AT_MOST),
        (runs(5, LineWork.READING, CALLER), None, Bound.AT_MOST),
        (runs(5, LineWork.PYTHON, CALLER), None, Bound.AT_MOST),
        (runs(5, LineWork.PYTHON, CALLER), True, Bound.EXPECTED),
    ],
)
def test_a_step_that_holds_more_than_operations_has_a_ceiling(
    second: TimedLine, *, asked: bool | None, bound: Bound
) -> None:
    """Trap: the steps of an environment in NumPy, between the calls of a policy."""
    lines = on_host(runs(4, LineWork.OPERATIONS, CALLER), second)
    finding = as_finding(check(200.0, 5.0, asked=asked, lines=lines))
    assert {effect.bound for effect in finding.effects} == {bound}
    assert ("has to stay outside" in finding.summary) == (bound is Bound.AT_MOST)


@pytest.mark.parametrize("asked", [True, None, False])
def test_the_remedy_is_what_the_loop_needs(*, asked: bool | None) -> None:
    remedy = as_finding(check(200.0, 5.0, asked=asked)).remedies[0]
    assert remedy.edit_id == ("run-eagerly-off" if asked else "tf-function")
    assert ("run_eagerly" if asked else "tf.function") in remedy.action


@pytest.mark.parametrize(("least", "left"), [(0.0, None), (1.0, 0.2), (4.0, 0.8), (6.0, None)])
def test_on_a_cpu_the_kernels_remain_as_fast_as_they_were_seen(least: float, left: float | None) -> None:
    """Trap: unknown kernels, and kernels that take no less time, save nothing."""
    finding = as_finding(check(200.0, 5.0, least_ms=least))
    scales = {effect.stage: effect.scales for effect in finding.effects}
    assert scales.get(Stage.DEVICE) == (None if left is None else pytest.approx(left))


def test_a_kernel_that_was_delayed_counts_as_its_fastest() -> None:
    """One kernel a step; Python needs 1 ms more for each."""
    rows = list(markers(5, 10.0).rows)
    for begin, kernel_ms in zip((1.0, 11.0, 21.0, 31.0, 41.0), (3.0, 1.0, 3.0, 4.0, 3.0), strict=True):
        rows.append(("EagerLocalExecute: MatMul", begin, begin + kernel_ms + 1.0))
        rows.append(("EagerKernelExecute", begin + 0.5, begin + 0.5 + kernel_ms))
    work = chart(trace([line("python", *rows)])).fact(EagerWork)
    assert work.operations_ms > work.least_ms
    assert work.least_ms == pytest.approx(1.0 - 0.002, abs=1e-3)


def sampled(*stacks: tuple[float, str | None, str | None]) -> EagerWork:
    """Sample a run for so many seconds in a step function, as its definition and the line that calls it."""
    run = Run()
    for number, (seconds, step, call) in enumerate(stacks):
        run.python(seconds, f"train.py:{number}", looped=True, step=place(step), step_call=place(call))
    traced = trace([line("python", *markers(5, 10.0).rows, ("EagerLocalExecute: MatMul", 1.0, 2.0))])
    return chart(traced, run.recording()).fact(EagerWork)


def test_the_function_of_most_samples_is_the_step() -> None:
    """Trap: most of the loop's time is Python in other functions, and two loops call the function."""
    work = sampled(
        (9.0, None, None),
        (2.0, "nets.py:23", "train.py:38"),
        (2.5, "nets.py:23", "train.py:40"),
        (1.0, "nets.py:23", "train.py:38"),
        (3.0, "nets.py:80", "train.py:60"),
    )
    assert (work.step_at, work.called_at) == (Location("nets.py", 23), Location("train.py", 38))
    none = sampled((9.0, None, None))
    assert (none.step_at, none.called_at) == (None, None)


def test_the_definition_is_the_place_and_the_call_is_shown() -> None:
    step, call = Location("nets.py", 23), Location("train.py", 38)
    work = EagerWork(200.0, 5.0, 0.0, at=Location("nets.py", 18), step_at=step, called_at=call)
    finding = as_finding(example(work, STEP))
    assert finding.at == step
    assert table(finding).rows == ((step, call),)
    asked = as_finding(example(replace(work, asked=True), Breakdown.of(host=10.0)))
    assert asked.at == Location("nets.py", 18)  # the line of fit, whose step is Keras' own

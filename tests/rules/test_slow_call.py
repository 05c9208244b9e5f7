"""slow-call: costly calls of Keras in every step, by line."""

import pytest

from tests.builders import Row
from tests.facts.step_time.sampled import place, sampled
from tests.rules.kit import *
from tfdoctor.rules.execution import slow_call
from tfdoctor.rules.execution.slow_call import INSTEAD, SingleCall, SingleCalls


def example(  # noqa: PLR0913 - the calls, and all that says what a change may spare with them
    *lines: TimedLine, step: Breakdown | None = None, long: LongStepLines | None = None,
    single: SingleOperations | None = None, body: LoopBody | None = None, examples: SingleCalls | None = None,
    phases: RunPhases | None = None, run: RunSteps | None = None, operations: Operations | None = None,
) -> Verdict:  # fmt: skip
    """Judge these lines of a loop, of which 30 steps were sampled."""
    whole = step or Breakdown.of(between=153.0, host=5.0, device=10.0)
    return slow_call.check(SlowCalls(lines, 30), whole, long, single, body, examples, phases, run, operations)


def sick() -> Verdict:
    """A reinforcement learning step calls predict on one batch: 150 of 168 ms."""
    at = Location("train.py", 51)
    return example(TimedLine.slow(at, SlowCall.PREDICT, 60, range(29), {Stage.BETWEEN: 150.0}))


def healthy() -> Verdict:
    """The same loop calls predict_on_batch."""
    return example(step=Breakdown.of(between=2.0, host=2.0, device=10.0))


READ, SET = Location("train.py", 54), Location("train.py", 58)


def line(
    ms: float, at: Location = READ, call: SlowCall = SlowCall.WEIGHTS, seen: int = 20, part: Stage = Stage.BETWEEN
) -> TimedLine:
    return TimedLine.slow(at, call, seen, range(10), {part: ms})


check = partial(example, step=Breakdown.of(between=10.0, device=6.0, input=4.0))


def test_both_limits_decide() -> None:
    found = [check(line(ms, seen=seen)) for ms, seen in ((1.0, 5), (0.99, 50), (8.0, 4), (0.0, 0))]
    assert kinds(*found) == [Finding, Healthy, Healthy, Healthy]


def writes(host: float, device: float = 0.0) -> TimedLine:
    return TimedLine.slow(READ, SlowCall.WRITE, 40, range(10), {Stage.HOST: host, Stage.DEVICE: device})


def test_a_write_is_compared_with_how_often_somebody_can_read() -> None:
    """tf.summary takes 170 of 200 ms: one in 100 steps comes every 3 s."""
    saves = run_line(Phase.SAVING, READ, 50_000.0), run_line(Phase.SAVING, SET, 10_000.0)
    within = replace(run_line(Phase.STEPS, READ, 9_000.0), executes_ms=2_000.0)
    run = divided_run(90_000.0, {Phase.SAVING: 60_000.0}, *saves, within)
    step, steps = Breakdown.of(host=160.0, device=40.0), equal_steps(READ, 400, 50.0)
    finding = as_finding(example(writes(150.0, 20.0), step=step, phases=run, run=steps))
    assert "functions that write logs or files in every step" in finding.summary
    assert [(one.action, one.at) for one in finding.remedies] == [("Write every 100 steps", READ)]
    apart = next(one for one in finding.evidence if isinstance(one, Measure) and "next" in one.label)
    assert (apart.value.value, apart.limit and apart.limit.value) == (30.0, 5000.0)
    saving, stepping = finding.run_effects
    assert (saving.phase, saving.of.value, saving.times, saving.scales) == (Phase.SAVING, 50_000.0, 400, 0.01)
    assert (stepping.phase, stepping.of.value, stepping.subject) == (Phase.STEPS, 7_000.0, StepWork.SLOW_CALLS)


def test_summaries_in_the_graph_are_writing() -> None:
    """Trap: what tf.summary computes in branches has no line of its own."""
    for calls in (1.0, 0.5, 0.4):
        rows = (
            OperationTime(name="w/write_summary/buckets/cond/else/_4/Sum", type="Sum", ms=9.0, calls=calls),
            OperationTime(name="w/write_summary", type="WriteSummary", ms=1.0, at=READ, calls=calls),
            OperationTime(name="Merge/MergeSummary", type="MergeSummary", ms=2.0, at=SET, calls=calls),
        )
        verdict = check(operations=Operations.training(20.0, *rows))
        if calls < 0.5:
            assert isinstance(verdict, Healthy)
        else:
            assert [(one.action, one.at) for one in as_finding(verdict).remedies] == [
                ("Write every 100 steps", READ)
            ]
            assert [one[1:] for one in effects(verdict) if one[1]] == [
                (ms, 0.01, Bound.EXPECTED) for ms in (9, 1, 2)
            ]


def test_longer_steps_are_written_more_often() -> None:
    for device, steps in ((50.0, 100), (250.0, 20)):
        verdict = example(writes(100.0), step=Breakdown.of(host=100.0, device=device))
        assert [one.action for one in as_finding(verdict).remedies] == [f"Write every {steps} steps"]
    # Steps that are long enough to read what each of them writes:
    found = [example(writes(ms), step=Breakdown.of(host=ms, device=9 * ms)) for ms in (555.0, 556.0)]
    assert kinds(*found) == [Finding, Healthy]


def test_the_kind_that_takes_most_comes_first_with_its_longest_line() -> None:
    predict = line(4.0, Location("train.py", 9), SlowCall.PREDICT)
    finding = as_finding(check(predict, line(3.0, SET), line(2.0, READ)))
    assert "get_weights" in finding.summary
    assert "5.00 ms" in finding.summary
    assert [remedy.at for remedy in finding.remedies] == [SET, predict.at]


def test_the_saving_is_at_most_the_time_of_the_calls() -> None:
    found = effects(check(line(4.0), line(1.0, part=Stage.DEVICE), line(1.0, part=Stage.INPUT)))
    assert {bound for *_, bound in found} == {Bound.AT_MOST}
    assert {part: of for part, of, *_ in found if of} == {Stage.BETWEEN: 4.0, Stage.DEVICE: 1.0}
    assert [left for part, _, left, _ in found if part is Stage.INPUT] == [0.75]


def test_operations_that_python_runs_one_by_one_may_all_be_theirs() -> None:
    single = SingleOperations(inside_ms=1.0, between_ms=2.0)
    found = effects(check(line(4.0), line(1.0, part=Stage.DEVICE), single=single))
    assert [of for _, of, *_ in found if of] == [4.0, 3.0]


def test_a_ceiling_is_what_the_samples_allow_for() -> None:
    for body_ms, seen, ceiling_ms in (
        (9.0, 16, 5.0),  # 16 samples and a standard error of 4
        (9.0, 64, 4.5),
        (4.75, 16, 4.75),  # no more than all Python outside of compiled functions
        (3.0, 16, 4.0),  # and no less than the samples show
        (None, 16, 4.0),
    ):
        body = None if body_ms is None else LoopBody(host_ms=0.0, between_ms=body_ms)
        finding = as_finding(check(line(4.0, seen=seen), body=body))
        assert [of for _, of, *_ in effects(finding) if of] == near([ceiling_ms])
        assert "4.00 ms" in finding.summary


def test_a_function_for_one_example_is_named_with_its_calls() -> None:
    parts = {Stage.BETWEEN: 7.0, Stage.DEVICE: 1.0}
    at = TimedLine.slow(Location("train.py", 73), SlowCall.SINGLE, 30, range(20), parts)
    examples = SingleCalls((SingleCall("policy", 80.0, 0.1, at),))
    single = SingleOperations(0.0, 2.0)
    finding = as_finding(check(single=single, body=LoopBody(0.0, 20.0), examples=examples))
    assert "policy 80 times in every step" in finding.summary
    assert "train.py:73" in finding.summary
    assert [remedy.at for remedy in finding.remedies] == [at.at]
    # Measured, not sampled; and operations that Python runs one by one are not within it.
    assert {part: of for part, of, *_ in effects(finding) if of} == parts
    both = effects(check(line(1.0), single=single, examples=examples))
    assert {part: of for part, of, *_ in both if of} == {Stage.BETWEEN: 8.0, Stage.DEVICE: 3.0}


def test_every_call_has_an_answer() -> None:
    assert set(INSTEAD) | {SlowCall.WRITE} == set(SlowCall)


def test_calls_in_a_few_steps_are_left_to_step_outlier() -> None:
    line = TimedLine(
        READ, 40, callback="Eval.on_train_batch_end", calls={"keras.src.models.model.Model.predict": 40}
    )
    for given, says in (
        (LongStepLines({Stage.BETWEEN: (line,)}), "not in typical steps, only in long ones"),
        (LongStepLines({Stage.BETWEEN: (TimedLine(READ, 40),)}), "is seen in typical steps"),
        (LongStepLines({Stage.BETWEEN: (line,)}, timed=False), "is seen in typical steps"),
        (None, "is seen in typical steps"),
    ):
        verdict = as_healthy(check(long=given))
        assert says in verdict.summary


# tf.functions called many times in a step for one example: which, how often, where, and their time.


STEPS = 20
WAYS: dict[str, Any] = {"calls": "tensorflow.Function.__call__", "inside": True}


def step(n: int, calls: int, computes: float) -> list[Row]:
    """Twenty ms: a training call of 4 that computes from 1 to 3, then calls of ``policy`` of 1 ms each."""
    at = 20.0 * n
    rows: list[Row] = [
        marker(n, at, at + 4),
        executor(at + 0.9, at + 3.1, n + 1),
        ("model/dense/MatMul:MatMul", at + 1, at + 3),
    ]
    for call in range(calls):
        begin = at + 4.5 + 1.2 * call
        rows += [
            ("policy", begin, begin + 1, {"tf_function_call": "notTraced-nonXla"}),
            executor(begin + 0.1, begin + 0.15 + computes, 100 * n + call + 50),
            ("policy/dense/MatMul:MatMul", begin + 0.1, begin + 0.1 + computes),
        ]
    return rows


def graph(*shapes: list[int | None], **more: Any) -> dict[str, Any]:
    operations = [
        graph_operation(f"x{n}", "Placeholder", [], [["float32", shape]]) for n, shape in enumerate(shapes)
    ]
    return {"name": "policy", "kind": "function", "operations": operations, **more}


def found(*graphs: dict[str, Any], calls: int = 10, computes: float = 0.1, **python: Any) -> SingleCalls:
    rows = [row for n in range(STEPS) for row in step(n, calls, computes)]
    rows.append(("tfdoctor_end", 20.0 * STEPS, 20.0 * STEPS))
    at = [20 * n + 5.0 for n in range(STEPS - 1)]
    places = place(9, *(ms - 0.8 for ms in (*at, *at)), **WAYS), place(73, *at, **WAYS)
    return sampled(rows, *python.pop("places", places), program={"graphs": list(graphs)}, **python).fact(
        SingleCalls
    )


def test_the_calls_are_counted_and_all_but_one_are_spared() -> None:
    (one,) = found(graph([1, 192], [])).calls
    assert one.name == "policy"
    assert one.calls == near(10.0)
    assert one.call_ms == near(1.0, rel=0.05)
    assert (one.line.at, one.line.call) == (Location("train.py", 73), SlowCall.SINGLE)
    assert (one.line.seen, len(one.line.steps)) == (STEPS - 1, STEPS)
    parts = one.line.parts_ms
    assert parts[Stage.DEVICE] == near(0.9 * 1.0, rel=0.1)
    assert parts[Stage.BETWEEN] == near(0.9 * 9.0, rel=0.1)


def test_a_few_calls_are_not_reported() -> None:
    assert [bool(found(graph([1, 192]), calls=calls).calls) for calls in (8, 7)] == [True, False]


def test_calls_that_mostly_compute_are_not_reported() -> None:
    assert [bool(found(graph([1, 192]), computes=computes).calls) for computes in (0.4, 0.6)] == [True, False]


def test_the_graphs_say_whether_calls_are_for_one_example() -> None:
    for graphs, reported in (
        ([graph([1, 192]), graph([None, 192])], True),
        ([graph([8, 192])], False),
        ([graph([1, 192]), graph([64, 192])], False),  # most calls may be for 64
        ([graph([None, 192])], False),
        ([graph([1, 192], [192])], False),  # a vector may be anything
        ([graph([192])], False),
        ([graph([])], False),
        ([graph([1, 192], outer="train")], False),
        ([graph([1, 192], [192, 4], captured=["x1"])], True),
        ([], False),
    ):
        assert bool(found(*graphs).calls) is reported


def test_functions_that_update_variables_and_the_training_function_are_left_out() -> None:
    """Trap: online learning trains on one example at a time; one call for all is another training."""
    updates = graph([1, 192])
    updates["operations"].append(graph_operation("w", "AssignAddVariableOp"))
    assert not found(updates).calls
    assert not found(graph([1, 192]), fed={"function": "policy"}).calls


def test_without_samples_no_line_is_known() -> None:
    with pytest.raises(Unavailable, match="have no time"):
        found(graph([1, 192]), began_unix_ns=None)
    assert not found(graph([1, 192]), places=[]).calls

"""slow-call: costly calls of Keras in every step, by line."""

from tests.facts.step_time.sampled import place, sampled
from tests.rules.kit import *
from tfdoctor.rules.execution import slow_call
from tfdoctor.rules.execution.slow_call import INSTEAD
from tfdoctor.rules.execution.slow_call.single_calls import SingleCall, SingleCalls

READ, SET = script(54), script(58)


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
    at = script(51)
    return example(TimedLine.slow(at, SlowCall.PREDICT, 60, range(29), {Stage.BETWEEN: 150.0}))


def timed(
    ms: float, at: Location = READ, call: SlowCall = SlowCall.WEIGHTS, seen: int = 20, part: Stage = Stage.BETWEEN
) -> TimedLine:
    return TimedLine.slow(at, call, seen, range(10), {part: ms})


def writes(host: float, device: float = 0.0) -> TimedLine:
    return TimedLine.slow(READ, SlowCall.WRITE, 40, range(10), {Stage.HOST: host, Stage.DEVICE: device})


def summarized(calls: float, device_ms: float = 6.0) -> Verdict:
    """Summaries in the graph, which compute in branches without a line of their own."""
    rows = (
        took("w/write_summary/buckets/cond/else/_4/Sum", "Sum", 9.0, calls=calls),
        took("w/write_summary", "WriteSummary", 1.0, at=READ, calls=calls),
        took("Merge/MergeSummary", "MergeSummary", 2.0, at=SET, calls=calls),
    )
    step = Breakdown.of(between=10.0, device=device_ms, input=4.0)
    return example(step=step, operations=training_step(20.0, *rows))


healthy = described(
    "The same loop calls predict_on_batch.", example, step=Breakdown.of(between=2.0, host=2.0, device=10.0)
)
check = partial(example, step=Breakdown.of(between=10.0, device=6.0, input=4.0))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step in five samples, less, or fewer, or none"] = [
        check(timed(ms, seen=seen)) for ms, seen in ((1.0, 5), (0.99, 50), (8.0, 4), (0.0, 0))
    ]
    predict = timed(4.0, script(9), SlowCall.PREDICT)
    told["the kind that takes most, with its longest line"] = check(predict, timed(3.0, SET), timed(2.0, READ))
    others = timed(1.0, part=Stage.DEVICE), timed(1.0, part=Stage.INPUT)
    told["the saving is at most the time of the calls in each part"] = check(timed(4.0), *others)
    told["operations that Python runs one by one may all be theirs"] = check(
        timed(4.0), others[0], single=SingleOperations(inside_ms=1.0, between_ms=2.0)
    )
    for body_ms, seen, name in (
        (9.0, 16, "16 samples and a standard error of 4"),
        (9.0, 64, "64 samples and a standard error of 8"),
        (4.75, 16, "no more than all Python outside of compiled functions"),
        (3.0, 16, "no less than the samples show"),
        (None, 16, "the samples, where that Python is unknown"),
    ):
        body = None if body_ms is None else LoopBody(host_ms=0.0, between_ms=body_ms)
        told[f"the ceiling is {name}"] = check(timed(4.0, seen=seen), body=body)
    parts = {Stage.BETWEEN: 7.0, Stage.DEVICE: 1.0}
    at = TimedLine.slow(script(73), SlowCall.SINGLE, 30, range(20), parts)
    examples, single = SingleCalls((SingleCall("policy", 80.0, 0.1, at),)), SingleOperations(0.0, 2.0)
    told["a function for one example is named with its calls, which are measured and not sampled"] = check(
        single=single, body=LoopBody(0.0, 20.0), examples=examples
    )
    told["beside other calls, with operations one by one"] = check(timed(1.0), single=single, examples=examples)
    evaluates = {"keras.src.models.model.Model.predict": 40}
    seen_long = TimedLine(READ, 40, callback="Eval.on_train_batch_end", calls=evaluates)
    told["calls in a few steps are left to step-outlier"] = check(long=LongStepLines({Stage.BETWEEN: (seen_long,)}))
    for long in (
        LongStepLines({Stage.BETWEEN: (TimedLine(READ, 40),)}),
        LongStepLines({Stage.BETWEEN: (seen_long,)}, timed=False),
    ):
        assert check(long=long) == check()
    assert set(INSTEAD) | {SlowCall.WRITE} == set(SlowCall)


@golden_cases
def test_writes(told: Cases) -> None:
    saves = run_line(Phase.SAVING, READ, 50_000.0), run_line(Phase.SAVING, SET, 10_000.0)
    within = replace(run_line(Phase.STEPS, READ, 9_000.0), executes_ms=2_000.0)
    run = divided_run(90_000.0, {Phase.SAVING: 60_000.0}, *saves, within)
    facts: dict[str, Any] = {"step": Breakdown.of(host=160.0, device=40.0), "run": equal_steps(READ, 400, 50.0)}
    # One in 100 steps comes every 3 s, as often as somebody can read
    told["tf.summary takes 170 of 200 ms"] = example(writes(150.0, 20.0), phases=run, **facts)
    for device in (50.0, 250.0):
        told[f"longer steps are written more often: {device:g} ms without it"] = example(
            writes(100.0), step=Breakdown.of(host=100.0, device=device)
        )
    told["steps that are just short of the time to read what each of them writes, and long enough"] = [
        example(writes(ms), step=Breakdown.of(host=ms, device=9 * ms)) for ms in (555.0, 556.0)
    ]
    told["trap: what summaries in the graph compute in branches has no line of its own"] = summarized(1.0)
    told["summaries in steps that are long enough to read each"] = summarized(1.0, 5_100.0)
    told["summaries in half of the steps, and in fewer"] = summarized(0.5), summarized(0.4)


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


@golden_cases
def test_single_calls(told: Cases) -> None:
    def called(name: str, *graphs: dict[str, Any], **more: Any) -> None:
        def calls() -> list[str]:
            return [
                f"{one.name} {one.calls:.1f} times of {one.call_ms:.1f} ms at {shown(one.line.at)}, {one.line.seen}"
                f" samples in {len(one.line.steps)} steps, spares "
                + ", ".join(f"{part} {time:.1f} ms" for part, time in one.line.parts_ms.items() if time > 0.05)
                for one in found(*graphs, **more).calls
            ]

        told[name] = calls

    one = graph([1, 192])
    called("the calls are counted, and all but one are spared", graph([1, 192], []))
    called("eight calls in a step", one, calls=8)
    called("seven calls in a step", one, calls=7)
    called("calls that compute for 40 % of their time", one, computes=0.4)
    called("calls that compute for 60 % of their time", one, computes=0.6)
    called("one example, in a graph for any number as well", one, graph([None, 192]))
    called("eight examples", graph([8, 192]))
    called("one example, and 64 in another graph: most calls may be for 64", one, graph([64, 192]))
    called("any number of examples", graph([None, 192]))
    called("an example and a vector, which may be anything", graph([1, 192], [192]))
    called("a vector", graph([192]))
    called("a number", graph([]))
    called("a function within another", graph([1, 192], outer="train"))
    called("an example, and captured weights", graph([1, 192], [192, 4], captured=["x1"]))
    called("no graph")
    updates = graph([1, 192])
    updates["operations"].append(graph_operation("w", "AssignAddVariableOp"))
    called("trap: online learning trains on one example at a time", updates)
    called("the training function", one, fed={"function": "policy"})
    called("samples without time", one, began_unix_ns=None)
    called("no samples", one, places=[])

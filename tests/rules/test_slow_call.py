"""slow-call: costly calls and writes in the training loop, by line and by the time of the run."""

from tests.rules.kit import *
from tfdoctor.rules.execution import slow_call

READ, SET = script(54), script(58)
GET_WEIGHTS, SET_WEIGHTS = (f"keras.src.layers.layer.Layer.{name}_weights" for name in ("get", "set"))
LAYER, WRITES = "keras.src.layers.layer.Layer.__call__", "tensorflow.summary.histogram"


def example(
    *lines: RunLine, each_ms: float = 20.0, source: str = "keras-fit", calls: tuple[MadeCall, ...] = (),
    fits: int = 1, operations: Operations | None = None,
    breakdown: Breakdown | None = None,
) -> Verdict:  # fmt: skip
    """Judge a run of a minute with 1,000 steps, in which these lines work."""
    times = {phase: sum(line.ms for line in lines if line.phase is phase) for phase in {one.phase for one in lines}}
    run = replace(equal_steps(script(1), 1_000, each_ms), source=source)
    made = RunCalls(calls, epochs=1, fits=fits)
    return slow_call.check(divided_run(60_000.0, times, *lines), run, made, operations, breakdown)


def at_work(
    calls: str, ms: float = 9_000.0, at: Location = READ, phase: Phase = Phase.STEPS, **more: Any
) -> RunLine:
    return run_line(phase, at, ms, calls, **more)


def summarized(calls: float, device_ms: float = 6.0, **more: Any) -> Verdict:
    """Summaries in the graph, which compute in branches without a line of their own."""
    rows = (
        took("w/write_summary/buckets/cond/else/_4/Sum", "Sum", 9.0, calls=calls),
        took("w/write_summary", "WriteSummary", 1.0, at=READ, calls=calls),
        took("Merge/MergeSummary", "MergeSummary", 2.0, at=SET, calls=calls),
    )
    step = Breakdown.of(between=10.0, device=device_ms, input=4.0)
    return example(operations=training_step(20.0, *rows), breakdown=step, **more)


sick = described(
    "The weights of a slow copy of the model are set in each step: 9 of 60 s.", example, at_work(SET_WEIGHTS)
)
healthy = described("The same loop assigns them in a tf.function.", example)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of what recurs, and less"] = [example(at_work(SET_WEIGHTS, ms)) for ms in (3_000.0, 2_999.0)]
    told["two lines of little time count together"] = example(
        at_work(GET_WEIGHTS, 1_600.0), at_work(SET_WEIGHTS, 1_600.0, SET)
    )
    arithmetic = [
        at_work(calls, ms, script(at), function="update")
        for calls, ms, at in (
            (GET_WEIGHTS, 4_000.0, 54), ("numpy.add", 3_000.0, 56), (SET_WEIGHTS, 2_000.0, 58),
            ("numpy.add", 500.0, 60),
        )
    ]  # fmt: skip
    told["the arithmetic between reading and setting weights belongs to them"] = example(*arithmetic)
    told["a model that Python calls, and the model of a step that is eager itself"] = [
        example(at_work(LAYER), source=source) for source in ("repeated-call", "eager-gradient")
    ]
    clones = "keras.src.models.cloning.clone_model"
    told["cloning in the loop around the training, and before it"] = [
        example(at_work(clones, phase=Phase.BUILDING, looped=looped)) for looped in (True, False)
    ]
    norms = at_work(GET_WEIGHTS, callback="Norms.on_train_batch_end", function="norms")
    told["weights that a callback only reads, and those that it sets"] = [
        example(norms),
        example(norms, replace(norms, at=SET, calls=SET_WEIGHTS)),
    ]
    told["a line that was seen once"] = example(at_work(SET_WEIGHTS, 59.0), at_work(clones))
    told["a session that is cleared in each step"] = example(at_work("keras.src.utils.clear_session"))
    told["calls with phases of their own"] = example(at_work("keras.src.trainer.Trainer.predict"))
    fits = (
        at_work("Model.fit", exact=True, executes_ms=2_000.0),
        at_work("Model.fit", 5_000.0, exact=True, phase=Phase.BOUNDARIES),
    )
    for made, each in ((1_000, "each of 1,000 steps"), (500, "two steps"), (499, "three of some steps")):
        call = made_call(RunCall.FIT, READ, made, 10.0)
        told[f"fit for {each}"] = example(*fits, calls=(call,), fits=made)
    policy = at_work("policy", exact=True, single=True)
    for number, each_ms in ((8_000, 1.125), (7_999, 1.125), (8_000, 5.0), (8_000, 5.1)):
        call = made_call(RunCall.FUNCTION, READ, number, each_ms, name="policy")
        told[f"{number / 1000} calls per step for one example, {each_ms} ms each"] = example(policy, calls=(call,))
    told["a function for many examples"] = example(replace(policy, single=False), calls=(call,))


@golden_cases
def test_writes(told: Cases) -> None:
    # One in 100 steps comes every 3 s, as often as somebody can read
    told["tf.summary in the loop, and in a callback of batches"] = (
        example(at_work(WRITES, looped=True, phase=Phase.SAVING), each_ms=40.0),
        example(at_work(WRITES, phase=Phase.SAVING, callback="Log.on_epoch_end"), each_ms=40.0),
    )
    told["what a callback writes is left to between-steps"] = example(
        at_work(WRITES, callback="Log.on_train_batch_end")
    )
    told["summaries at the end of an epoch"] = example(at_work(WRITES, phase=Phase.SAVING))
    told["longer steps are written more often, and those that are long enough never less"] = [
        example(at_work(WRITES), each_ms=ms) for ms in (109.0, 259.0, 5_009.0)
    ]
    told["trap: what summaries in the graph compute in branches has no line of its own"] = summarized(1.0)
    told["summaries in steps that are long enough to read each"] = summarized(1.0, each_ms=5_012.0)
    told["summaries in half of the steps, and in fewer"] = summarized(0.5), summarized(0.4)
    told["beside a line that writes"] = example(at_work(SET_WEIGHTS)), summarized(1.0, 5_100.0)

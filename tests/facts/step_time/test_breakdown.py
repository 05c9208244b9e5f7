"""Every instant of a step belongs to one part, and the parts sum to the step."""

from hypothesis import example

from tests.facts.kit import *
from tfdoctor.facts.step_time.host_time import own_ps

KERNEL, COPY, NCCL = "volta_sgemm_128x64_nn", "MemcpyH2D", "ncclDevKernel_AllReduce_Sum"

spans = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 40)).map(lambda x: (x[0] / 10, sum(x) / 10)), max_size=8
)

Spans = list[tuple[float, float]]
TRACED = {"host": 3.0, "device": 1.0, "input": 0.0}
told = Told()


def breakdown(of: Trace) -> Breakdown:
    return chart(of).fact(Breakdown)


def gpu_trace(steps: Thread, *work: Row, host: tuple[Thread, ...] = ()) -> Trace:
    stream = v100(line("Stream #14(Compute)", *work), line("Stream #15", ("warm-up", -9, -8)))
    return trace([steps, *host], gpus=[stream])


@given(kernels=spans, copies=spans, nccl=spans, waits=spans, gaps=st.lists(st.integers(1, 9)))
@example(kernels=[], copies=[], nccl=[], waits=[(0.0, 3.3)], gaps=[1, 1, 1])  # input in bursts
def test_the_parts_sum_to_every_step_and_to_the_usual_one(
    kernels: Spans, copies: Spans, nccl: Spans, waits: Spans, gaps: list[int]
) -> None:
    starts = [0, *(sum(gaps[: n + 1]) for n in range(len(gaps)))]
    steps = line("p", *(marker(n, at, at + 1, steps=1 + n % 3) for n, at in enumerate(starts)))
    work = [(KERNEL, *s) for s in kernels] + [(COPY, *s) for s in copies] + [(NCCL, *s) for s in nccl]
    facts = chart(gpu_trace(steps, *work, host=(line("data", *(wait(*s) for s in waits)),)))
    found, measured = facts.fact(Breakdown), facts.fact(Steps)
    for step, parts in zip(measured.steps, found.steps, strict=True):
        assert sum(parts.values()) == pytest.approx(step.total_ms, abs=1e-9)
        assert min(parts.values()) >= 0
    assert sum(found.median.values()) == pytest.approx(measured.usual_ms)


def waiting(start: float, end: float) -> tuple[Thread, ...]:
    return (line("tf_data_iterator_get_next", wait(start, end)),)


def infeed() -> Trace:
    kinds = {
        "%infeed": {"hlo_category": "infeed"},
        "%all-reduce": {"hlo_category": "all-reduce-scatter fusion"},
        "%copy-done": {"hlo_category": "copy-done"},
        "%fusion": {"hlo_category": "convolution fusion"},
    }
    ops = line("XLA Ops", ("%infeed", 0, 4), ("%fusion", 4, 7), ("%all-reduce", 7, 9), ("%copy-done", 9, 10))
    return trace([], tpus=[device(ops, line("Steps", ("0", 0, 10)), kinds=kinds)])


def outlying() -> Trace:
    rows = [marker(0, 0, 500), *(marker(n, 490 + 10 * n, 500 + 10 * n) for n in range(1, 9))]
    steps = line("p", *rows, ("tfdoctor_end", 580, 580))
    return gpu_trace(steps, *((KERNEL, s, s + 9) for s in range(500, 580, 10)), host=waiting(0, 480))


FOUR = line("p", marker(0, 0, 40, steps=4), ("tfdoctor_end", 40, 40))
WORK = (KERNEL, 10, 30), (NCCL, 20, 40), (COPY, 35, 55)
PAUSE = (line("python", wait(8, 10)),)

told[breakdown] = {
    "the device goes first, then collectives, copies and input": gpu_trace(
        markers(1, step=100, call=90), *WORK, host=waiting(50, 70)
    ),
    "a wait behind the device's work is not exposed": gpu_trace(
        markers(1, step=100), (KERNEL, 0, 60), host=waiting(10, 60)
    ),
    "waiting between two calls is input": gpu_trace(markers(1, step=11, call=8), (KERNEL, 0, 8), host=PAUSE),
    "where no device was recorded": trace([markers(1, 10, 9), line("d", wait(0, 2))], gpus=[v100()]),
    "work that runs into the next step is divided": gpu_trace(markers(2, step=10), (KERNEL, 5, 12)),
    "infeed of a TPU is input": infeed(),
    "several training steps in a call share its time": gpu_trace(FOUR, (KERNEL, 0, 20)),
    "an outlying first step does not colour the others": outlying(),
}

told[lambda wait: Breakdown.of(input=wait, device=100.0 - wait).little_wait] = {
    "no wait is told as such": 0.0,
    "hardly a wait too": 0.4,
    "a wait below the limit is told": 4.7,
}


def test_a_wait_counts_from_a_share_and_from_a_time_on() -> None:
    of = {
        (5.0, 100.0): True,
        (4.9, 100.0): False,
        (READY_MS, 1.0): True,
        (READY_MS * 0.99, 1.0): False,
        (0.0, 0.0): False,
    }
    found = {(wait, step): Breakdown.of(input=wait, device=step - wait) for wait, step in of}
    assert {times: one.waits_for_input for times, one in found.items()} == of
    assert [one.step_ms for one in found.values()] == pytest.approx([step for _, step in of])
    assert INPUT_SHARE == 0.05
    assert all(set(one.median) == set(map(str, PARTS)) for one in found.values())


def cost(events: dict[str, float], slower: float, parts: dict[str, float] = TRACED) -> object:
    found = TracingCost.of(parts, events, slower)
    return [found, {f"kept of {part}": found.kept(part) for part in parts}]


told[cost] = {
    "the cost belongs to the parts with the events": ({"host": 2000.0, "device": 0.0}, 2.0),
    # Trap: another program that ran beside the traced steps.
    "what events cannot explain slows all parts alike": ({"host": 100.0}, 2.0),
    "no part disappears": ({"device": 100_000.0}, 1.5),
}


@each(1.1, 1.6, 3.0)
def test_the_parts_sum_to_the_untraced_step(slower: float) -> None:
    cost = TracingCost.of(TRACED, {"host": 700.0, "device": 200.0}, slower)
    assert sum(cost.untraced.values()) == pytest.approx(4.0 / slower)


def traced(untraced_ms: float | None) -> Chart:
    """Steps of 2 ms: a hundred events of the host, and an operation of 1 ms."""
    rows, work = [marker(n, 2.0 * n, 2.0 * n + 2.0) for n in range(10)], []
    for n in range(10):
        rows += [("TFE", 2.0 * n + 0.001 * k, 2.0 * n + 0.001 * k) for k in range(100, 200)]
        work += [executor(2.0 * n + 0.5, 2.0 * n + 1.5)]
        work += [("model/MatMul:MatMul", 2.0 * n + 0.5, 2.0 * n + 1.5)]
    seen = StepsSeen(untraced=UntracedSteps(90, untraced_ms, "steps"))
    beside = recording(manifest=manifest(steps=seen))
    end = ("tfdoctor_end", 20.0, 20.0)
    return chart(trace([line("python", *rows, end), line("tf_Compute", *work)]), beside)


def slowed(untraced_ms: float) -> object:
    facts = traced(untraced_ms)
    model, sentence = facts.fact(StepModel), facts.fact(Breakdown).each_step
    return {
        **fields(model, "step_ms distorted trusted"),
        "with a cost": model.tracing is not None,
        "said": sentence,
    }


told[slowed] = {
    "the model of slowed steps is that of the untraced step": 1.25,
    "trusted without the cost": 1.5,
    "tracing takes a little": 1.9,
    "tracing hardly slows these": 1.95,
    # Trap: an estimate of a cost that is longer than the step itself is not good enough for what remains.
    "a cost that is longer than the step itself": 0.99,
}


def test_an_effect_on_a_distorted_step_saves_untraced_time() -> None:
    facts = traced(1.25)
    cost = facts.fact(TracingCost)
    assert cost.kept("host") < cost.kept("device")
    effect = Effect(Stage.HOST, 0.0, "call", ms(1.0))
    assert facts.fact(StepModel).saving([effect]) == pytest.approx(cost.untraced["host"], rel=0.01)


@cases(
    # the step takes half as long untraced, and no event says where: all of it may be in what remains
    ({}, None, {10.0: 10.0, 8.0: 6.0, 4.0: 2.0}),
    ({"host": 10_000.0}, 1.0, {4.0: 4.0}),  # of a cost that the events explain nothing is unknown
)
def test_a_bound_leaves_what_no_event_explains_to_the_rest(events: Any, scale: float | None, least: Any) -> None:
    cost = TracingCost.of({"host": 12.0, "device": 8.0}, events, 2.0)
    assert scale is None or cost.scale == pytest.approx(scale)
    assert {ms: cost.least(ms) for ms in least} == pytest.approx(least)


test_traced_work_keeps_what_its_events_do_not_take = answers(
    TracingCost.left, (4.0, 0.0, 1.0), (4.0, 2.0, 0.5), (4.0, 4.0, 0.1), (0.0, 1.0, 1.0)
)


def test_the_models_input_is_without_the_profilers_cost() -> None:
    """500 elements a step pass two stages on a thread of the input; each call is an event."""
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    slow = StageTime(path="Root::Prefetch::Map", kind="Map", work_ms=1.5, wall_ms=1.5, calls=500.0)
    source = StageTime(path="Root::Prefetch::Map::Range", kind="Range", wall_ms=0.5, calls=500.0)
    parts = [traced(1.25).fact(part) for part in (Trace, Recording)]
    facts = Chart([*parts, InputPipeline.of(ahead, slow, source)])
    each_ms = facts.fact(TracingCost).each_ms
    (segment,) = facts.fact(StepModel).segments
    assert each_ms > 0
    assert segment.ms == pytest.approx(2.0 - 1000 * each_ms)


# What the host does while no device works: the loop's body, and the events of each part.


def six(mark: tuple[float, float], *rows: Any) -> Chart:
    """Six steps of 10 ms on a thread of Python: what is marked of them, and the same rows in each."""
    steps = [(row[0], row[1] + 10.0 * n, row[2] + 10.0 * n, *row[3:]) for n in range(6) for row in rows]
    marks = [marker(n, 10.0 * n + mark[0], 10.0 * n + mark[1]) for n in range(6)]
    return chart(trace(host=[line("python/1", *marks, *steps)]))


STEP = ("train_step", 0.5, 4.5, {"tf_function_call": "notTraced-nonXla"})
RUN = ("FunctionRun", 1, 5, {"id": 1})
INSIDE = ("EagerLocalExecute: Mul", 4.6, 5.8), ("mul:Mul", 4.7, 5.7)
AFTER = ("EagerLocalExecute: RangeDataset", 7, 9.2), ("RangeDataset:RangeDataset", 7.1, 9.1)

# A call of 4 of 10 ms; the mark of the first lasts until the next batch, that of the third until 6 ms.
told[answer] = {
    "the body is what no function takes": lambda: six((0, 10), STEP, RUN).fact(LoopBody),
    "a body of steps without a function": lambda: six((0, 9)).fact(LoopBody),
}


def events(mark: tuple[float, float], *rows: Any) -> object:
    return six(mark, *rows).fact(PartEvents).by_part


told[events] = {
    # A call of 10 ms: 2 of conversion before the marker, and 6 in it of which 5 are in a product.
    "the innermost event gets its time": ((2, 8), ("step: 7", 0, 9), ("tf.constant", 0, 2), ("A::B: c", 3, 8)),
    "it is also found after an inner one ends": ((0, 9), ("outer", 1, 8), ("inner", 2, 3), ("inner", 5, 6)),
}


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 12)), max_size=12),
    st.tuples(st.integers(-1, 8), st.integers(9, 22)),
)
def test_the_innermost_events_are_those_of_a_walk(events: list[tuple[int, int]], window: tuple[int, int]) -> None:
    """Of a walk with a stack, whether events lie in each other or overlap otherwise."""
    events = sorted(events, key=lambda event: (event[0], -event[1]))
    starts, lengths = np.array(events, np.int64).reshape(-1, 2).T
    thread = Line("python", 1, TypeTable(), np.arange(len(events), dtype=np.int32), starts, lengths)
    first, last = window
    spans = [(kind, max(at, first), min(at + length, last)) for kind, (at, length) in enumerate(events)]
    times, stack = [0] * 12, list[tuple[int, int]]()
    for now in range(first, last):
        while stack and stack[-1][1] <= now:
            stack.pop()
        for kind, end in ((kind, end) for kind, start, end in spans if start == now < end):
            stack.append((kind, min(end, stack[-1][1] if stack else last)))
        if stack:
            times[stack[-1][0]] += 1
    (passed,) = own_ps(thread, [Intervals([window])])
    assert passed.tolist() == times[: len(passed)]
    assert not any(times[len(passed) :])


test_breakdown = told.test("breakdown")

test_what_is_not_known = unavailable(
    (lambda: traced(None).fact(TracingCost), "without tracing"), (lambda: chart(trace()).fact(PartEvents), "")
)

# Where Python was between the training calls, and what decides the arguments of the next one.

PATH = "/home/me/dqn.py"
CALL = "tensorflow.python.eager.polymorphic_function.Function.__call__"
FED = {"at": [PATH, 60], "function": "learn", "arguments": []}


def decides(*, reads: str = "ReadVariableOp", at: int = 50, **more: Any) -> bool:
    """Judge a loop that calls a function or a model on a line, and trains on line 60."""
    enters = {"calls": CALL, "runs": "tensorflow.execute.quick_execute", "inside": True, "makes": True}
    place = {"at": [PATH, at], "seen": 9, **enters, **more}
    graphs = [
        {"name": name, "operations": [graph_operation("x", kind)], **of}
        for name, kind, of in (
            ("act", reads, {}),
            ("learn", "ReadVariableOp", {}),
            ("learn_cond", "ReadVariableOp", {"outer": "learn"}),
            ("read", "ReadVariableOp", {"kind": "dataset"}),
        )
    ]
    program = {"python": {"places": [place], "fed": FED}, "graphs": graphs}
    return chart(trace([]), recording(program)).fact(StackSamples).models_at == {Location(PATH, at)}


def test_a_policy_s_actions_decide_what_is_in_a_batch() -> None:
    assert decides()
    assert decides(calls="keras.src.models.model.Model.predict", runs="", inside=False)
    # A function without variables prepares data; what makes no argument, and the training call, decide nothing.
    others = {"reads": "RandomUniform"}, {"makes": False}, {"at": 60}, {"calls": "numpy.stack"}
    assert [other for other in others if decides(**other)] == []


@cases((9, 0), (10, 10))
def test_what_a_line_does_beside_a_slow_call_makes_no_batch(own: int, made: int) -> None:
    """Samples between two frames of predict show the line itself, which has no code of its own."""
    at = Location(PATH, 50)
    places = (TimedLine(at, 9, makes=True, calls={"keras.Model.predict": 9}), TimedLine(at, own, makes=True))
    makers = StackSamples(places, new_arguments=((8,),)).makers
    assert sum(one.seen for one in makers) == made

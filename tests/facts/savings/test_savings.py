"""What effects save of the run: never a ms twice, never more than a phase takes."""

from tests.facts.kit import *
from tests.rules.test_hot_operation import one_group as group
from tfdoctor.facts.run.program import Shape
from tfdoctor.facts.savings.layer_work import frozen_reads, repeated, results_bytes, why_different

TIMES = {Phase.PREPARING: 20_000.0, Phase.STEPS: 60_000.0, Phase.BOUNDARIES: 10_000.0}
RUN_PARTS = {stage.value: 0.0 for stage in Stage} | {"device": 60.0, "host": 40.0, "unknown": 0.0}
HALF_STEP = Effect(Stage.DEVICE, scales=1 / 6)
"""Saves 50 of 100 ms."""

told = Told()


def steps(count: int = 600, window_share: float | None = 1.0, mean_ms: float = 100.0) -> RunSteps:
    return RunSteps(
        at=None, source="repeated-call", count=count, total_ms=count * mean_ms, mean_ms=mean_ms,
        median_ms=mean_ms, p10_ms=mean_ms, p90_ms=mean_ms, window_share=window_share,
    )  # fmt: skip


def model(of: RunSteps | None = None) -> RunModel:
    step = StepModel(device=DeviceKind.CPU, exposed=RUN_PARTS)
    return RunModel(RunPhases(total_ms=90_000.0, times=TIMES), of or steps(), step)


def effect(phase: Phase, of: float, subject: str = "", scales: float = 0.0) -> RunEffect:
    return RunEffect(phase=phase, of=ms(of), subject=subject, scales=scales)


EIGHT = effect(Phase.PREPARING, 8_000, "a.py:3")
WRITING, WRITTEN = Effect(Stage.DEVICE, 0.0, "writing", ms(50.0)), partial(effect, Phase.STEPS, subject="writing")
ANOTHER = effect(Phase.PREPARING, 6_000, "a.py:3")

test_what_effects_save_of_a_run = answers(
    lambda run, of_step, *of_run: run.saving_ms(of_step, of_run),
    # a cheaper step saves in each step of the run
    (model(), [Effect(Stage.DEVICE, scales=1 / 6)], 30_000.0),
    (model(steps(window_share=0.2)), [Effect(Stage.DEVICE, scales=1 / 6)], 6_000.0),  # steps unlike the traced ones
    (model(steps(1000, mean_ms=60.0)), [HALF_STEP], 30_000.0),  # their share, where a traced one takes 100 ms
    (model(steps(100, mean_ms=600.0)), [HALF_STEP], 5_000.0),  # slow ones no more than the model saves of each
    (model(), [Effect(Stage.DEVICE, scales=2.0)], -36_000.0),
    (RunModel(model().phases, None, None), [HALF_STEP], EIGHT, 8_000.0),  # without traced steps, in its phases
    # no time is counted twice
    (model(), [], EIGHT, ANOTHER, 8_000.0),  # about the same time
    (model(), [], EIGHT, ANOTHER, effect(Phase.PREPARING, 5_000, "a.py:9"), 13_000.0),
    (model(), [], effect(Phase.PREPARING, 20_000, scales=0.5), EIGHT, 14_000.0),  # a phase and its subject
    (model(), [HALF_STEP], effect(Phase.BOUNDARIES, 10_000), 40_000.0),
    (model(), [HALF_STEP], effect(Phase.STEPS, 60_000, "growing", scales=0.5), 45_000.0),
    (model(), [], effect(Phase.SAVING, 5_000), 0.0),  # a phase that the run does not have
    # The account of the same work is the least that steps save.
    # Trap: a file that grows is written in each step, and the traced ones are among the first.
    *((model(), [], WRITTEN(of), of) for of in (40_000.0, 20_000.0)),
    *((model(), [WRITING], WRITTEN(of), saved) for of, saved in ((40_000.0, 40_000.0), (20_000.0, 30_000.0))),
)


@cases((Bound.AT_MOST, True, 30_000), (Bound.AT_MOST, False, 5_000), (Bound.EXPECTED, True, 5_000))
def test_longer_waits_are_in_the_bound_of_less_waiting(bound: Bound, *, wait_longer: bool, saved: float) -> None:
    """100 steps of 600 ms; a traced one took 100 ms, half of them a wait for input."""
    parts = RUN_PARTS | {"input": 50.0, "device": 50.0, "host": 0.0}
    slow = replace(steps(100, mean_ms=600.0), wait_longer=wait_longer)
    run = RunModel(model().phases, slow, StepModel(device=DeviceKind.GPU, exposed=parts))
    assert run.saving_ms([Effect(Stage.INPUT, scales=0.0, bound=bound)], []) == pytest.approx(saved)


SUBJECTS = st.sampled_from(["", "a.py:1", "a.py:2", "f"])
RUN_EFFECTS = st.lists(
    st.builds(effect, st.sampled_from([*TIMES, Phase.SAVING]), st.floats(0, 100_000), SUBJECTS, st.floats(0, 1)),
    max_size=6,
)
EFFECTS = st.lists(st.builds(Effect, st.sampled_from([Stage.DEVICE, Stage.HOST]), st.floats(0, 1)), max_size=3)


@given(EFFECTS, RUN_EFFECTS, RUN_EFFECTS)
def test_more_effects_save_more_but_never_the_same_time_twice(of_step: Any, some: Any, others: Any) -> None:
    run = model()
    together = run.saving_ms(of_step, [*some, *others])
    first, second = run.saving_ms(of_step, some), run.saving_ms([], others)
    assert -1e-6 <= first <= together + 1e-6
    assert together <= first + second + 1e-6
    after = run.after_ms(of_step, [*some, *others])
    assert all(0 <= after[phase] <= time + 1e-6 for phase, time in TIMES.items())
    assert together == pytest.approx(sum(TIMES.values()) - sum(after.values()))


@given(EFFECTS, RUN_EFFECTS, st.permutations(range(6)))
def test_the_order_does_not_matter(of_step: list[Effect], some: list[RunEffect], order: list[int]) -> None:
    shuffled = [some[at] for at in order if at < len(some)]
    assert model().saving_ms(of_step, shuffled) == pytest.approx(model().saving_ms(of_step, some))


# The energy of boards and packages: counters between readings, idle power, and what a counter cannot tell.

S = 1_000_000_000
IDLE, BUSY = 90.0, 400.0
"""Watts of the board in these tests."""


def window(start: float, stop: float) -> Manifest:
    return Manifest(window=TracedWindow(started_unix_ns=int(start * S), stopped_unix_ns=int(stop * S)))


def board(at: float, joules: float | None, load: float = 0.0, index: int = 0, **more: Any) -> Any:
    gpu = {"index": index, "gpu_pct": load, **more}
    return {"unix_ns": int(at * S), "gpu": [gpu if joules is None else gpu | {"energy_j": joules}]}


def trained(*, load: float = 50.0, busy_w: float = BUSY) -> list[Any]:
    """Ten seconds idle, then ten seconds of training, with a reading each second."""
    idle = [board(100 + at, 5000 + IDLE * at) for at in range(10)]
    began = 5000 + IDLE * 10
    return idle + [board(110 + at, began + busy_w * at, load) for at in range(11)]


def meters(manifest: Manifest, *rows: Any) -> dict[EnergySource, EnergyMeter]:
    facts = chart(trace(), recording(manifest=manifest, samples=rows))
    return {meter.source: meter for meter in facts.fact(Energy).meters}


def boards(*rows: Any, start: float = 110, stop: float = 120) -> EnergyMeter:
    (meter,) = meters(window(start, stop), *rows).values()
    return meter


def with_second(joules: float | None, **more: Any) -> list[Any]:
    second = (board(100 + at, joules and joules * at, 100.0, index=1, **more) for at in range(21))
    return [*trained(), *second]


ANEW = [board(100 + at, 1000.0 if at < 5 else at) for at in range(11)]


def account(meter: EnergyMeter) -> object:
    return {**dict(stated(meter)), **fields(meter, "waiting_w busy_w")}


told[lambda rows, *span: account(boards(*rows, **dict(zip(("start", "stop"), span, strict=False))))] = {
    "power is what the counter gained while training": (trained(),),
    "also where it is not read then": (trained(), 112.5, 117.25),
    "the time without kernels takes at least idle power": (trained(load=75.0),),
    "a board that was never seen idle has no idle power": (trained()[10:],),
    "a board that the run may not use does not count": (with_second(1e6, visible=False),),
    "a board without a counter is mentioned": (with_second(None),),
    "two boards add up, and the second one was never idle": (with_second(100.0),),
}

test_without_a_counter_there_is_no_figure = unavailable(
    (lambda: meters(window(105, 115), *[board(100 + at, None, 75.0) for at in range(20)]), ""),
    (lambda: meters(window(105, 115), {"unix_ns": 1, "host": {}}), "no counter"),
    # Trap: twenty steps take half a second, and the counter is read once a second.
    (lambda: meters(window(110, 112.9), *trained()), "a longer run"),
    (lambda: meters(window(100, 110), *ANEW), ""),  # Trap: the driver was loaded anew meanwhile.
    # an accelerator's host launches ahead
    (lambda: DispatchShares.measure(Operations(ROWS), Device(DeviceKind.GPU, 1, 1)), ""),
)


@told
def packages_of_the_cpu_are_apart() -> object:
    watts = {"package-0": 30.0, "package-1": 20.0}
    rows = [
        {"unix_ns": (100 + at) * S, "package": [{"name": n, "energy_j": w * at} for n, w in watts.items()]}
        for at in range(21)
    ]
    return meters(window(110, 120), *trained(), *rows)


# The calls of layers.

X: Any = ["float32", [8, 4]]


def measured(*rows: dict[str, Any], **more: Any) -> LayerCalls:
    return of_graphs([{"kind": "function", "operations": list(rows)}], **more)


def of_graphs(graphs: list[Any], **more: Any) -> LayerCalls:
    program = chart(trace([]), recording({"graphs": graphs} | more)).fact(Program)
    ran = tuple(row for row in all_ran(program, 2.0) if row.type == "MatMul")
    return LayerCalls.measure(program, Operations(ran))


def called(found: LayerCalls) -> object:
    """The layers that are called twice or more, by the operations of their calls."""
    return found.layers


def scoped(name: str, kind: str = "MatMul") -> dict[str, Any]:
    return graph_operation(name, kind, [X, X], [X], layer="dense")


TWO = ("net/a/dense_1/MatMul", "net/b/dense_1/MatMul")
DENSE = {"name": "dense", "class": "Dense"}

told[lambda one, other, kind="MatMul", **more: called(measured(scoped(one), scoped(other, kind), **more))] = {
    # Trap: TensorFlow repeats the layer's scope for the loop's own operations.
    "a loop inside is no call": ("net/dense_1/MatMul", "net/dense_1/while/net/dense_1/while/MatMul"),
    "building a layer is no call": ("net/dense_1/MatMul", "net_1/build/dense/MatMul"),
    # Keras calls a recurrent layer's cell before the loop, for the shapes.
    "nor is one whose result nothing uses": ("net/while/dense_1/MatMul", "net/dense_2/Cast", "Cast"),
    "calls in two layers are of one": TWO,
}
told.add("layers that share a name", lambda: called(measured(*map(scoped, TWO), layers=[DENSE, DENSE])))


@told
def graphs_that_do_not_train_make_no_calls_of_the_step() -> object:
    step = [scoped("net/dense_1/MatMul"), graph_operation("gradient_tape/MatMul", "MatMul")]
    inner = {"name": "branch", "outer": "step", "operations": [scoped("cond/dense_2/MatMul")]}
    scratch = {"name": "scratch_graph", "operations": [scoped("dense_3/MatMul")]}
    return called(of_graphs([scratch, inner, {"name": "step", "outer": None, "operations": step}]))


# Operations by type and line, and the least time that the hardware needs for them.

GPU = Hardware(
    DeviceKind.GPU,
    "x",
    sixteen_bit=SixteenBit("float16", 0.5, Bound.AT_MOST, "an example"),
    peak_flop_s=100e12,
    bandwidth_bytes_s=1e12,
)
CPU = Hardware(DeviceKind.CPU, "x")
AT = Location("train.py", 7)


def groups(*rows: OperationTime, hardware: Hardware = GPU, program: Program | None = None) -> object:
    found = OperationGroups.measure(Operations(rows), hardware, program, None).groups
    return [fields(one, "type at layers loop loop_at ms calls each_ms least_ms attained missing") for one in found]


def timed(kind: str = "Mul", name: str = "x", **more: Any) -> OperationTime:
    return OperationTime(name=name, type=kind, **{"ms": 10.0, "nbytes": 1e9} | more)


STREAMS = timed("Sub", "s", ms=1.0)

test_the_loop_is_in_the_name = Names(__file__, "loops").test(loop_of)

LOOPED = Program(operations=(Operation(name="map/while", type="While", at=AT),))
BOUND = timed("Mul"), timed("Exp", "y"), timed("TopKV2", "z")

told[groups] = {
    "bytes count in 16 bits": matmul(ms=10.0, nbytes=1e9, flops=2e11),
    "FLOPs are those of 16 bits": matmul(ms=10.0, nbytes=1e9, flops=2e11, dtype="float16"),
    "more bytes than FLOPs": matmul(ms=10.0, nbytes=6e9, flops=2e11),
    "an operation without bytes": matmul(flops=1e9),
    "one without FLOPs": matmul(nbytes=1e9),
    "FLOPs of another type are unknown": matmul(nbytes=1e9, flops=1e9, dtype="float64"),
    "bytes bound what streams, and exponentials on a GPU, and no search": BOUND,
    "operations of a type and line are one group": [
        timed(name=f"{n}/Mul", ms=2.0, calls=4.0, nbytes=1e6, at=AT, layer=n) for n in ("a", "b")
    ],
}
told[lambda hardware, program, *rows: groups(*rows, hardware=hardware, program=program)] = {
    "the bandwidth of a CPU may be unknown": (CPU, None, matmul(nbytes=1e9, flops=1e9)),
    # Trap: a softmax on a CPU, whose exponentials take thirty times as long as its bytes.
    "on a CPU bytes do not bound exponentials": (CPU, None, *BOUND, STREAMS),
    "operations of a loops body get the loop's line": (GPU, LOOPED, timed(name="map/while/body/_1/map/while/Mul")),
}


UNSIZED = "shapes unknown"


def flat(shape: Shape, layer: str = "") -> OperationTime:
    tensors = (("float32", shape),)
    graph = Operation(name="Cumsum", type="Cumsum", inputs=tensors, outputs=tensors)
    ran = ("f/Cumsum:Cumsum",)
    return OperationTime(name="Cumsum", type="Cumsum", ms=1.0, ran=ran, nbytes=128.0, operation=graph, layer=layer)


@cases((flat((None, 8), "d"), ""), (flat((16,)), ""), (flat((None,), "d"), UNSIZED), (flat((None, 8)), UNSIZED))
def test_open_dimensions_are_the_batch_in_layers_only(row: OperationTime, missing: str) -> None:
    (group,) = OperationGroups.measure(Operations((replace(row, type="Sub"),)), GPU, None, None).groups
    assert group.missing == missing


# What depends on the examples alone: through frozen weights, and not through trained or random ones.

FLOAT = ("float32", (8, 4))


def op(name: str, kind: str, *sources: str, layer: str = "") -> Operation:
    return Operation(name=name, type=kind, outputs=(FLOAT,), sources=sources, layer=layer)


def graph(*more: Operation, before: str = "x", trainable: bool = False) -> Dataflow:
    """A base of one product on what ``before`` makes, and a trained product behind it."""
    operations = (
        op("x", "Placeholder"),
        op("w", "Placeholder", layer="base"),
        op("v", "Placeholder", layer="head"),
        op("resize", "ResizeBilinear", "x"),
        op("drop", "StatelessRandomUniformV2", "x"),
        op("base/read", "ReadVariableOp", "w", layer="base"),
        op("head/read", "ReadVariableOp", "v", layer="head"),
        op("head/first", "MatMul", "x", "head/read", layer="head"),
        op("base/mul", "MatMul", before, "base/read", layer="base"),
        op("base/relu", "Relu", "base/mul", layer="base"),
        op("head/mul", "MatMul", "base/relu", "head/read", layer="head"),
        op("sgd", "AssignSubVariableOp", "v", "head/mul"),
        *more,
    )
    layers = (
        Layer(name="base", kind="Dense", trainable=trainable),
        Layer(name="head", kind="Dense", trainable=True),
    )
    return Dataflow(Program(operations, layers))


def same(found: Dataflow) -> frozenset[str]:
    return repeated(found, frozen_reads(found))


told[lambda found: (same(found), frozen_reads(found), results_bytes(found, same(found)))] = {
    "the frozen part and what prepares its input": graph(before="resize"),
    "what random numbers prepare is not frozen": graph(before="drop"),
    # Trap: a perceptual loss on what a trained network makes.
    "nor what a trained network makes": graph(before="head/first"),
    # Trap: the discriminator in the generator's step trains in a step of its own.
    "nor a base that is trained elsewhere": graph(trainable=True),
    # Trap: a teacher that is a moving average of the student.
    "nor a base that something assigns": graph(op("ema", "AssignVariableOp", "w", "base/relu")),
    "what an opaque call makes is not known": graph(op("call", "StatefulPartitionedCall", "base/relu")),
}


def flipped(*kinds: str, cardinality: int | None = 100) -> str:
    """Return why examples differ in a pipeline of these stages, from the source; a Map flips at random."""
    drawn: dict[str, Any] = {"function": "flip", "types": frozenset(["RandomUniform"]), "stateful": frozenset()}
    chain = [
        Dataset(id=at, kind=f"_{kind}Dataset", inputs=(at - 1,) if at else (), cardinality=cardinality, **more)
        for at, (kind, more) in enumerate((kind, drawn if kind == "Map" else {}) for kind in kinds)
    ]
    return why_different(DatasetProperties(tuple(reversed(chain)), 4.0))


told[lambda kinds, cardinality=100: flipped(*kinds.split(), cardinality=cardinality)] = {
    "a cache after random draws keeps them": "TensorSlice Map Cache",
    "also before a shuffle": "TensorSlice Map Cache Shuffle",
    "and before a repeat": "TensorSlice Map Cache Repeat",
    "draws without a cache differ": "TensorSlice Map",
    "draws after a cache differ": "TensorSlice Cache Map",
    "a cache after an endless repeat is never complete": ("TensorSlice Map Repeat Cache", -1),
}

# The time to dispatch operations: what general rules may count, and what goes with those that are removed.

ROWS: tuple[OperationTime, ...] = (
    OperationTime(name="large", type="Mul", ms=6.0, calls=1.0),
    OperationTime(name="small", type="Add", ms=2.0, calls=9.0),
)


def device_effect(name: str, of: float, scales: float = 0.0, bound: Bound = Bound.EXPECTED) -> Effect:
    return Effect(Stage.DEVICE, scales, name, ms(of), bound=bound)


DISPATCH = DispatchShares.measure(Operations(ROWS), Device(DeviceKind.CPU, 1, 1))
HOST_BOUND = StepModel(
    device=DeviceKind.CPU,
    exposed=dict.fromkeys(map(str, PARTS), 0.0) | {"device": 8.0, "host": 4.0, "between": 1.0},
    dispatch=DISPATCH,
)

# Faster operations are started as before; an upper bound also counts how many there are.
test_the_hosts_work_goes_with_operations_that_are_removed = answers(
    lambda *effects: DISPATCH.left(effects),
    (1.0,),
    (device_effect("large", 6.0), 0.25),
    (device_effect("large", 6.0), device_effect("small", 2.0), 0.0),
    (device_effect("large", 6.0, 0.05), 1.0 - 0.95 * 0.75),
    (device_effect("large", 6.0, 0.06), 1.0),
    (device_effect("small", 2.0), 0.75),
    (device_effect("small", 2.0, bound=Bound.AT_MOST), 0.1),
    (device_effect("large", 6.0, 0.5, Bound.AT_MOST), 1.0 - 0.5 * 0.75),
    (device_effect("a group of them", 4.0), 0.5),
    (device_effect(StepWork.CONVERSION, 4.0), 1.0),
    (device_effect("", 8.0), 1.0),
)

LARGE = device_effect("large", 6.0)
SHORTER = device_effect("large", 6.0, 0.5, Bound.AT_MOST)
STARTS_LESS = Effect(Stage.HOST, 0.5, StepWork.SCHEDULING, ms(2.0), bound=Bound.AT_MOST)

test_the_step_model_takes_it_from_the_host = answers(
    lambda *effects: HOST_BOUND.saving(effects),
    (LARGE, 6.0 + 3.0),
    (Effect(Stage.HOST, 0.5), LARGE, 6.0 + 3.5),
    # Operations on shorter sequences: the loop over time starts fewer, and calling the step stays.
    (replace(STARTS_LESS, narrows=True), SHORTER, 3.0 + 1.0),
    (STARTS_LESS, SHORTER, 3.0 + 1.0 + 0.375 * 3.0),
)

TEN_CALLS = group(calls=10.0)


@cases(
    (9.0, frozenset(), 5.0),
    (2.0, frozenset(), 2.0),  # what other rules explain is none of theirs
    (9.0, frozenset({StepWork.LAUNCHING}), 0.0),
)
def test_only_what_is_unexplained_counts(left_ms: float, subjects: frozenset[str], counted_ms: float) -> None:
    dispatch = Dispatch(in_loops_ms=9.0, outside_ms=0.5)
    limited = dispatch.at_most([TEN_CALLS], Unexplained({Stage.HOST: left_ms}, subjects))
    assert limited.of_group(TEN_CALLS) == pytest.approx(counted_ms)


test_savings = told.test("savings")

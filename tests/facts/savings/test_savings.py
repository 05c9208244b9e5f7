"""What effects save of the run: never a ms twice, never more than a phase takes."""

from tests.builders import all_ran
from tests.facts.kit import *
from tests.rules.test_hot_operation import one_group as group
from tfdoctor.facts.run.program import Shape
from tfdoctor.facts.savings.layer_work import frozen_reads, repeated, results_bytes, why_different
from tfdoctor.facts.savings.operation_groups import loop_of

TIMES = {Phase.PREPARING: 20_000.0, Phase.STEPS: 60_000.0, Phase.BOUNDARIES: 10_000.0}
RUN_PARTS = {stage.value: 0.0 for stage in Stage} | {"device": 60.0, "host": 40.0, "unknown": 0.0}
HALF_STEP = Effect(Stage.DEVICE, scales=1 / 6)
"""Saves 50 of 100 ms."""


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


@cases(
    (model(), 1 / 6, 30_000),
    (model(steps(window_share=0.2)), 1 / 6, 6_000),  # steps unlike the traced ones save nothing
    (model(steps(1000, mean_ms=60.0)), 1 / 6, 30_000),  # their share, where a traced one takes 100 ms
    (model(steps(100, mean_ms=600.0)), 1 / 6, 5_000),  # slow ones no more than the model saves of each
    (model(), 2.0, -36_000),
)
def test_a_cheaper_step_saves_in_each_step_of_the_run(run: RunModel, scales: float, saved: float) -> None:
    assert run.saving_ms([Effect(Stage.DEVICE, scales=scales)], []) == pytest.approx(saved)


EIGHT = effect(Phase.PREPARING, 8_000, "a.py:3")


@cases(
    ([], [EIGHT, effect(Phase.PREPARING, 6_000, "a.py:3")], 8_000),  # about the same time
    ([], [EIGHT, effect(Phase.PREPARING, 6_000, "a.py:3"), effect(Phase.PREPARING, 5_000, "a.py:9")], 13_000),
    ([], [effect(Phase.PREPARING, 20_000, scales=0.5), EIGHT], 10_000 + 4_000),  # a phase and its subject
    ([HALF_STEP], [effect(Phase.BOUNDARIES, 10_000)], 40_000),
    ([HALF_STEP], [effect(Phase.STEPS, 60_000, "growing", scales=0.5)], 45_000),
    ([], [effect(Phase.SAVING, 5_000)], 0),  # a phase that the run does not have
)
def test_no_time_is_counted_twice(of_step: list[Effect], of_run: list[RunEffect], saved: float) -> None:
    assert model().saving_ms(of_step, of_run) == pytest.approx(saved)


@cases((40_000.0, 40_000.0), (20_000.0, 30_000.0))
def test_the_account_of_the_same_work_is_the_least_that_steps_save(account_ms: float, saved: float) -> None:
    """Trap: a file that grows is written in each step, and the traced ones are among the first."""
    written = Effect(Stage.DEVICE, 0.0, "writing", ms(50.0))
    run = effect(Phase.STEPS, account_ms, "writing")
    assert model().saving_ms([written], [run]) == pytest.approx(saved)
    assert model().saving_ms([], [run]) == pytest.approx(account_ms)


@cases((Bound.AT_MOST, True, 30_000), (Bound.AT_MOST, False, 5_000), (Bound.EXPECTED, True, 5_000))
def test_longer_waits_are_in_the_bound_of_less_waiting(bound: Bound, *, wait_longer: bool, saved: float) -> None:
    """100 steps of 600 ms; a traced one took 100 ms, half of them a wait for input."""
    parts = RUN_PARTS | {"input": 50.0, "device": 50.0, "host": 0.0}
    step = StepModel(device=DeviceKind.GPU, exposed=parts)
    slow = replace(steps(100, mean_ms=600.0), wait_longer=wait_longer)
    run = RunModel(RunPhases(total_ms=90_000.0, times=TIMES), slow, step)
    effect = Effect(Stage.INPUT, scales=0.0, bound=bound)
    assert run.saving_ms([effect], []) == pytest.approx(saved)


def test_a_run_without_traced_steps_saves_in_its_phases() -> None:
    run = RunModel(RunPhases(total_ms=90_000.0, times=TIMES), None, None)
    assert run.saving_ms([HALF_STEP], [effect(Phase.PREPARING, 8_000, "a.py:3")]) == 8_000


RUN_EFFECTS = st.lists(
    st.builds(
        effect,
        st.sampled_from([*TIMES, Phase.SAVING]),
        st.floats(0, 100_000),
        st.sampled_from(["", "a.py:1", "a.py:2", "f"]),
        st.floats(0, 1),
    ),
    max_size=6,
)
EFFECTS = st.lists(st.builds(Effect, st.sampled_from([Stage.DEVICE, Stage.HOST]), st.floats(0, 1)), max_size=3)


@given(EFFECTS, RUN_EFFECTS, RUN_EFFECTS)
def test_more_effects_save_more_but_never_the_same_time_twice(
    of_step: list[Effect], some: list[RunEffect], others: list[RunEffect]
) -> None:
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
    assert meter.source == EnergySource.GPU
    return meter


def test_power_is_what_the_counter_gained_while_training() -> None:
    meter = boards(*trained())
    assert (meter.devices, meter.without) == (1, 0)
    assert (meter.power_w, meter.seconds, meter.run_j) == pytest.approx((BUSY, 10, IDLE * 10 + BUSY * 10))
    assert boards(*trained(), start=112.5, stop=117.25).power_w == pytest.approx(BUSY)  # not at readings


def test_the_time_without_kernels_takes_at_least_idle_power() -> None:
    meter = boards(*trained(load=75.0))
    figures = meter.idle_w, meter.busy, meter.waiting_w, meter.busy_w
    assert figures == pytest.approx((IDLE, 0.75, 0.25 * IDLE, (BUSY - 0.25 * IDLE) / 0.75))
    unseen = boards(*trained()[10:])
    assert (unseen.idle_w, unseen.waiting_w, unseen.busy_w) == (None, None, None)


ANEW = [board(100 + at, 1000.0 if at < 5 else at) for at in range(11)]

test_without_a_counter_there_is_no_figure = unavailable(
    (lambda: meters(window(105, 115), *[board(100 + at, None, 75.0) for at in range(20)]), ""),
    (lambda: meters(window(105, 115), {"unix_ns": 1, "host": {}}), "no counter"),
    # Trap: twenty steps take half a second, and the counter is read once a second.
    (lambda: meters(window(110, 112.9), *trained()), "a longer run"),
    (lambda: meters(window(100, 110), *ANEW), ""),  # Trap: the driver was loaded anew meanwhile.
    # an accelerator's host launches ahead
    (lambda: DispatchShares.measure(Operations(ROWS), Device(DeviceKind.GPU, 1, 1)), ""),
)


@cases(
    (1e6, {"visible": False}, 1, 0, BUSY),  # the run may not use it
    (None, {}, 1, 1, BUSY),  # it has no counter
    (100.0, {}, 2, 0, BUSY + 100),
)
def test_two_boards_add_up(joules: float | None, more: Any, devices: int, without: int, power: float) -> None:
    second = [board(100 + at, joules and joules * at, 100.0, index=1, **more) for at in range(21)]
    meter = boards(*trained(), *second)
    assert (meter.devices, meter.without) == (devices, without)
    assert meter.power_w == pytest.approx(power)
    assert (meter.idle_w is None) == (devices == 2)  # the second one was never idle


def test_packages_of_the_cpu_are_apart() -> None:
    watts = {"package-0": 30.0, "package-1": 20.0}
    rows = [
        {"unix_ns": (100 + at) * S, "package": [{"name": n, "energy_j": w * at} for n, w in watts.items()]}
        for at in range(21)
    ]
    found = meters(window(110, 120), *trained(), *rows)
    cpu = found[EnergySource.CPU]
    assert (cpu.devices, cpu.power_w) == pytest.approx((2, 50.0))
    assert (cpu.idle_w, cpu.busy) == (None, None)
    assert found[EnergySource.GPU].power_w == pytest.approx(BUSY)


# The calls of layers: which line makes them, and which compute the same.

X: Any = ["float32", [8, 4]]


def measured(*rows: dict[str, Any], **more: Any) -> LayerCalls:
    return of_graphs([{"kind": "function", "operations": list(rows)}], **more)


def of_graphs(graphs: list[Any], **more: Any) -> LayerCalls:
    program = chart(trace([]), recording({"graphs": graphs} | more)).fact(Program)
    ran = tuple(row for row in all_ran(program, 2.0) if row.type == "MatMul")
    return LayerCalls.measure(program, Operations(ran))


def start() -> list[dict[str, Any]]:
    """The batch, the variable, and a value of the batch at place 2."""
    batch, kernel = (graph_operation(name, "Placeholder", [], [X], computes="p") for name in ("batch", "kernel"))
    return [batch, kernel, graph_operation("value", "Sin", [X], [X], computes="sin", **{"from": [0]})]


def call(number: int, source: int, read: str = "read", shift: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Two operations of the layer: the variable's value and a product."""
    name = f"net_{number}/dense_{number}"
    of = {"at": ["train.py", 22], "by": ["train.py", 30 + number], "layer": "dense"}
    product = {"computes": "mm", "from": [source, 3 + 2 * number + shift], **of, **more}
    return [
        graph_operation(f"{name}/Read", "ReadVariableOp", [X], [X], computes=read, **of, **{"from": [1]}),
        graph_operation(f"{name}/MatMul", "MatMul", [X, X], [X], **product),
    ]


def test_calls_have_their_lines_and_their_callers() -> None:
    (layer,) = measured(*start(), *call(0, 2), *call(1, 0)).layers
    made, callers = Location("train.py", 22), (Location("train.py", 30), Location("train.py", 31))
    assert [(call.at, call.by) for call in layer.calls] == [(made, by) for by in callers]
    assert not layer.equal


def test_calls_on_the_same_value_are_equal() -> None:
    (layer,) = measured(*start(), *call(0, 2), *call(1, 2)).layers
    assert [one.scope for one in layer.repeated] == ["net_1/dense_1"]
    assert layer.repeated_ms == pytest.approx(2.0)


@each(
    call(1, 0),  # another tensor
    call(1, 2, ports=[1, 0]),  # another result of the same operation
    call(1, 2, read=""),  # a recording without attributes, or an operation whose results differ
)
def test_other_inputs_are_not_equal(second: list[dict[str, Any]]) -> None:
    (layer,) = measured(*start(), *call(0, 2), *second).layers
    assert not layer.equal


def test_a_variable_that_is_written_in_between_has_another_value() -> None:
    write = graph_operation("write", "AssignVariableOp", [X, X], [], computes="", **{"from": [1, 0]})
    (layer,) = measured(*start(), *call(0, 2), write, *call(1, 2, shift=1)).layers
    assert not layer.equal


def test_equal_values_of_different_operations_are_equal_inputs() -> None:
    """A helper that concatenates its arguments makes another operation in each call."""
    again = graph_operation("again", "Sin", [X], [X], computes="sin", **{"from": [0]})
    (layer,) = measured(*start(), *call(0, 2), again, *call(1, 5, shift=1)).layers
    assert layer.equal


def test_one_call_and_its_gradient_are_no_calls_of_interest() -> None:
    gradient = graph_operation("gradient_tape/net_0/dense_0/MatMul", "MatMul", layer="dense")
    assert not measured(*start(), *call(0, 2), gradient).layers


def scoped(name: str, kind: str = "MatMul") -> dict[str, Any]:
    return graph_operation(name, kind, [X, X], [X], layer="dense")


@each(
    # Trap: TensorFlow repeats the layer's scope for the loop's own operations.
    [scoped("net/dense_1/MatMul"), scoped("net/dense_1/while/net/dense_1/while/MatMul")],
    [scoped("net/dense_1/MatMul"), scoped("net_1/build/dense/MatMul")],  # building a layer
    # Keras calls a recurrent layer's cell before the loop, for the shapes: nothing uses the result.
    [scoped("net/while/dense_1/MatMul"), scoped("net/dense_2/Cast", "Cast")],
    ids=["a loop inside", "building", "unused"],
)
def test_what_is_no_call(rows: list[dict[str, Any]]) -> None:
    assert measured(*rows).layers == ()


def test_graphs_that_do_not_train_make_no_calls_of_the_step() -> None:
    step = [scoped("net/dense_1/MatMul"), graph_operation("gradient_tape/MatMul", "MatMul")]
    inner = {"name": "branch", "outer": "step", "operations": [scoped("cond/dense_2/MatMul")]}
    scratch = {"name": "scratch_graph", "operations": [scoped("dense_3/MatMul")]}
    graphs = [scratch, inner, {"name": "step", "outer": None, "operations": step}]
    (layer,) = of_graphs(graphs).layers
    assert [call.scope for call in layer.calls] == ["net/dense_1", "cond/dense_2"]


def test_layers_that_share_their_name_are_not_one() -> None:
    rows = scoped("net/a/dense_1/MatMul"), scoped("net/b/dense_1/MatMul")
    assert len(measured(*rows).layers) == 1
    layers = [{"name": "dense", "class": "Dense"}] * 2
    assert measured(*rows, layers=layers).layers == ()


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


def groups(
    *rows: OperationTime,
    hardware: Hardware = GPU,
    program: Program | None = None,
    results: AllocatedResults | None = None,
) -> tuple[OperationGroup, ...]:
    found = OperationGroups.measure(Operations(rows), hardware, program, results or AllocatedResults(), None)
    return found.groups


@cases((1e9, "float32", 4.0), (1e9, "float16", 2.0), (6e9, "float32", 6.0))
def test_bytes_and_flops_count_in_the_type_that_runs(nbytes: float, dtype: str, least_ms: float) -> None:
    (one,) = groups(matmul(ms=10.0, nbytes=nbytes, flops=2e11, dtype=dtype))
    assert one.least_ms == pytest.approx(least_ms)
    assert one.attained == pytest.approx(least_ms / 10)


@cases(
    (matmul(flops=1e9), GPU, "shapes unknown"),
    (matmul(nbytes=1e9), GPU, "FLOPs unknown"),
    (matmul(nbytes=1e9, flops=1e9), CPU, "memory bandwidth unknown"),
    (matmul(nbytes=1e9, flops=1e9, dtype="float64"), GPU, "FLOPs unknown"),
)
def test_what_is_not_known_is_said(row: OperationTime, hardware: Hardware, missing: str) -> None:
    (one,) = groups(row, hardware=hardware)
    assert (one.least_ms, one.attained, one.missing) == (None, None, missing)


@cases(("Mul", True, True), ("Exp", False, True), ("TopKV2", False, False))
def test_bytes_bound_what_streams(kind: str, *, cpu: bool, gpu: bool) -> None:
    """Trap: a softmax on a CPU, whose exponentials take thirty times as long as its bytes."""
    row = OperationTime(name="x", type=kind, ms=10.0, nbytes=1e9)
    streams = OperationTime(name="s", type="Sub", ms=1.0, nbytes=1e9)
    for hardware, known in ((CPU, cpu), (GPU, gpu)):
        one, _ = groups(row, streams, hardware=hardware)
        assert (one.attained is not None) is known
        assert known or one.missing == "its bytes do not bound its time"


def test_operations_of_a_type_and_line_are_one_group() -> None:
    rows = [
        OperationTime(name=f"{n}/Mul", type="Mul", ms=2.0, calls=4.0, nbytes=1e6, at=AT, layer=n)
        for n in ("a", "b")
    ]
    (one,) = groups(*rows)
    assert (one.ms, one.calls, one.each_ms, one.layers) == (4.0, 8.0, 0.5, ("a", "b"))


@cases(
    ("map/while/body/_1/map/while/Mul", "map/while"),
    ("gradient_tape/map/while_2/map/while_grad/body/_6/Mul", "map/while_2"),
    ("meanwhile/Mul", ""),
    ("dense/MatMul", ""),
)
def test_the_loop_is_in_the_name(name: str, loop: str) -> None:
    assert loop_of(name) == loop


def test_operations_of_a_loop_s_body_get_the_line_of_the_loop() -> None:
    program = Program(operations=(Operation(name="map/while", type="While", at=AT),))
    row = OperationTime(name="map/while/body/_1/map/while/Mul", type="Mul", ms=1.0)
    (one,) = groups(row, program=program)
    assert (one.at, one.loop, one.loop_at) == (AT, "map/while", AT)


def flat(shape: Shape, layer: str = "") -> OperationTime:
    tensors = (("float32", shape),)
    graph = Operation(name="Cumsum", type="Cumsum", inputs=tensors, outputs=tensors)
    ran = ("f/Cumsum:Cumsum",)
    return OperationTime(name="Cumsum", type="Cumsum", ms=1.0, ran=ran, nbytes=128.0, operation=graph, layer=layer)


@cases((flat((None, 8), "d"), 128.0), (flat((16,)), 128.0), (flat((None,), "d"), None), (flat((None, 8)), None))
def test_open_dimensions_are_the_batch_in_layers_only(row: OperationTime, nbytes: float | None) -> None:
    assert AllocatedResults().sized(row).nbytes == nbytes


def test_allocations_show_the_bytes_of_open_shapes() -> None:
    stats = {"tf_op": "f/Cumsum", "shape": "[131072]", "data_type": 1, "requested_bytes": 524288}
    rows = [("MemoryAllocation", float(n), float(n), stats) for n in range(3)]
    results = chart(trace(host=[line("tf_Compute", *rows)])).fact(AllocatedResults)
    assert results.sized(flat((None,))).nbytes == 2 * 524288


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


def test_the_frozen_part_and_what_prepares_its_input() -> None:
    found = graph(before="resize")
    names = same(found)
    assert {"resize", "base/mul", "base/relu"} <= names
    assert not {"head/mul", "head/first", "sgd", "x"} & names
    assert results_bytes(found, names) == 8 * 4 * 4


def test_what_is_not_frozen() -> None:
    for before in ("drop", "head/first"):  # Trap: a perceptual loss on what a trained network makes.
        assert not {"base/mul", "base/relu"} & same(graph(before=before))
    # Trap: the discriminator in the generator's step trains in a step of its own.
    assert not frozen_reads(graph(trainable=True))
    # Trap: a teacher that is a moving average of the student.
    assert not frozen_reads(graph(op("ema", "AssignVariableOp", "w", "base/relu")))
    assert "call" not in same(graph(op("call", "StatefulPartitionedCall", "base/relu")))  # opaque


def flipped(*kinds: str, cardinality: int | None = 100) -> str:
    """Return why examples differ in a pipeline of these stages, from the source; a Map flips at random."""
    drawn: dict[str, Any] = {"function": "flip", "types": frozenset(["RandomUniform"]), "stateful": frozenset()}
    chain = [
        Dataset(id=at, kind=f"_{kind}Dataset", inputs=(at - 1,) if at else (), cardinality=cardinality, **more)
        for at, (kind, more) in enumerate((kind, drawn if kind == "Map" else {}) for kind in kinds)
    ]
    return why_different(DatasetProperties(tuple(reversed(chain)), 4.0))


@each((), ("Shuffle",), ("Repeat",))
def test_a_cache_after_random_draws_keeps_them(more: tuple[str, ...]) -> None:
    why = flipped("TensorSlice", "Map", "Cache", *more)
    assert "in each pass" in why
    assert "only cache() after it" in why


@cases(
    (("TensorSlice", "Map"), 100),
    (("TensorSlice", "Cache", "Map"), 100),
    (("TensorSlice", "Map", "Repeat", "Cache"), -1),  # Trap: a cache after an endless repeat() is never complete.
)
def test_draws_that_no_cache_keeps_differ(kinds: tuple[str, ...], cardinality: int) -> None:
    why = flipped(*kinds, cardinality=cardinality)
    assert why == "flip in the pipeline draws random numbers in each pass"


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


@cases(
    ((), 1.0),
    ((device_effect("large", 6.0),), 0.25),
    ((device_effect("large", 6.0), device_effect("small", 2.0)), 0.0),
    ((device_effect("large", 6.0, 0.05),), 1.0 - 0.95 * 0.75),
    ((device_effect("large", 6.0, 0.06),), 1.0),
    ((device_effect("small", 2.0),), 0.75),
    ((device_effect("small", 2.0, bound=Bound.AT_MOST),), 0.1),
    ((device_effect("large", 6.0, 0.5, Bound.AT_MOST),), 1.0 - 0.5 * 0.75),
    ((device_effect("a group of them", 4.0),), 0.5),
    ((device_effect(StepWork.LOOP_BODY, 4.0),), 1.0),
    ((device_effect("", 8.0),), 1.0),
)
def test_the_hosts_work_goes_with_operations_that_are_removed(effects: tuple[Effect, ...], share: float) -> None:
    """Faster operations are started as before; an upper bound also counts how many there are."""
    assert DISPATCH.left(effects) == pytest.approx(share)


def test_the_step_model_takes_it_from_the_host() -> None:
    removed = device_effect("large", 6.0)
    assert HOST_BOUND.saving([removed]) == pytest.approx(6.0 + 3.0)
    assert HOST_BOUND.saving([Effect(Stage.HOST, 0.5), removed]) == pytest.approx(6.0 + 3.5)


def test_an_effect_that_states_what_the_host_starts_less_counts_once() -> None:
    """Operations on shorter sequences: the loop over time starts fewer, and calling the step stays."""
    host = Effect(Stage.HOST, 0.5, StepWork.SCHEDULING, ms(2.0), bound=Bound.AT_MOST)
    work = device_effect("large", 6.0, 0.5, Bound.AT_MOST)
    assert HOST_BOUND.saving([replace(host, narrows=True), work]) == pytest.approx(3.0 + 1.0)
    assert HOST_BOUND.saving([host, work]) == pytest.approx(3.0 + 1.0 + 0.375 * 3.0)


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

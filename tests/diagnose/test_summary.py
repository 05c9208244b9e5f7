"""What a report shows beside the verdicts."""

from tests.builders import chart, device
from tests.diagnose.kit import *
from tfdoctor.diagnose.summary import run

EMPTY = chart(trace([]))


def on_cpu(*, record: Any = None, samples: Any = (), beside: Manifest | None = None) -> Chart:
    """Four steps of 100 ms: 40 ms of waiting for a map, 50 ms of compute."""
    get_next, made, work = [], [], []
    for at in range(0, 400, 100):
        get_next += [
            wait(at, at + 40),
            iterator("Root", at, at + 40, 1),
            iterator("Root::Prefetch", at, at + 39.95, 2, 1, name="inject/prefetch_Map/_3"),
        ]
        made += [
            iterator("Root::Prefetch::Map", at, at + 90, 3, 2, name="MapDataset:1"),
            iterator("Root::Prefetch::Map::Zip", at, at + 10, 4, 3),
            iterator("Root::Prefetch::Map::Zip[0]::Range", at, at + 5, 5, 4),
        ]
        work += [
            executor(at + 40, at + 90),
            ("m/c/Conv2D:_MklNativeConv2D", at + 40, at + 80),
            ("m/c/BiasAdd:BiasAdd", at + 80, at + 85),
            ("m/d/MatMul:MatMul", at + 85, at + 90),
        ]
    lanes = [
        markers(4, 100, call=95),
        line("tf_data_iterator_get_next/1", *get_next),
        line("tf_data_iterator_resource/1", *made),
        line("tf_Compute/1", *work),
    ]
    return chart(trace(lanes), recording(record, samples, manifest=beside or manifest()))


SHAPES = [["float32", [None, 28, 28, 3]], ["float32", [3, 3, 3, 8]]]
OPERATIONS = [
    graph_operation("m/c/Conv2D", "Conv2D", SHAPES, layer="c", at=["/home/me/train.py", 7]),
    graph_operation("m/c/BiasAdd", "BiasAdd", layer="c"),
    graph_operation("m/d/MatMul", "MatMul", layer="d"),
]
DATASET = {
    "id": 1,
    "class": "_MapDataset",
    "trace_name": "MapDataset:1",
    "function": {"name": "decode", "at": ["/home/me/train.py", 2]},
    "at": ["/home/me/train.py", 5],
}
RECORD = {
    "graphs": [{"operations": OPERATIONS}],
    "datasets": [DATASET],
    "feeds": 1,
    "run": {"policy": "float32", "jit_compile": False, "batch_size": 32, "strategy": None},
}


def failing(kind: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """Let one fact fail to be measured."""

    def instead(function: Callable[..., Any]) -> Any:
        if function == kind.measure:
            raise ZeroDivisionError
        return call(function)

    return instead


def test_the_subject_is_what_was_run_and_where() -> None:
    beside = manifest(
        command=("python", "train.py"), versions={"tensorflow": "2.21.0", "cuda": None}, outcome=Ending(exit_code=3)
    )
    gpu = v100(line("Stream #1", ("k", 0, 1)))
    found = run.subject(chart(trace([], gpus=[gpu, v100()]), recording(manifest=beside)), "t")
    assert (found.title, found.command, found.exit_code) == ("t", ("python", "train.py"), 3)
    assert (found.device, found.device_name) == ("GPU", "Tesla V100-SXM2-16GB")
    assert (found.devices_used, found.devices_visible) == (1, 2)
    assert (found.framework, found.hosts) == ({"tensorflow": "2.21.0"}, ("vm",))
    bare = run.subject(EMPTY, "t")
    assert (bare.command, bare.exit_code, bare.framework) == ((), None, {})


def test_the_steps_and_what_they_went_to() -> None:
    found = run.steps(on_cpu())
    assert (found.source, found.count, found.median_ms, found.between_ms) == ("markers", 4, 100, near(5))
    parts = {part: round(ms, 6) for part, ms in sure(found.breakdown_ms).items()}
    assert parts == dict.fromkeys(PARTS, 0) | {"input": 40, "host": 5, "device": 50, "between": 5}
    assert [(row.number, row.steady) for row in found.rows] == [(at, True) for at in range(4)]
    assert all(sum(row.parts_ms.values()) == pytest.approx(row.total_ms) for row in found.rows)
    none = run.steps(EMPTY)
    assert (none.source, none.rows, "tfdoctor profile" in none.missing) == ("none", (), True)


def test_the_pipeline_is_listed_from_the_consumer_to_the_source_as_it_was_written() -> None:
    found = run.pipeline(on_cpu(record=RECORD))
    assert [(stage.name, stage.parent, stage.critical, round(stage.self_ms, 6)) for stage in found] == [
        ("Root", None, False, 0.05),
        ("Prefetch", 0, False, 0),
        ("Map", 1, True, 80),
        ("Zip", 2, True, 5),
        ("Range", 3, True, 5),
    ]
    _, prefetch, mapped, _, source = found
    assert (mapped.written, mapped.at) == (".map(decode)", Location("train.py", 5))
    assert (source.written, prefetch.note) == ("", "added by tf.data")


def test_an_empty_trace_has_nothing_to_list() -> None:
    assert (run.pipeline(EMPTY), run.operations(EMPTY), run.model(EMPTY)) == ((), (), ())
    assert EMPTY.why_missing(InputPipeline)


def test_operations_are_grouped_by_layer_and_type_the_heaviest_first() -> None:
    found = run.operations(on_cpu(record=RECORD))
    assert [(row.layer, row.operation) for row in found] == [("c", "Conv2D"), ("c", "BiasAdd"), ("d", "MatMul")]
    assert [row.self_ms for row in found] == pytest.approx([40, 5, 5])
    assert [row.share for row in found] == pytest.approx([0.4, 0.05, 0.05])
    assert found[0].at == Location("train.py", 7)
    assert found[0].detail == "float32[?,28,28,3] x float32[3,3,3,8]"


def test_every_number_of_the_model_is_shown() -> None:
    samples = [{"unix_ns": 1, "host": {"run_cpu_pct": 300.0}}]
    shown = {m.label: m.value.value for m in run.model(on_cpu(samples=samples))}
    expected = {
        "measured step (median)": 100,
        "input wait, not overlapped": 40,
        "device, not overlapped": 50,
        "input work, overlapped: Map > Zip > Range": 90,
        "input work before the step: Root": 0.05,
        "share of busy cores": 0.75,
    }
    assert {label: shown[label] for label in expected} == pytest.approx(expected)
    assert not {"launch work on the host", "transfer, not overlapped"} & shown.keys()
    gpu = v100(line("Stream #1", ("k", 0, 5)))
    on_gpu = [m.label for m in run.model(chart(trace([markers(4, 10)], gpus=[gpu])))]
    assert "launch work on the host" in on_gpu


def test_the_machine_and_the_settings_of_the_run() -> None:
    rows = dict(machine.machine(on_cpu(record=RECORD, beside=manifest(versions={"python": "3.11"}))))
    assert rows.items() >= {
        ("device", "AMD EPYC"),
        ("matrix unit", "AVX512-BF16"),
        ("usable cores", "4 of 4"),
        ("precision policy", "float32"),
        ("jit_compile", "False"),
        ("batch size", "32"),
        ("Python", "3.11"),
        ("distribution strategy", ""),
    }


def test_what_was_sampled() -> None:
    samples = [{"unix_ns": 1, "host": {"run_cpu_pct": 150.0}, "gpu": [{"gpu_pct": 40}]}]
    shown = {m.label: m.value.value for m in machine.samples(on_cpu(samples=samples))}
    assert shown == {"cores used by the run": 1.5, "GPU utilization (NVML)": 0.4}
    assert machine.samples(EMPTY) == ()


# What is missing, and how far to trust the rest


def test_everything_that_is_missing_is_said_once() -> None:
    beside = manifest(
        missing=(Missing("program", "no room"),),
        agent_errors=(AgentError("graph", "boom"),),
        samplers=(Sampling("nvml", "unavailable", "no library"), Sampling("host", "on")),
    )
    silent = trace([], gpus=[v100()], errors=("Failed to load libcupti",), warnings=("w", "w"))
    said = machine.unrecorded(chart(silent, recording(manifest=beside)))
    assert said[:3] == ("program: no room", "agent, graph: boom", "sampler nvml: no library")
    assert "CUPTI" in said[3]
    assert said[4:] == ("Failed to load libcupti", "w")
    assert machine.unrecorded(on_cpu()) == ()


NO_GPU = Sampling("nvml", "unavailable", "NVML Shared Library Not Found")


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        (replace(NO_GPU, absent=True), False),
        (replace(NO_GPU, absent=False), True),  # it is there, but its library is not
        (NO_GPU, False),  # from before that was recorded: the run used no GPU
        (replace(NO_GPU, count=9), True),  # it was sampled until then
        (Sampling("tpu", "unavailable", "this machine has no TPU"), False),
        (Sampling("host", "unavailable", "a reading hung"), True),
    ],
)
def test_a_device_that_the_machine_lacks_is_no_missing_data(sampling: Sampling, *, said: bool) -> None:
    shown = machine.unrecorded(on_cpu(beside=manifest(samplers=(sampling,))))
    assert shown == ((f"sampler {sampling.name}: {sampling.reason}",) if said else ())


def test_trust_falls_with_every_doubt() -> None:
    doubted = on_cpu(beside=manifest(steps=StepsSeen(untraced=UntracedSteps(count=9, median_ms=85.0))))
    found = run.trust(doubted)
    assert found.level == "medium"
    assert any("tracing made the steps" in reason for reason in found.reasons)
    assert run.trust(EMPTY).level == "low"


def test_a_model_that_explains_too_little_lowers_the_trust() -> None:
    exposed = dict.fromkeys(map(str, EXPOSED), 0.0) | {"input": 40.0, "device": 10.0}
    measured = [on_cpu().fact(Trace), on_cpu().fact(Recording)]

    def reasons(made_ms: float) -> str:
        segments = (PipelineSegment({"a": made_ms}, overlapped=True),)
        model = StepModel(device=DeviceKind.CPU, exposed=exposed, segments=segments)
        return " ".join(run.trust(Chart([*measured, model])).reasons)

    assert "savings are estimates" not in reasons(50.0)
    assert "savings are estimates" in reasons(10.0)


def test_a_defect_in_the_model_is_told_with_the_trust() -> None:
    broken = on_cpu()
    broken.fact(Breakdown)
    broken.call = failing(StepModel, broken.call)  # type: ignore[method-assign] # a defect is planted
    found = run.trust(broken)
    assert found.level != "high"
    assert sum("failed to measure StepModel" in reason for reason in found.reasons) == 1


def test_a_defect_in_a_fact_does_not_stop_the_summary() -> None:
    broken = on_cpu()
    broken.call = failing(Operations, broken.call)  # type: ignore[method-assign] # a defect is planted
    assert run.operations(broken) == ()
    assert "failed to measure" in broken.why_missing(Operations)
    assert broken.why_missing(Steps) == ""


# The second opinion


def opinion(**parts: Any) -> Opinion:
    said: dict[str, Any] = {"conclusion": "HIGHLY input-bound", "input_percent": 40.0, "steps": 4} | parts
    return Opinion(**said, verdict=InputVerdict.of(said["conclusion"]))


@pytest.mark.parametrize(
    ("said", "agrees"),
    [
        ({"input_percent": 40.0}, True),  # figures within five percent
        ({"input_percent": 45.0}, True),
        ({"input_percent": 45.1}, False),
        ({"input_percent": 34.9}, False),
        ({"error": "it crashed"}, None),  # no figure
        ({"input_percent": None}, None),
        ({"steps": 0}, None),
    ],
)
def test_a_second_opinion_agrees_where_its_figure_is_near(said: dict[str, Any], agrees: bool | None) -> None:  # noqa: FBT001
    found = sure(run.second_opinion(on_cpu(), opinion(**said)))
    assert (found.agrees, bool(found.why)) == (agrees, agrees is False)


def test_where_they_differ_it_is_said_why() -> None:
    gpu = v100(line("Stream #1", ("k", 0, 5)))
    on_gpu = chart(trace([markers(4, 10)], gpus=[gpu]))
    why = sure(run.second_opinion(on_gpu, opinion(input_percent=50.0))).why
    assert ("GPU" in why, "50 %" in why) == (True, True)
    assert run.second_opinion(on_cpu(), None) is None


def test_on_a_tpu_the_summary_is_whole() -> None:
    kinds = {"%fusion": {"hlo_category": "convolution fusion", "flops": 1e9}}
    tpu = device(
        line("XLA Ops", *(("%fusion", 10 * n, 10 * n + 9) for n in range(5))),
        line("Steps", *((str(n), 10 * n, 10 * n + 10) for n in range(5))),
        kinds=kinds,
        device_type_string="TPU v4",
    )
    facts = chart(trace([], tpus=[tpu]))
    assert run.subject(facts, "t").device_name == "TPU v4"
    assert run.steps(facts).source == "tpu-steps"
    assert [row.operation for row in run.operations(facts)] == ["convolution fusion"]
    assert run.trust(facts).level == "high"


# The timeline of a typical step


SAMPLES = Path(__file__).parents[2] / "sample_traces"

ROUNDED = 2e-4  # ms by which two rounded places of a bar may be off
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())


def sample(name: str) -> Chart:
    recording = Recording.open(SAMPLES / name)
    return Chart([xplane.read(recording.traces[0]), recording])


@pytest.mark.parametrize("name", NAMES)
def test_bars_lie_within_the_step_and_those_of_the_step_are_its_breakdown(name: str) -> None:
    chart = sample(name)
    found = timeline(chart, ())
    if found is None:
        assert chart.get(Steps) is None or chart.get(Breakdown) is None
        return
    for lane in found.lanes:
        for bar, after in zip(lane.bars, lane.bars[1:], strict=False):
            assert bar.start_ms + bar.duration_ms <= after.start_ms + ROUNDED
        assert lane.bars[0].start_ms >= 0
        assert lane.bars[-1].start_ms + lane.bars[-1].duration_ms <= found.total_ms + ROUNDED
    bars, breakdown, steps = found.lanes[0].bars, sure(chart.get(Breakdown)), sure(chart.get(Steps))
    assert found.lanes[0].name == "step"
    assert sum(bar.duration_ms for bar in bars) == pytest.approx(found.total_ms, rel=1e-3, abs=ROUNDED * len(bars))
    at = next(n for n, step in enumerate(steps.steps) if step.number == found.number)
    for part, time in breakdown.steps[at].items():
        shown = sum(bar.duration_ms for bar in bars if PARTS[bar.part] == part)
        assert shown == pytest.approx(time * steps.steps[at].calls, abs=0.02 * found.total_ms + 0.01)


def test_the_wait_for_input_stands_above_the_stage_that_causes_it() -> None:
    found = sure(timeline(sample("cpu-input-bound"), ()))
    names = [lane.name for lane in found.lanes if lane.name]
    assert names == ["step", "input: MapAndBatch(prepare)", "input: Shuffle", "operations"]
    wait = max((bar for bar in found.lanes[0].bars if PARTS[bar.part] == "input"), key=lambda b: b.duration_ms)
    end = wait.start_ms + wait.duration_ms
    work = sum(
        max(0.0, min(bar.start_ms + bar.duration_ms, end) - max(bar.start_ms, wait.start_ms))
        for lane in found.lanes[1:3]
        for bar in lane.bars
    )
    assert work > 0.8 * wait.duration_ms


bars = st.lists(
    st.tuples(st.floats(0, 0.01), st.floats(0, 0.01), st.sampled_from(["device", "host"])), max_size=300
)


@given(bars, st.integers(1, 40))
def test_however_many_there_are_few_are_drawn_and_no_time_is_lost(
    pieces: list[tuple[float, float, str]], most: int
) -> None:
    at, made = 0.0, []
    for gap, time, part in pieces:
        made.append(TimelineWork(at + gap, time, part, part))
        at += gap + time
    ((_, lane),) = few([("a", made)], max(at, 1e-3), most)
    assert len(lane) <= most
    assert sum(bar.pieces for bar in lane) == len(made)
    covered = sum(bar.duration_ms for bar in lane)
    assert covered >= sum(bar.duration_ms for bar in made) - 1e-9


def marked(name: str, *effects: Effect) -> Result:
    rule = Rule.named(name, Topic.OPERATIONS, name, own=False, general=False)
    return Result(rule=rule, outcome=finding(*effects))


NORM = Effect(Stage.DEVICE, 0.5, "bn", ms(2.0), parts=("bn/mul", "bn/sub"))
OPERATION = [marked("unfused-batch-norm", NORM), marked("hot", Effect(Stage.DEVICE, 0.0))]
WHOLE_STAGE = [marked("input-bound", Effect(Stage.INPUT, 0.0))]
NEITHER_OF_THEM = [marked("retracing", Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(1.0)))]


@pytest.mark.parametrize(
    ("results", "work", "rules"),
    [
        # A whole stage is all of its work, and its part of the step.
        (WHOLE_STAGE, ("input", NEITHER), ("input-bound",)),
        (WHOLE_STAGE, (Stage.INPUT, "Map"), ("input-bound",)),
        (WHOLE_STAGE, ("device", NEITHER), ()),
        (WHOLE_STAGE, (Stage.DEVICE, "Map"), ()),
        # An operation is known by its name or as one of several.
        (OPERATION, (Stage.DEVICE, "bn/mul"), ("hot", "unfused-batch-norm")),
        (OPERATION, (Stage.DEVICE, "conv", "kernel"), ("hot",)),
        (OPERATION, ("device", NEITHER), ("hot",)),
        # What is neither is its part of the step alone.
        (NEITHER_OF_THEM, ("host", NEITHER), ("retracing",)),
        (NEITHER_OF_THEM, (Stage.HOST, "launch"), ()),
    ],
)
def test_a_bar_has_the_findings_about_its_work(
    results: list[Result], work: tuple[Any, ...], rules: tuple[str, ...]
) -> None:
    assert about(marks_of(results), *work) == rules


def test_what_gets_longer_by_a_change_is_not_what_is_wrong() -> None:
    slower = marked("float32-matmul", Effect(Stage.DEVICE, 1.2, "bn", ms(2.0)))
    assert marks_of([slower, Result(rule=slower.rule, outcome=Healthy(summary="fine"))]) == {}


# The profile of a step


AT, OTHER = Location("train.py", 7), Location("train.py", 9)


def group(kind: str, time: float, at: Location | None = AT, **more: Any) -> OperationGroup:
    row = OperationTime(name=f"{kind}{time}", type=kind, ms=time, at=at)
    return OperationGroup(type=kind, at=at, rows=(row,), **({"layers": (), "missing": "shapes unknown"} | more))


def rows(*facts: object, **parts: Any) -> tuple[ProfileRow, ...]:
    return profile(chart_of(*facts, **parts)).rows


def test_operations_of_a_type_and_line_are_one_row() -> None:
    """The facts keep those of a loop and of a part of Keras apart."""
    inner = group("Mul", 10.0, loop="map/while", least_ms=4.0)
    groups = OperationGroups((group("Mul", 30.0, least_ms=16.0), inner, group("Mul", 9.0, OTHER)))
    first, second = rows(groups, device=100.0)
    assert (first.kind, first.what, first.at) == (WorkKind.OPERATION, "Mul", AT)
    assert (first.ms, first.share, first.attained) == pytest.approx((40.0, 0.4, 0.5))
    assert (second.attained, second.unknown) == (None, "shapes unknown")


def test_a_product_of_unknown_peak_is_compared_with_the_fastest_of_the_run() -> None:
    slow = group("Conv2D", 40.0, gflop_s=20.0, best_gflop_s=80.0)
    first, second = rows(OperationGroups((slow, group("Conv2D", 30.0, OTHER))), device=100.0)
    assert (first.attained, first.of_fastest, second.of_fastest) == (None, 0.25, None)


def test_python_of_a_part_is_divided_by_line_and_call() -> None:
    """Of ten samples three are in a function that is seen too rarely to be named."""
    line = TimedLine(AT, 10, 5.0, calls={"numpy.histogram": 7, "numpy.sort": 3})
    waits = TimedLine(OTHER, 6, 3.0, calls={"a.b": 6}, work=LineWork.DISPATCHING)
    (part,) = profile(chart_of(HostLines({Stage.HOST: (line, waits)}), host=8.0)).python
    assert (part.part, part.ms) == ("host", 8.0)
    assert [(one.at, one.calls, one.ms, one.samples) for one in part.lines] == [
        (AT, "numpy.histogram", 3.5, 7),
        (OTHER, "between the operations of a compiled function", 3.0, 6),
        (AT, "", 1.5, 3),
    ]


def test_a_line_of_few_samples_is_no_row_but_its_caller_may_be() -> None:
    lines = [TimedLine(Location("help.py", n), 3, 3.0, callers={AT: 3}) for n in range(2)]
    (line,) = rows(HostLines({Stage.HOST: (*lines, TimedLine(OTHER, FEW - 1, 4.0))}), host=100.0)
    assert (line.kind, line.at, line.ms, line.part) == (WorkKind.LINE, AT, 6.0, "host")


def test_a_line_is_named_by_what_it_does() -> None:
    lines = (
        TimedLine(AT, 9, 9.0, "Log.on_train_batch_end"),
        TimedLine(AT, 8, 8.0, work=LineWork.ENTERING),
        TimedLine(AT, 7, 7.0, calls={"numpy.histogram": 7}),
        TimedLine(AT, 6, 6.0, calls={"": 6}),
    )
    assert [row.what for row in rows(HostLines({Stage.HOST: lines}), host=100.0)] == [
        "Log.on_train_batch_end",
        "entering a compiled function",
        "numpy.histogram",
        "Python",
    ]


def test_without_samples_the_events_of_threads_are_shown() -> None:
    events = PartEvents({Stage.HOST: (PartEvent("Execute", "python", 8.0),)})
    (row,) = rows(events, host=100.0)
    assert (row.what, row.ms, row.at) == ("Execute (thread python)", 8.0, None)


def test_events_of_threads_that_overlap_take_no_more_than_their_part() -> None:
    threads = (PartEvent("a", "one", 90.0), PartEvent("b", "two", 30.0))
    found = rows(PartEvents({Stage.HOST: threads}), host=40.0, device=60.0)
    assert [row.ms for row in found] == pytest.approx([30.0, 10.0])


def test_samples_without_a_time_divide_the_time_between_steps() -> None:
    samples = StackSamples((TimedLine(AT, 15), TimedLine(OTHER, 5)))
    first, second = rows(samples, between=40.0, device=60.0)
    assert [(row.at, row.ms) for row in (first, second)] == [(AT, 30.0), (OTHER, 10.0)]


@pytest.mark.parametrize(("wait", "beside"), [(0.0, [True, True]), (30.0, [False, True])])
def test_stages_that_no_step_waits_for_work_beside_it(wait: float, beside: list[bool]) -> None:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    slow = StageTime.of("Root::Prefetch::Map", 40.0)
    other = StageTime.of("Root::Prefetch::ParallelMapV2", 9.0)
    pipeline = InputPipeline.of(ahead, slow, other)
    found = rows(pipeline, *pipeline.segments, input=wait, device=45.0)
    assert [(row.what, row.beside) for row in found] == list(zip(["Map", "ParallelMapV2"], beside, strict=True))


def test_shorter_rows_are_counted_with_their_time() -> None:
    many = [group(f"Op{n}", 5.0 - 0.1 * n) for n in range(SHOWN + 3)]
    found = profile(chart_of(OperationGroups(tuple(many)), device=100.0))
    assert (len(found.rows), found.omitted) == (SHOWN, 3)
    assert found.omitted_ms == pytest.approx(sum(5.0 - 0.1 * (SHOWN + more) for more in range(3)))
    little = (group("Mul", 50.0), group("Neg", 100.0 * LEAST - 0.01, OTHER))
    assert len(rows(OperationGroups(little), device=100.0)) == 1


def test_times_are_those_of_the_shown_step() -> None:
    """Of 30 traced ms, the profiler has its part."""
    tracing = TracingCost.of({"device": 30.0, "host": 10.0}, {"device": 1e4, "host": 0.0}, 2.0)
    breakdown = Breakdown.of(device=30.0, host=10.0)
    model = StepModel(device=DeviceKind.CPU, exposed=tracing.untraced, tracing=tracing)
    (row,) = profile(Chart([breakdown, model, OperationGroups((group("Mul", 30.0),))])).rows
    assert row.ms == pytest.approx(tracing.untraced["device"])
    assert row.share == pytest.approx(row.ms / model.step_ms)


def test_without_steps_there_is_no_profile() -> None:
    assert profile(Chart([])) == Profile()


# What findings save of energy


BOARD = EnergyMeter(
    source=EnergySource.GPU, devices=1, without=0, power_w=300.0, seconds=60.0, run_j=36_000.0, idle_w=100.0
)
BOARD = replace(BOARD, waiting_w=20.0, busy=0.8)
"""Kernels run for 80 % of the time, at 350 W."""

PACKAGES = EnergyMeter(source=EnergySource.CPU, devices=2, without=0, power_w=200.0, seconds=60.0, run_j=24_000.0)


NO_PRICES = EnergyPrices()


def measured(
    *meters: EnergyMeter, device: DeviceKind = DeviceKind.GPU, prices: EnergyPrices = NO_PRICES, epoch: int = 0
) -> Chart:
    return Chart([Energy(meters), prices, Device(device, 1, 1), *([Epoch(epoch)] if epoch else [])])


def account_of(chart: Chart, step_ms: float | None = 100.0) -> EnergyAccount:
    return sure(energy_account(chart, step_ms))


def saving_of(chart: Chart, *effects: Effect, per_step: float = 10.0, **more: Any) -> EnergySaving | None:
    saved = Saving(ms_per_step=per_step, share=0.1, bound=Bound.EXPECTED, how="")
    run = saving(60.0, Recurrence.PER_STEP, each=per_step / 1000, times=6000, whole=600.0)
    stated = Result(rule=states("x"), outcome=finding(*effects, **more), saving=saved, run=run)
    (result,) = with_energy(chart, [stated])
    return result.energy


def test_steps_epochs_and_the_run_have_the_energy_of_the_mean_power() -> None:
    prices = EnergyPrices(usd_per_kwh=0.36, gco2_per_kwh=400.0)
    (row,) = account_of(measured(BOARD, prices=prices, epoch=1000)).rows
    step, idle, epoch = sure(row.per_step), sure(row.idle_per_step), sure(row.per_epoch)
    assert (step.joules, idle.joules) == pytest.approx((30.0, 2.0))
    assert (step.usd, step.gco2) == pytest.approx((3e-6, 30.0 * 400 / 3.6e6))
    assert (epoch.joules, row.run.joules) == pytest.approx((30_000.0, 36_000.0))


def test_without_prices_and_steps_there_is_the_energy_of_the_run_alone() -> None:
    (row,) = account_of(measured(BOARD), step_ms=None).rows
    assert (row.per_step, row.idle_per_step, row.per_epoch) == (None, None, None)
    assert (row.run.joules, row.run.usd, row.run.gco2) == (36_000.0, None, None)


COMPUTES = Effect(Stage.DEVICE, 0.9)
ON_BOARD, ON_PACKAGES = measured(BOARD), measured(PACKAGES, device=DeviceKind.CPU)
UNKNOWN_IDLE = measured(replace(BOARD, idle_w=None, waiting_w=None))


@pytest.mark.parametrize(
    ("chart", "effects", "joules"),
    [
        (ON_BOARD, [COMPUTES], 0.010 * 350),
        # Trap: the kernels of a step that waits less are the same, and take the same energy.
        (ON_BOARD, [Effect(Stage.INPUT, 0.0)], 0.010 * 100),
        (ON_BOARD, [Effect(Stage.TRANSFER, 0.0)], 0.010 * 100),
        (ON_BOARD, [Effect(Stage.HOST, 0.0)], 0.010 * 100),
        (ON_BOARD, [Effect(Stage.BETWEEN, 0.0)], 0.010 * 100),
        (ON_BOARD, [COMPUTES, Effect(Stage.HOST, 0.5)], None),  # a mixture
        (ON_BOARD, [Effect(Stage.COLLECTIVE, 0.5)], None),
        (UNKNOWN_IDLE, [Effect(Stage.INPUT, 0.0)], None),
        (UNKNOWN_IDLE, [COMPUTES], None),
        (ON_PACKAGES, [Effect(Stage.INPUT, 0.0)], 2.0),
        # Work that moves to other threads takes as much energy.
        (ON_PACKAGES, [Effect(Stage.INPUT, 1.0, overlaps=True)], None),
        (ON_PACKAGES, [Effect(Stage.INPUT, 0.5, spreads=True)], None),
        # The steps do not run on these.
        (measured(BOARD, device=DeviceKind.CPU), [COMPUTES], None),
        (measured(PACKAGES), [COMPUTES], None),
    ],
)
def test_a_step_saves_energy_at_the_power_of_what_gets_shorter(
    chart: Chart, effects: list[Effect], joules: float | None
) -> None:
    saved = saving_of(chart, *effects)
    assert (saved.per_step.joules if saved else None) == pytest.approx(joules)


def test_a_run_saves_at_the_power_of_its_steps_and_a_cpu_at_most_its_mean() -> None:
    board, packages = sure(saving_of(ON_BOARD, COMPUTES)), sure(saving_of(ON_PACKAGES, Effect(Stage.INPUT, 0.0)))
    assert sure(board.run).joules == pytest.approx(60 * 350)
    assert (packages.source, packages.bound) == (EnergySource.CPU, Bound.AT_MOST)


def test_other_time_of_the_run_has_another_power() -> None:
    """Trap: a slow evaluation is not at the power of training steps."""
    evaluation = RunEffect(phase=Phase.EVALUATION, of=ms(50_000.0))
    assert sure(saving_of(measured(BOARD), COMPUTES, run_effects=(evaluation,))).run is None


def test_what_saves_no_time_saves_no_energy() -> None:
    assert saving_of(measured(BOARD), COMPUTES, per_step=0.0) is None
    healthy = Result(rule=states("x"), outcome=Healthy(summary="x"))
    assert [*with_energy(measured(BOARD), [healthy])] == [healthy]

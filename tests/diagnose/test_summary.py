"""What a report shows beside the verdicts."""

from tests.builders import chart, device
from tests.diagnose.kit import *
from tfdoctor.diagnose.summary import run

EMPTY = chart(trace([]))
SHAPES = [["float32", [None, 28, 28, 3]], ["float32", [3, 3, 3, 8]]]
OPERATIONS = [
    graph_operation("m/c/Conv2D", "Conv2D", SHAPES, layer="c", at=["/home/me/train.py", 7]),
    graph_operation("m/c/BiasAdd", "BiasAdd", layer="c"),
    graph_operation("m/d/MatMul", "MatMul", layer="d"),
]
DECODE = {"function": {"name": "decode", "at": ["/home/me/train.py", 2]}, "at": ["/home/me/train.py", 5]}
DATASET = {"id": 1, "class": "_MapDataset", "trace_name": "MapDataset:1"} | DECODE
SETTINGS = {"policy": "float32", "jit_compile": False, "batch_size": 32, "strategy": None}
RECORD = {"graphs": [{"operations": OPERATIONS}], "datasets": [DATASET], "feeds": 1, "run": SETTINGS}
SAMPLES = Path(__file__).parents[2] / "sample_traces"
HALF_BUSY = {"unix_ns": 1, "host": {"run_cpu_pct": 150.0}, "gpu": [{"gpu_pct": 40}]}
DISTORTED = StepsSeen(untraced=UntracedSteps(count=9, median_ms=85.0))
OPINIONS: dict[str, dict[str, Any]] = {
    "the same": {"input_percent": 40.0},
    "within five percent": {"input_percent": 45.0},
    "more": {"input_percent": 45.1},
    "less": {"input_percent": 34.9},
    "it crashed": {"error": "it crashed"},
    "no figure": {"input_percent": None},
    "no steps": {"steps": 0},
}


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


def ran(*, gpus: int = 0, errors: tuple[str, ...] = (), warnings: tuple[str, ...] = (), **more: Any) -> Chart:
    """A run of which a GPU was used, of so many."""
    used = [v100(line("Stream #1", ("k", 0, 5)))] if gpus else []
    planes = [*used, *(v100() for _ in range(gpus - 1))]
    traced = trace([markers(4, 10)], gpus=planes, errors=errors, warnings=warnings)
    return chart(traced, recording(manifest=manifest(**more)))


def on_tpu() -> Chart:
    tpu = device(
        line("XLA Ops", *(("%fusion", 10 * n, 10 * n + 9) for n in range(5))),
        line("Steps", *((str(n), 10 * n, 10 * n + 10) for n in range(5))),
        kinds={"%fusion": {"hlo_category": "convolution fusion", "flops": 1e9}},
        device_type_string="TPU v4",
    )
    return chart(trace([], tpus=[tpu]))


def unable(**sampling: Any) -> Chart:
    """A run on a CPU of which a sampler says why it is unavailable."""
    known = {"name": "nvml", "status": "unavailable", "reason": "NVML Shared Library Not Found"} | sampling
    return on_cpu(beside=manifest(samplers=(Sampling(**known),)))


def explained(made_ms: float) -> Chart:
    """A step of 50 ms, of which the model knows so much of the input."""
    exposed = dict.fromkeys(map(str, EXPOSED), 0.0) | {"input": 40.0, "device": 10.0}
    segments = (PipelineSegment({"a": made_ms}, overlapped=True),)
    model = StepModel(device=DeviceKind.CPU, exposed=exposed, segments=segments)
    return Chart([on_cpu().fact(Trace), on_cpu().fact(Recording), model])


def defective(kind: Any) -> Chart:
    """A chart of which one fact fails to be measured."""
    broken = on_cpu()
    broken.fact(Breakdown)
    call = broken.call

    def instead(function: Callable[..., Any]) -> Any:
        if function == kind.measure:
            raise ZeroDivisionError
        return call(function)

    broken.call = instead  # type: ignore[method-assign,assignment] # a defect is planted
    return broken


def sample(name: str) -> Chart:
    recording = Recording.open(SAMPLES / name)
    return Chart([xplane.read(recording.traces[0]), recording])


def opinion(chart: Chart, **parts: Any) -> str:
    said: dict[str, Any] = {"conclusion": "HIGHLY input-bound", "input_percent": 40.0, "steps": 4} | parts
    found = sure(run.second_opinion(chart, Opinion(**said, verdict=InputVerdict.of(said["conclusion"]))))
    return f"agrees {found.agrees}, {shown(found)}"


def summary(chart: Chart) -> Iterator[str]:
    """Yield all that a report shows of a run beside the verdicts."""
    trust = run.trust(chart)
    yield f"subject: {shown(run.subject(chart, 't'))}"
    steps = run.steps(chart)
    yield f"steps: {shown(replace(steps, rows=()))}"
    yield from (f"  {shown(row)}" for row in steps.rows)
    yield from (f"stage: {shown(one)}" for one in run.pipeline(chart))
    yield from (f"operation: {shown(one)}" for one in run.operations(chart))
    measures = (*run.model(chart), *machine.samples(chart), *devices.gpu_time(chart), *devices.tpu_time(chart))
    yield from (f"{one.label}: {one.value.value:.6g} {one.value.unit}" for one in measures)
    yield from (f"{label}: {value}" for label, value in machine.machine(chart) if value)
    yield from (f"unrecorded: {one}" for one in machine.unrecorded(chart))
    yield f"trust: {trust.level}"
    yield from (f"  {reason}" for reason in trust.reasons)


CHARTS = {
    "on a CPU": on_cpu(record=RECORD, samples=[HALF_BUSY], beside=manifest(versions={"python": "3.11"})),
    "an empty trace": EMPTY,
    "one of two GPUs": ran(
        gpus=2, command=("python", "t.py"), versions={"tensorflow": "2.21.0", "cuda": None}, outcome=Ending(3)
    ),
    "a TPU": on_tpu(),
    "a GPU that copies and waits": sample("synthetic-gpu-a100-fp32"),
    "a TPU that pads": sample("synthetic-tpu-v5e-padded"),
    "everything that is missing is said once": chart(
        trace([], gpus=[v100()], errors=("Failed to load libcupti",), warnings=("w", "w")),
        recording(
            manifest=manifest(
                missing=(Missing("program", "no room"),),
                agent_errors=(AgentError("graph", "boom"),),
                samplers=(Sampling("nvml", "unavailable", "no library"), Sampling("host", "on")),
            )
        ),
    ),
    "tracing made the steps longer": on_cpu(beside=manifest(steps=DISTORTED)),
    "the model explains the step": explained(50.0),
    "the model explains too little": explained(10.0),
    "a defect in the model": defective(StepModel),
    "a defect in a fact": defective(Operations),
}
UNSAMPLED = {
    "the machine has no GPU": unable(absent=True),
    "the GPU is there, but its library is not": unable(absent=False),
    "from before that was recorded: the run used no GPU": unable(),
    "it was sampled until then": unable(count=9),
    "the machine has no TPU": unable(name="tpu", reason="this machine has no TPU"),
    "a reading hung": unable(name="host", reason="a reading hung"),
}


def test_all_that_is_shown_of_runs(golden: Callable[[str, str], None]) -> None:
    texts = [f"## {name}\n\n" + "\n".join(summary(one)) for name, one in CHARTS.items()]
    missing = (f"{name}: {shown(machine.unrecorded(one)) or 'nothing'}" for name, one in UNSAMPLED.items())
    on_gpu, on_cpu_too = CHARTS["one of two GPUs"], on_cpu()
    opinions = [f"{name}: {opinion(on_cpu_too, **said)}" for name, said in OPINIONS.items()]
    opinions.append(f"of a GPU: {opinion(on_gpu, input_percent=50.0)}")
    texts += ["## Missing samplers\n\n" + "\n".join(missing), "## Second opinions\n\n" + "\n".join(opinions)]
    golden("summaries.txt", "\n\n".join(texts) + "\n")
    assert run.second_opinion(on_cpu_too, None) is None


# The timeline of a typical step
ROUNDED = 2e-4  # ms by which two rounded places of a bar may be off
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
bars = st.lists(
    st.tuples(st.floats(0, 0.01), st.floats(0, 0.01), st.sampled_from(["device", "host"])), max_size=300
)
NORM = Effect(Stage.DEVICE, 0.5, "bn", ms(2.0), parts=("bn/mul", "bn/sub"))


def marked(name: str, *effects: Effect) -> Result:
    rule = Rule.named(name, Topic.OPERATIONS, name, own=False, general=False)
    return Result(rule=rule, outcome=finding(*effects))


OPERATION = [marked("unfused-batch-norm", NORM), marked("hot", Effect(Stage.DEVICE, 0.0))]
WHOLE_STAGE = [marked("input-bound", Effect(Stage.INPUT, 0.0))]
NEITHER_OF_THEM = [marked("retracing", Effect(Stage.HOST, 0.0, StepWork.TRACING, ms(1.0)))]


@each(*NAMES)
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


@cases(  # A whole stage is all of its work, and its part of the step.
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
HELPERS = [TimedLine(Location("help.py", n), 3, 3.0, callers={AT: 3}) for n in range(2)]
WAITS = TimedLine(OTHER, 6, 3.0, calls={"a.b": 6}, work=LineWork.DISPATCHING)


def group(kind: str, time: float, at: Location | None = AT, **more: Any) -> OperationGroup:
    row = OperationTime(name=f"{kind}{time}", type=kind, ms=time, at=at)
    return OperationGroup(type=kind, at=at, rows=(row,), **({"layers": (), "missing": "shapes unknown"} | more))


def works(*groups: OperationGroup) -> Chart:
    return chart_of(OperationGroups(groups), device=100.0)


def python(*lines: TimedLine) -> Chart:
    return chart_of(HostLines({Stage.HOST: lines}), host=100.0)


def threads(*events: PartEvent) -> Chart:
    return chart_of(PartEvents({Stage.HOST: events}), host=40.0, device=60.0)


def maps(wait: float) -> Chart:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    slow, other = stage_time("Root::Prefetch::Map", 40.0), stage_time("Root::Prefetch::ParallelMapV2", 9.0)
    pipeline = InputPipeline.of(ahead, slow, other)
    return chart_of(pipeline, *pipeline.segments, input=wait, device=45.0)


def traced() -> Chart:
    """Of 30 traced ms, the profiler has its part."""
    tracing = TracingCost.of({"device": 30.0, "host": 10.0}, {"device": 1e4, "host": 0.0}, 2.0)
    model = StepModel(device=DeviceKind.CPU, exposed=tracing.untraced, tracing=tracing)
    return Chart([Breakdown.of(device=30.0, host=10.0), model, OperationGroups((group("Mul", 30.0),))])


def rows(found: Profile) -> Iterator[str]:
    yield f"omitted: {found.omitted}, {found.omitted_ms:.6g} ms"
    yield from map(shown, found.rows)
    for part in found.python:
        yield f"Python: {part.part}, {part.ms:.6g} ms"
        yield from (f"  {shown(one)}" for one in part.lines)


PROFILES = {
    # The facts keep those of a loop and of a part of Keras apart.
    "operations of a type and line are one row": works(
        group("Mul", 30.0, least_ms=16.0),
        group("Mul", 10.0, loop="map/while", least_ms=4.0),
        group("Mul", 9.0, OTHER),
    ),
    "a product of unknown peak is compared with the fastest": works(
        group("Conv2D", 40.0, gflop_s=20.0, best_gflop_s=80.0), group("Conv2D", 30.0, OTHER)
    ),
    # Of ten samples three are in a function that is seen too rarely to be named.
    "Python is divided by line and call": python(
        TimedLine(AT, 10, 5.0, calls={"numpy.histogram": 7, "numpy.sort": 3}), WAITS
    ),
    "few samples are no row, but their caller may be": python(*HELPERS, TimedLine(OTHER, FEW - 1, 4.0)),
    "a line is named by what it does": python(
        TimedLine(AT, 9, 9.0, "Log.on_train_batch_end"),
        TimedLine(AT, 8, 8.0, work=LineWork.ENTERING),
        TimedLine(AT, 7, 7.0, calls={"numpy.histogram": 7}),
        TimedLine(AT, 6, 6.0, calls={"": 6}),
    ),
    "without samples, events of threads": threads(PartEvent("Execute", "python", 8.0)),
    "events that overlap take no more than their part": threads(
        PartEvent("a", "one", 90.0), PartEvent("b", "two", 30.0)
    ),
    "samples without a time divide the time between steps": chart_of(
        StackSamples((TimedLine(AT, 15), TimedLine(OTHER, 5))), between=40.0, device=60.0
    ),
    "no step waits: the stages work beside it": maps(0.0),
    "steps wait for a stage": maps(30.0),
    "shorter rows are counted": works(*(group(f"Op{n}", 5.0 - 0.1 * n) for n in range(SHOWN + 3))),
    "too little for a row": works(group("Mul", 50.0), group("Neg", 100.0 * LEAST - 0.01, OTHER)),
    "times are those of the shown step": traced(),
    "no steps": Chart([]),
}


def test_what_the_time_of_steps_goes_to(golden: Callable[[str, str], None]) -> None:
    texts = [f"## {name}\n\n" + "\n".join(rows(profile(one, step_rows(one)))) for name, one in PROFILES.items()]
    golden("profiles.txt", "\n\n".join(texts) + "\n")


# What findings save of energy
PACKAGES = EnergyMeter(source=EnergySource.CPU, devices=2, without=0, power_w=200.0, seconds=60.0, run_j=24_000.0)
BOARD = replace(PACKAGES, source=EnergySource.GPU, devices=1, power_w=300.0, run_j=36_000.0)
BOARD = replace(BOARD, idle_w=100.0, waiting_w=20.0, busy=0.8)  # kernels have 350 W
NO_PRICES = EnergyPrices()
COMPUTES = Effect(Stage.DEVICE, 0.9)


def measured(
    *meters: EnergyMeter, device: DeviceKind = DeviceKind.GPU, prices: EnergyPrices = NO_PRICES, epoch: int = 0
) -> Chart:
    return Chart([Energy(meters), prices, Device(device, 1, 1), *([Epoch(epoch)] if epoch else [])])


def saving_of(chart: Chart, *effects: Effect, per_step: float = 10.0, **more: Any) -> EnergySaving | None:
    saved = Saving(ms_per_step=per_step, share=0.1, bound=Bound.EXPECTED, how="")
    run = saving(60.0, Recurrence.PER_STEP, each=per_step / 1000, times=6000, whole=600.0)
    stated = Result(rule=states("x"), outcome=finding(*effects, **more), saving=saved, run=run)
    (result,) = with_energy(chart, [stated])
    return result.energy


PRICES = EnergyPrices(usd_per_kwh=0.36, gco2_per_kwh=400.0)
ON_BOARD, ON_PACKAGES = measured(BOARD), measured(PACKAGES, device=DeviceKind.CPU)
UNKNOWN_IDLE = measured(replace(BOARD, idle_w=None, waiting_w=None))
EVALUATION = RunEffect(phase=Phase.EVALUATION, of=ms(50_000.0))
LESS_INPUT = Effect(Stage.INPUT, 0.0)
ENERGY = {
    "the mean power of steps, epochs and the run": energy_account(
        measured(BOARD, prices=PRICES, epoch=1000), 100.0
    ),
    "without prices and steps there is the energy of the run": energy_account(ON_BOARD, None),
    "compute saves at the power of its kernels": saving_of(ON_BOARD, COMPUTES),
    # Trap: the kernels of a step that waits less are the same, and take the same energy.
    **{
        f"less of the stage {stage}": saving_of(ON_BOARD, Effect(stage, 0.0))
        for stage in (Stage.INPUT, Stage.TRANSFER, Stage.HOST, Stage.BETWEEN, Stage.COLLECTIVE)
    },
    "less compute and less of the host": saving_of(ON_BOARD, COMPUTES, Effect(Stage.HOST, 0.5)),
    "less input of a board whose idle power is unknown": saving_of(UNKNOWN_IDLE, LESS_INPUT),
    "compute of a board whose idle power is unknown": saving_of(UNKNOWN_IDLE, COMPUTES),
    "a CPU saves at most at its mean": saving_of(ON_PACKAGES, LESS_INPUT),
    # Work that moves to other threads takes as much energy.
    "work that overlaps": saving_of(ON_PACKAGES, Effect(Stage.INPUT, 1.0, overlaps=True)),
    "work that spreads": saving_of(ON_PACKAGES, Effect(Stage.INPUT, 0.5, spreads=True)),
    "the steps do not run on this board": saving_of(measured(BOARD, device=DeviceKind.CPU), COMPUTES),
    "the steps do not run on these packages": saving_of(measured(PACKAGES), COMPUTES),
    "trap: a slow evaluation has another power": saving_of(ON_BOARD, COMPUTES, run_effects=(EVALUATION,)),
    "what saves no time": saving_of(ON_BOARD, COMPUTES, per_step=0.0),
}


def test_what_findings_save_of_energy(golden: Callable[[str, str], None]) -> None:
    golden("energy.txt", "\n".join(f"## {name}\n\n{shown(one)}\n" for name, one in ENERGY.items()))
    healthy = Result(rule=states("x"), outcome=Healthy(summary="x"))
    assert [*with_energy(ON_BOARD, [healthy])] == [healthy]

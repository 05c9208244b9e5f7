"""What tfdoctor measures in a synthetic run is what is known of it: of a GPU's time within 2 %."""

from scripts.synthetic import gpu, kernels, samples
from scripts.synthetic.gpu_truth import gpu_truth
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run, Truth
from tests.builders import recording
from tests.kit import *
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.gpu.activity import D2H, H2D, PAGEABLE, PINNED, Collectives, Transfers
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleGaps
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.operations.matmuls import MatrixUnit
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import xplane, xprof

LARGE = Network(batch=256, size=128, width=16)

RUNS = {
    "v100": Run(device="v100", copy="pageable", dispatch_us=40.0),
    "v100 half": Run(device="v100", precision="fp16", network=Network(batch=16)),
    "t4 unfused": Run(device="t4", network=Network(batch=8, batch_norm="unfused", depthwise=True)),
    "t4 half, odd width": Run(device="t4", precision="fp16", network=Network(width=100)),
    "a100 waits": Run(device="a100", precision="tf32", input_ms=3.0),
    "a100 overlaps": Run(device="a100", precision="bf16", overlap=True, copy="pageable"),
    "h100 launches": Run(device="h100", precision="fp16", gap_us=20.0, between_ms=1.0),
    "v3": Run(device="v3", input_ms=2.0, network=Network(depthwise=True)),
    "v5e": Run(device="v5e", precision="bf16", network=Network(width=144, batch_norm="none")),
    "v6e": Run(device="v6e", precision="bf16", gap_us=5.0, steps=6),
}
GPU_RUNS = {
    "v100 copies pageable memory": Run(device="v100", copy="pageable", network=LARGE),
    "v100 is launch-bound": Run(device="v100", dispatch_us=40.0, network=Network(batch=1)),
    "t4 waits": Run(device="t4", input_ms=2.5, network=Network(batch=4)),
    "t4 hides its copy": Run(device="t4", precision="fp16", overlap=True, copy="pageable"),
    "a100 waits for input": Run(device="a100", precision="tf32", input_ms=3.0),
    "a100 is launch-bound": Run(device="a100", precision="bf16", dispatch_us=150.0, network=Network(batch=1)),
    "a100 sums gradients": Run(device="a100", precision="bf16", all_reduce_ms=1.5, hidden_ms=0.4),
    "h100 sums gradients and waits": Run(
        device="h100", precision="fp16", all_reduce_ms=0.3, input_ms=1.0, dispatch_us=3.0
    ),
    "h100 leaves one of two idle": Run(device="h100", precision="bf16", gap_us=20.0, between_ms=1.0, idle_gpus=1),
    "v100 leaves three idle": Run(device="v100", precision="fp16", idle_gpus=3, steps=6),
}
UNITS = Network(batch=8, size=32, depthwise=True)
UNIT_RUNS = {
    f"{device} {precision}": Run(device=device, precision=precision, network=UNITS, steps=4)
    for device, one in sorted(gpu.GPUS.items())
    if device != "gtx1660"  # has no Tensor Cores
    for precision in sorted(one.rates)
}
ALL = RUNS | GPU_RUNS | {f"unit of {name}": run for name, run in UNIT_RUNS.items()}

MARKETED = {"v100": "V100", "t4": "T4", "a100": "A100", "h100": "H100", "v3": "TPU v3",
            "v5e": "TPU v5 Lite", "v6e": "TPU v6 Lite"}  # fmt: skip


@dataclass(frozen=True)
class Case:
    run: Run
    truth: Truth
    chart: Chart


@cache
def case(name: str) -> Case:
    run = ALL[name]
    with TemporaryDirectory() as folder:
        truth = samples.write(run, Path(folder))
        opened = Recording.open(folder)
        beside = recording() if name.startswith("unit of") else opened
        return Case(run, truth, Chart([xplane.read(opened.traces[0]), beside]))


def near(expected: Any, rel: float = 1e-6) -> Any:
    return pytest.approx(expected, rel=rel, abs=1e-6)


def compare(figures: dict[str, tuple[Any, Any]], about: Callable[[Any], Any]) -> None:
    """Compare what is measured with what is true."""
    measured, true = ({name: pair[side] for name, pair in figures.items()} for side in (0, 1))
    assert measured == about(true)


@each(*RUNS)
def test_what_any_run_does(name: str) -> None:
    run, truth, chart = case(name).run, case(name).truth, case(name).chart
    on_gpu, steps, parts = run.device in gpu.GPUS, chart.fact(Steps), chart.fact(Breakdown)
    operations, unit, pipeline = chart.fact(Operations), chart.fact(MatrixUnit), chart.fact(InputPipeline)
    rows = operations.rows
    compare(
        {
            "steps": (steps.count, truth.steps),
            "step": (steps.median_ms, truth.step_ms),
            "sum of the parts": (parts.step_ms, truth.step_ms),
            "input": (parts[Stage.INPUT], truth.input_wait_ms),
            "device": (parts[Stage.DEVICE], truth.compute_ms),
            "between": (parts[Stage.BETWEEN], truth.between_ms),
            "number of operations": (len(rows), truth.operations),
            "operations": (operations.total_ms, truth.compute_ms),
            "unnamed": (operations.unnamed, 0),
            "depthwise": (sum(row.ms for row in rows if row.is_depthwise), truth.depthwise_ms),
            "batch norm": (sum(row.ms for row in rows if "batch_normalization" in row.name), truth.batch_norm_ms),
            "products": (sum(row.ms for row in operations.matrix if not row.is_depthwise), truth.matrix_ms),
        },
        near,
    )
    if on_gpu:
        loss = 0.003  # is copied back
        assert parts[Stage.TRANSFER] == near(truth.copy_exposed_ms + loss)
        assert unit.on_unit_ms == near(0.0 if run.precision == "fp32" else truth.matrix_ms)
    else:
        assert unit.utilization == near(truth.matrix_unit_use)
        assert sum((row.flops or 0) * row.calls for row in rows) == truth.flops
    assert pipeline.work_ms == near(truth.input_work_ms, rel=0.03)
    assert [one.kind for one in pipeline.stages] == ["Root", "Prefetch", "BatchV2", "Map", "TensorSlice"]
    assert getattr(pipeline.critical, "kind", "") == "Map"
    device = chart.fact(Device)
    assert (device.kind, device.used) == ("GPU" if on_gpu else "TPU", 2 if run.device == "v3" else 1)
    assert MARKETED[run.device] in chart.fact(Hardware).name


@each(*GPU_RUNS)
def test_what_a_gpu_does(name: str) -> None:
    run, truth, chart = case(name).run, case(name).truth, case(name).chart
    ruler, time, gaps = gpu_truth(run), chart.fact(GpuUtilization), chart.fact(IdleGaps)
    batch, loss = chart.fact(Transfers)[H2D], chart.fact(Transfers)[D2H]
    collectives = chart.fact(Collectives)

    def within(expected: Any) -> Any:
        return pytest.approx(expected, rel=0.02, abs=1e-4)

    copied = truth.copy_bytes / truth.copy_ms * 1e3
    compare(
        {
            "step": (time.round_ms, truth.step_ms),
            "kernels": (time.busiest.kernel_ms, ruler.kernel_ms),
            "busy": (time.busiest.busy_ms, ruler.busy_ms),
            "idle": (time.round_ms - time.busiest.busy_ms, ruler.idle_ms),
            "waits": (time.wait_ms, truth.input_wait_ms),
            "exposed waits": (time.exposed_wait_ms, ruler.exposed_wait_ms),
            "copy": (batch.ms, truth.copy_ms),
            "exposed copy": (batch.exposed_ms, ruler.copy_exposed_ms),
            "rate of copies": (batch.rate, copied),
            "all-reduces": (collectives.ms, run.all_reduce_ms),
            "exposed all-reduces": (collectives.exposed_ms, ruler.all_reduce_exposed_ms),
        },
        within,
    )
    assert time.busiest.kernels == truth.operations
    assert (gaps.sizes, gaps.gaps) == (within(ruler.sizes), within(ruler.gaps))
    assert gaps.causes == within(ruler.causes | {"synchronizing with the GPU": 0.0})
    assert (batch.count, loss.count, batch.nbytes, loss.nbytes) == (1, 1, truth.copy_bytes, 4)
    assert batch.host_memory == (PAGEABLE if run.copy == "pageable" else PINNED)
    assert collectives.kinds == ((("AllReduce", 1.0),) if run.all_reduce_ms else ())
    assert [one.busy_ms for one in time.gpus[1:]] == [0.0] * run.idle_gpus  # every GPU is there


def test_the_cases_differ_in_what_they_are_to_show() -> None:
    """A test of ten runs without a hidden copy, say, would prove little."""
    overlaps, copies = case("a100 overlaps").truth, case("v100").truth
    assert overlaps.copy_exposed_ms < overlaps.copy_ms / 2
    assert copies.copy_exposed_ms == copies.copy_ms
    hidden = case("t4 hides its copy")
    assert gpu_truth(hidden.run).copy_exposed_ms < 0.2 * hidden.truth.copy_ms
    launching = case("a100 is launch-bound")
    assert launching.chart.fact(IdleGaps).launching_ms > 0.5 * launching.truth.step_ms
    assert case("v100 leaves three idle").chart.fact(IdleGaps).kernels > 0
    assert 1.09 < case("a100 sums gradients").chart.fact(Collectives).exposed_ms < 1.4


def test_xprof_sees_no_wait_and_counts_copies_as_compute(tmp_path: Path) -> None:
    """The same trace in which 3 ms of every step are a wait for input."""
    waits = case("a100 waits for input")
    samples.write(waits.run, tmp_path)
    with xprof.Asked(Recording.open(tmp_path).traces[0]) as asked:
        opinion = asked.opinion()
    assert not opinion.error
    assert "HIGHLY" not in opinion.conclusion
    assert opinion.step_ms is not None
    assert opinion.step_ms < waits.truth.step_ms - 2.9  # from the first kernel to the last
    time = waits.chart.fact(GpuUtilization)
    assert time.exposed_wait_ms == near(3.0, rel=0.02)
    assert time.busiest.kernel_ms + time.busiest.copy_ms == near(time.busiest.busy_ms, rel=0.02)


@each(*UNIT_RUNS)
def test_tensor_core_time(name: str) -> None:
    """Convolutions of sm80_xmma and products of nvjet included, which xprof does not recognise."""
    run, chart = case(f"unit of {name}").run, case(f"unit of {name}").chart
    unit, truth = chart.fact(MatrixUnit), gpu.truth(run)
    on = 0.0 if run.precision == "fp32" else truth.matrix_ms
    assert (unit.on_unit_ms, unit.off_unit_ms) == near((on, truth.matrix_ms - on), rel=0.02)
    assert (unit.unknown_ms, unit.beside_ms) == (0, 0)
    assert dict(unit.precisions) == near({run.precision: truth.matrix_ms}, rel=0.02)


@each("v100 fp32", "a100 bf16")
def test_flops_of_a_run_without_program_record_come_from_its_shapes(name: str) -> None:
    """Where the factors' shapes tell them: not for convolutions, whose strides are not in the trace."""
    chart = case(f"unit of {name}").chart
    known = {row.name: row.flops for row in chart.fact(Operations).matrix if row.flops is not None}
    designed = {op.name: op for op in UNITS.training_step() if op.is_matrix}
    assert known == near({one: designed[one].flops for one in known})
    assert {designed[one].type for one in known} == {"MatMul", "Conv2DBackpropInput"}
    assert chart.fact(MatrixUnit).utilization is None


def test_the_operands_of_gradients_are_written_as_tensorflow_has_them() -> None:
    steps = {op.type: op for op in UNITS.training_step()}
    text = kernels.shapes(steps["Conv2DBackpropFilter"], "fp16")
    assert text.split(";")[1] == "int32[4]"
    assert text.startswith("(half[")
    assert kernels.shapes(steps["Conv2DBackpropInput"], "fp32").startswith("(int32[4];float[3,")

"""Real traces: each statement of their README, and what was measured in them by hand, within 5 %."""

from tests.facts.kit import *
from tfdoctor.facts.gpu.activity import D2D, H2D, UNKNOWN
from tfdoctor.facts.kit import summed
from tfdoctor.facts.operations.kernel_kinds import kernel
from tfdoctor.facts.run.operation_types import CONVOLUTIONS
from tfdoctor.facts.steps.steps import STEP
from tfdoctor.facts.tpu.time import COMPUTE, COPIES, IDLE
from tfdoctor.rules.precision import float32_matmul, idle_matrix_unit

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not at hand")
Measured = TypeVar("Measured")


@cache
def facts(name: str) -> Chart:
    return chart(xplane.read(next((TRACES / name).rglob("*.xplane.pb"))))


def near(value: float, least: float = 0.0) -> object:
    return pytest.approx(value, rel=0.05, abs=least)


@dataclass(frozen=True)
class Real:
    """The README's row; milliseconds, of the busiest GPU, None where it says nothing."""

    kernels: float
    step: float | None = None
    copies: float | None = None
    waited: float | None = None  # in the whole trace
    idle: float | None = None
    copied: float | None = None  # bytes from the host
    rate: float | None = None  # GB/s


ROWS = {
    "v100x8-bert-partial-step": Real(14.9, 21.3, idle=6.4),
    "mi300x-jax-conv": Real(3.52),
    "mi300x-jax-attention": Real(3.76, copies=0.083),
    "mi355x-jax-te-attention": Real(12.1, copies=0.0),
    "tf24-v100-input-wait": Real(41.6, 62_185, 22.6, 62_116, copied=100.7e6, rate=4.5),
    "tf24-v100-resnet50-fp32": Real(363.7, 406.0, 28.8, 0.12, 13.6, 100.7e6, 3.5),
    "tf23-p4-alexnet-fp32": Real(160.3, 201.0, 24.9, 0.13, 15.8, 100.7e6, 4.0),
    "tf24-rtx2060-launch-bound": Real(1.34, 10.6, 0.04, 0.48, 9.2),
    "tf24-t4-lenet": Real(5.7, 9.0, 0.0887, 0.09, 3.3),
}
"""Rounded there to 1.3, 0.08 and 0.09, which is coarser than 5 %: those three are given a digit more."""


def close(expected: float) -> object:
    return near(expected, 0.005)


@each(*ROWS)
def test_the_rows_of_the_readme(name: str) -> None:
    row, known = ROWS[name], facts(name)
    time, copies = known.fact(GpuUtilization), known.fact(Transfers)[H2D]
    found = {
        "kernels": max(gpu.kernel_ms for gpu in time.gpus),
        "step": time.round_ms if time.unit == STEP else None,
        "copies": time.busiest.copy_ms,
        "waited": trainer_waits(known.fact(Trace).host_lines).total / 1e9,
        "idle": time.round_ms - time.busiest.busy_ms,
        "copied": copies.nbytes,
        "rate": copies.rate and copies.rate / 1e9,
    }
    told = {part: close(value) for part, value in vars(row).items() if value is not None}
    assert {part: found[part] for part in told} == told
    assert (time.unit == STEP) == (row.step is not None)
    if row.step and row.waited:
        # TensorFlow 2.3 and 2.4 let a GPU's step begin with its first work, behind the wait on T4 and V100.
        assert time.wait_ms == close(row.waited)
    if row.copied:  # serially; TensorFlow 2.3 and 2.4 record no kind_src
        assert copies.exposed_ms == pytest.approx(copies.ms, rel=0.01)
        assert copies.host_memory == UNKNOWN


@each(*ROWS)
def test_the_parts_sum(name: str) -> None:
    time, gaps = facts(name).fact(GpuUtilization), facts(name).fact(IdleGaps)
    assert sum(gaps.causes.values()) == pytest.approx(gaps.idle_ms)
    assert sum(gaps.sizes.values()) == pytest.approx(gaps.idle_ms)
    assert gaps.idle_ms == pytest.approx(time.round_ms - time.busiest.busy_ms, abs=1e-6)
    assert gaps.causes[IdleCause.INPUT] == pytest.approx(time.exposed_wait_ms or 0.0, abs=1e-6)


def test_bert_waits_for_2_of_7_ms_and_six_gpus_do_nothing() -> None:
    """GPU 4 worked too, yet 0.6 s before the step of GPU 6."""
    time = facts("v100x8-bert-partial-step").fact(GpuUtilization)
    assert (time.wait_ms, time.exposed_wait_ms) == (close(6.59), close(2.2))
    assert [(gpu.name, gpu.kernels) for gpu in time.gpus[:2]] == [("/device:GPU:6", 665), ("/device:GPU:4", 0)]
    assert [gpu.traced_ms for gpu in time.gpus] == [close(14.9), close(14.8), *[0.0] * 6]


def test_the_other_gpus_step_of_bert() -> None:
    known = facts("v100x8-bert-partial-step")
    other, trace = known.fact(GpuActivities).gpus[1], known.fact(Trace)
    steps = next(one for one in other.plane.lines if one.name == "Steps").event(0)
    step = Intervals(((steps.start_ps, steps.end_ps),))
    assert steps.duration_ps / 1e9 == close(19.9)
    assert (step - other.busy).total / 1e9 == close(5.0)
    waits = trainer_waits(trace.host_lines).within(steps.start_ps, steps.end_ps)
    assert waits.total / 1e9 == close(7.15)
    assert other.copies.total / 1e9 == close(0.2)


def test_a_launch_bound_step_idles_while_the_host_dispatches_and_one_with_work_in_store_does_not() -> None:
    """Of the ResNet's 13.6 ms of idle time, 5.4 lie in gaps of 4 µs between kernels launched long before."""
    bound, stored = (
        facts(f"tf24-{name}").fact(IdleGaps) for name in ("rtx2060-launch-bound", "v100-resnet50-fp32")
    )
    assert bound.kernels == 156
    assert bound.launching_ms > 0.6 * bound.idle_ms
    assert bound.causes[IdleCause.QUEUED] < 0.01 * bound.idle_ms
    assert stored.causes[IdleCause.QUEUED] > 5.0
    assert stored.launching_ms < 0.01 * 406


def test_rocms_copies_take_their_direction_from_the_call_that_made_them() -> None:
    attention, conv = (facts(f"mi300x-jax-{n}").fact(Transfers) for n in ("attention", "conv"))
    assert [(one.direction, one.count) for one in attention.directions] == [(H2D, 18)]
    assert attention[H2D].nbytes is None
    assert conv[D2D].count == 33


NOT_RECORDED = ("tf24-laptop-gpu-no-cupti", "tf2-macos-cpu-lenet")

test_what_was_not_recorded_is_not_made_up = unavailable(
    *(
        (partial(lambda name, kind: facts(name).fact(kind), name, kind), r"CUPTI|no GPU")
        for name in NOT_RECORDED
        for kind in (GpuUtilization, IdleGaps, Transfers)
    )
)

# Kernels

NORMALIZE = ("FusedBatchNormV3", "FusedBatchNormGradV3")


def took(name: str, *types: str) -> float:
    """Return the ms of operations of these types."""
    return sum(row.ms for row in facts(name).fact(Operations).rows if row.type in types)


def kernels_took(name: str, part: str) -> float:
    """Return the ms of kernels by what their names hold."""
    return sum(ms for kernel, ms in by_kernel(name).items() if part in kernel)


def by_kernel(name: str) -> dict[str, float]:
    """Return the ms of each kernel on the busiest device, whatever the steps."""
    events = (event for line in work_lines(sure(facts(name).fact(Device).busiest)) for event in line.events())
    return summed((event.name, event.duration_ps / 1e9) for event in events)


test_operations_take_what_was_measured_by_hand = answers(
    took,
    ("tf24-v100-resnet50-fp32", *sorted(CONVOLUTIONS), near(226)),
    ("tf24-v100-resnet50-fp32", *NORMALIZE, near(48.5)),
    ("tf24-v100-resnet50-fp32", "ReluGrad", "BiasAdd", "Relu", near(43.8)),
    ("tf24-v100-input-wait", *NORMALIZE, near(5.1)),
    ("tf23-p4-alexnet-fp32", *sorted(CONVOLUTIONS), near(103)),
    ("tf23-p4-alexnet-fp32", *NORMALIZE, near(26.9)),
    ("tf24-t4-lenet", "Conv2DBackpropFilter", near(2.4)),
    ("v100x8-bert-partial-step", "Cast", near(6.4)),
    ("v100x8-bert-partial-step", "RandomUniform", near(4.0)),
    ("v100x8-bert-partial-step", "GreaterEqual", near(2.7)),
    ("v100x8-bert-partial-step", "Mul", near(1.8)),
)

test_kernels_of_amds_gpus_take_what_was_measured_by_hand = answers(
    kernels_took,
    ("mi300x-jax-conv", "Cijk", near(1.5)),
    ("mi300x-jax-conv", "input_transpose_fusion.kd", near(1.8)),
    ("mi355x-jax-te-attention", "FmhaBwdDQDKDV", near(4.3)),
    ("mi355x-jax-te-attention", "FmhaFwd", near(2.1)),
    ("mi355x-jax-te-attention", "gemm_fusion", near(3.6)),
)


@each("tf24-v100-resnet50-fp32", "tf24-v100-input-wait", "tf24-rtx2060-launch-bound", "tf24-t4-lenet")
def test_no_kernel_of_the_float32_runs_uses_tensor_cores(name: str) -> None:
    unit = facts(name).fact(MatrixUnit)
    assert (unit.on_unit_ms, unit.unknown_ms) == (0, 0)
    assert unit.off_unit_ms
    assert unit.matrix_ms == pytest.approx(unit.off_unit_ms + unit.beside_ms)
    assert [precision for precision, _ in unit.precisions] == ["fp32"]

    found = facts(name).call(float32_matmul.check)
    assert isinstance(found, Finding)
    assert "mixed_float16" in found.remedies[0].code


def test_a_card_without_tensor_cores_is_never_advised_to_use_them() -> None:
    known = facts("tf23-p4-alexnet-fp32")
    assert known.fact(Hardware).without_unit
    with pytest.raises(Unavailable, match=r"6\.1 have no Tensor Cores"):
        known.fact(MatrixUnit)
    assert isinstance(known.call(float32_matmul.check), NotApplicable)


def test_a_partial_step_without_products_has_no_matrix_work() -> None:
    unit = facts("v100x8-bert-partial-step").fact(MatrixUnit)
    assert (unit.matrix_ms, unit.on_unit_ms, unit.off_unit_ms) == (0, 0, 0)
    assert not isinstance(idle_matrix_unit.check(unit), Finding)


@cases(("mi300x-jax-conv", 1.5, 0), ("mi300x-jax-attention", 1.53, 0.36), ("mi355x-jax-te-attention", 6.93, 3.63))
def test_matrix_cores_of_amds_gpus_are_recognised(name: str, on: float, maybe: float) -> None:
    """Triton's products are unknown, everything else is told by its name."""
    kinds = ((kernel(one), ms) for one, ms in by_kernel(name).items())
    sums = summed((one.on_unit, ms) for one, ms in kinds if one.role is KernelRole.MATMUL)
    assert (sums[True], sums.get(None, 0.0), sums.get(False)) == (near(on), near(maybe), None)


def test_the_share_of_products_in_the_attention_on_amd() -> None:
    sums = by_kernel("mi300x-jax-attention")
    products = sum(ms for name, ms in sums.items() if kernel(name).role is KernelRole.MATMUL)
    shares = [ms / sum(sums.values()) for ms in (products, sums["loop_convert_fusion.kd"])]
    assert shares == [near(0.49), near(0.40)]


@cases(("mi300x-jax-conv", "gfx942", 1307e12, 5.3e12), ("mi355x-jax-te-attention", "gfx950", 2517e12, 8.0e12))
def test_amds_gpus_are_known_by_their_planes(name: str, chip: str, peak: float, bandwidth: float) -> None:
    """Peaks of the data sheets, which name neither trace's plane."""
    found = facts(name).fact(Hardware)
    assert chip in found.name
    assert found.peak_flop_s == pytest.approx(peak, rel=0.01)
    assert found.bandwidth_bytes_s == near(bandwidth)
    assert found.matrix_unit == "Matrix Core"


# TPUs

ARRAY = 5 * 1024 * 1024 * 256 * 4
"""Bytes of the tensor that the stress test copies to and fro."""


@cache
def opened(name: str) -> Chart:
    recording = Recording.open(TRACES / name)
    return Chart([xplane.read(recording.traces[0]), recording])


def offload(kind: type[Measured]) -> Measured:
    return opened("tpu-v6e-jax-host-offload").fact(kind)


def test_a_run_of_the_program_and_no_step() -> None:
    time = offload(TpuTime)
    assert (time.unit, time.program) == ("run", "jit_f")
    assert [core.rounds for core in time.cores] == [100] * 4
    assert time.busiest.round_ms == near(784)
    with pytest.raises(Unavailable, match=r"no compiled program computes gradients.*jax\.profiler"):
        offload(Steps)


def test_copies_take_nearly_all_of_it() -> None:
    for core in offload(TpuTime).cores:
        assert core.share(COPIES) == near(0.965)
        assert core.parts[IDLE] < 0.01
        assert [(copy.where, copy.nbytes) for copy in core.copies] == [("host", ARRAY)] * 6
        assert core.host_bytes / core.round_ms / 1e6 == near(41)  # GB/s, both directions


def test_the_longest_copies_hide_behind_each_other_and_not_behind_work() -> None:
    core = offload(TpuTime).busiest
    assert core.hidden_ms <= core.parts[COMPUTE] == near(24)


def test_the_cores_wait_for_each_other_at_three_barriers() -> None:
    time = offload(TpuTime)
    assert len(time.barrier_skews_ms) == 3
    assert max(time.barrier_skews_ms) == near(341)
    last_to_come, *others = sorted(core.barriers_ms[0] for core in time.cores)
    assert last_to_come < 0.01
    assert others == [near(11.8), near(26.7), near(341)]


def test_the_host_launches_late_before_the_loop() -> None:
    launches, core = offload(TpuLaunches), sure(offload(Device).busiest)
    assert launches.runs == 103
    busy = sum(module.busy_ps for module in module_runs(core)) / 1e9
    assert launches.between_ms == near(launches.window_ms - busy)
    assert launches.late_ms == near(launches.between_ms)
    # As xprof has it: 13.4 % idle, 86.5 % of the time with an operation.
    assert launches.between_ms / launches.window_ms == near(0.13)


@cases(
    ("mi300x-jax-conv", "no compiled program computes gradients .*forward_3d_conv"),
    ("mi300x-jax-attention", "no compiled program computes gradients"),
    ("mi355x-jax-te-attention", "loss_fn computes gradients .* not show that it changes weights"),
)
def test_runs_of_jax_on_amd_have_no_step_time(name: str, why: str) -> None:
    framework = opened(name).fact(Framework)
    assert framework.name == JAX
    assert framework.evidence.startswith("the trace contains the event PjitFunction(")
    with pytest.raises(Unavailable, match=why) as steps:
        opened(name).fact(Steps)
    assert "jax.profiler.StepTraceAnnotation" in str(steps.value)
    assert "tfdoctor profile" not in str(steps.value)
    with pytest.raises(Unavailable, match=r"shows no tf\.data pipeline"):
        opened(name).fact(InputPipeline)

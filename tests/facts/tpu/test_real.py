"""Real traces of JAX on TPUs and AMD GPUs: each statement of the README of the traces, within 5 %."""

from tests.facts.kit import *
from tfdoctor.facts.run.xla_programs import module_runs
from tfdoctor.facts.tpu.time import COMPUTE, COPIES, IDLE

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not at hand")

OFFLOAD = "tpu-v6e-jax-host-offload"
ARRAY = 5 * 1024 * 1024 * 256 * 4
"""Bytes of the tensor that the stress test copies to and fro."""


def chart_of_file(name: str) -> Chart:
    recording = Recording.open(TRACES / name)
    return Chart([xplane.read(recording.traces[0]), recording])


@pytest.fixture(scope="module")
def offload() -> Chart:
    return chart_of_file(OFFLOAD)


def near(value: float) -> object:
    return pytest.approx(value, rel=0.05)


def test_a_run_of_the_program_and_no_step(offload: Chart) -> None:
    time = offload.fact(TpuTime)
    assert (time.unit, time.program) == ("run", "jit_f")
    assert [core.rounds for core in time.cores] == [100] * 4
    assert time.busiest.round_ms == near(784)
    with pytest.raises(Unavailable, match=r"no compiled program computes gradients.*jax\.profiler"):
        offload.fact(Steps)


def test_copies_take_nearly_all_of_it(offload: Chart) -> None:
    for core in offload.fact(TpuTime).cores:
        assert core.share(COPIES) == near(0.965)
        assert core.parts[IDLE] < 0.01
        assert {copy.where for copy in core.copies} == {"host"}
        assert [copy.nbytes for copy in core.copies] == [ARRAY] * 6
        assert core.host_bytes / core.round_ms / 1e6 == near(41)  # GB/s, both directions


def test_the_longest_copies_hide_behind_each_other_and_not_behind_work(offload: Chart) -> None:
    core = offload.fact(TpuTime).busiest
    assert core.parts[COMPUTE] == near(24)
    assert core.hidden_ms <= core.parts[COMPUTE]


def test_the_additions_are_bound_by_memory(offload: Chart) -> None:
    operations = offload.fact(TpuOperations)
    assert len(operations.rows) == 3
    assert operations.memory_bound_ms == pytest.approx(operations.compute_ms)
    for row in operations.rows:
        assert row.ms == near(8)
        assert row.nbytes == near(10.7e9)
        assert operations.memory_bound(row)
        # 82 %; the README says 78: 1638 GB/s are the peak, 10.7 GB in 8.0 ms are 1340.
        rate = (row.nbytes or 0) * row.calls / (row.ms * 1e-3)
        assert rate / (operations.bandwidth_bytes_s or 1) == near(0.80)


def test_the_mxu_is_unused(offload: Chart) -> None:
    operations = offload.fact(TpuOperations)
    assert operations.mxu_use == 0.0
    assert operations.ridge == near(918e12 / 1638e9)
    with pytest.raises(Unavailable, match="no matmul or convolution"):
        offload.fact(Padding)


def test_the_cores_wait_for_each_other_at_three_barriers(offload: Chart) -> None:
    time = offload.fact(TpuTime)
    assert len(time.barrier_skews_ms) == 3
    assert max(time.barrier_skews_ms) == near(341)
    first = sorted(core.barriers_ms[0] for core in time.cores)
    assert first[1:] == [near(11.8), near(26.7), near(341)]
    assert first[0] < 0.01  # the last to come


def test_the_host_launches_late_before_the_loop(offload: Chart) -> None:
    launches = offload.fact(TpuLaunches)
    assert launches.runs == 103
    core = offload.fact(Device).busiest
    busy = sum(module.busy_ps for module in module_runs(core)) / 1e9 if core else 0.0
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
    one = chart_of_file(name)
    framework = one.fact(Framework)
    assert framework.name == JAX
    assert framework.evidence.startswith("the trace contains the event PjitFunction(")
    with pytest.raises(Unavailable, match=why) as steps:
        one.fact(Steps)
    assert "jax.profiler.StepTraceAnnotation" in str(steps.value)
    assert "tfdoctor profile" not in str(steps.value)
    with pytest.raises(Unavailable, match=r"shows no tf\.data pipeline"):
        one.fact(InputPipeline)

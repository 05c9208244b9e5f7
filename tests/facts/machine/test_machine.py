"""How many threads and cores a run kept at work, told by its trace or by the samples."""

from tests.facts.kit import *
from tfdoctor.facts.machine.cores import CROWDED

FOUR = Hardware(DeviceKind.CPU, "x", cores=4.0)
COMPUTE = line("tf_Compute/1", executor(0, 100), ("model/conv/Conv2D:Conv2D", 0, 40))


def with_pool(made: Trace, *tasks: tuple[float, float]) -> Trace:
    """The same trace, with tasks on a thread of the intra-op pool, in ms."""
    (host,) = made.planes
    spans = np.array([[round(a * PS), round(b * PS)] for a, b in tasks], np.int64).reshape(-1, 2)
    pool = replace(host.lines[-1], name="tf_numa_-1_Eigen/7", tasks_ps=spans)
    return replace(made, planes=(replace(host, lines=(*host.lines[:-1], pool)),))


def steps_with(*threads: Thread, tasks: tuple[tuple[float, float], ...] = ()) -> Chart:
    made = trace([markers(1, 100), *threads, line("tf_numa_-1_Eigen/7")])
    return chart(with_pool(made, *tasks), recording(manifest=manifest()))


LATE = line("tf_Compute/1", executor(0, 100), ("model/conv/Conv2D:Conv2D", 20, 40))


@cases(
    (COMPUTE, ((0, 10), (20, 40)), {"Conv2D": 1.75}),
    (LATE, ((10, 30), (35, 90)), {"Conv2D": 1.75}),  # of a task that begins before, what lies within
    (COMPUTE, (), {}),
)
def test_the_pools_threads_count_for_the_operation_that_they_ran_beside(
    compute: Thread, tasks: tuple[tuple[float, float], ...], by_type: dict[str, float]
) -> None:
    found = steps_with(compute, tasks=tasks).fact(Threads)
    assert found.by_type == pytest.approx(by_type)
    assert ("no task of the intra-op pool" in found.why_unknown) == (not tasks)
    assert bool(found.why_unknown) == (not tasks)


DATA = line("tf_data_private_threadpool/1", executor(0, 30))
WAITS = line("tf_Compute/2", executor(0, 90), ("IteratorGetNextOp::DoCompute", 0, 80))


@cases((steps_with(COMPUTE, tasks=((0, 10), (20, 40))), 0.7), (steps_with(DATA, WAITS), 0.3))
def test_operations_the_pool_and_what_tf_data_executes_are_at_work(facts: Chart, threads: float) -> None:
    assert facts.fact(Threads).at_work == pytest.approx(threads)


def test_samples_come_before_what_the_trace_shows() -> None:
    seen = Threads(at_work=3.0, by_type={})
    sampled = Cores.measure(FOUR, Samples(9, run_cores=1.0, other_cores=2.0), seen, Framework())
    assert sampled == Cores(4.0, 1.0, 2.0, sampled=True)
    assert (sampled.free, sampled.share, sampled.certain) == (3.0, 0.25, False)


@pytest.mark.parametrize(("at_work", "busy"), [(3.0, 3.0), (9.0, 4.0)])
@pytest.mark.parametrize("samples", [None, Samples(9)])
def test_without_samples_the_traces_threads_count(samples: Samples | None, at_work: float, busy: float) -> None:
    found = Cores.measure(FOUR, samples, Threads(at_work, {}), Framework())
    assert found == Cores(4.0, busy, sampled=False)
    assert not found.certain


test_without_either_the_cores_are_unknown = unavailable(
    (lambda: Cores.measure(Hardware(DeviceKind.CPU, "x"), None, Threads(1.0, {}), Framework()), "how many cores"),
    (lambda: Cores.measure(FOUR, None, Unavailable("no host"), Framework()), "no host"),
)


# What the input's work takes from a CPU's compute.

CPU, GPU = Device(DeviceKind.CPU, 1, 1), Device(DeviceKind.GPU, 1, 1)
STEP = Breakdown.of(input=10.0, device=30.0)


@cases(
    (CPU, Cores(2.0, 2.0 * CROWDED), True),
    (CPU, Cores(2.0, 1.4), False),
    (CPU, Cores(2.0, 1.0, others=0.5), True),
    (CPU, Cores(2.0, 2.0, sampled=False), None),
    (CPU, None, None),
    (GPU, Cores(2.0, 2.0), False),
)
def test_only_a_cpu_whose_cores_are_at_work_is_crowded(
    device: Device, cores: Cores | None, *, crowded: bool | None
) -> None:
    assert CpuContention.measure(device, cores, STEP).crowded is crowded


def test_all_cores_would_share_what_is_gone() -> None:
    """8 ms of work, three quarters of it while the step computes, on two cores."""
    found = CpuContention.measure(CPU, Cores(2.0, 2.0), STEP)
    assert found.taken_ms(8.0) == pytest.approx(3.0)
    (effect,) = found.relief(8.0)
    assert effect.scales == pytest.approx(0.9)
    # Free cores leave nothing to gain.
    assert CpuContention(crowded=False).relief(8.0) == CpuContention(crowded=None).relief(8.0) == ()


@given(st.floats(0, 1e4), st.floats(0.1, 64), st.floats(0, 100), st.floats(0, 1))
def test_no_more_is_gained_than_the_compute_takes(work: float, cores: float, compute: float, beside: float) -> None:
    found = CpuContention(crowded=True, cores=cores, compute_ms=compute, beside=beside)
    assert 0 <= found.taken_ms(work) <= compute
    assert all(0 <= effect.scales <= 1 for effect in found.relief(work))


def test_other_programs_count_where_no_core_is_free() -> None:
    for device in (CPU, GPU):
        assert CpuContention.measure(device, Cores(2.0, 0.5, 1.5), STEP).others == 1.5
        assert CpuContention.measure(device, Cores(4.0, 0.5, 1.5), STEP).others == 0.0
        assert not CpuContention.measure(device, None, STEP).disturbance


# The sampled load of the machine, with and without a traced window.

READ = ((0.0, 0), (24.0, 90), (42.2, 92), (42.4, 92), (None, 94))
"""Readings of GPM (each the mean of half a second) and NVML's load: an idle GPU, then a busy one."""


def sampled(*readings: tuple[float | None, int]) -> Samples:
    rows = [
        {"unix_ns": at, "host": {"run_cpu_pct": 1.0}, "gpu": [{"gpu_pct": load, "tensor_pct": tensor}]}
        for at, (tensor, load) in enumerate(readings)
    ]
    return Samples.measure(recording(samples=rows), Framework())


def test_idle_time_around_an_unknown_window_does_not_count() -> None:
    assert sampled(*READ).tensor_share == pytest.approx(42.2 / 92)
    assert sampled((0.0, 3)).tensor_share is None  # never busy

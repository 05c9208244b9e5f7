"""How many threads and cores a run kept at work, told by its trace or by the samples."""

from tests.facts.kit import *

told = Told()
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
DATA = line("tf_data_private_threadpool/1", executor(0, 30))
WAITS = line("tf_Compute/2", executor(0, 90), ("IteratorGetNextOp::DoCompute", 0, 80))
UNKNOWN = Hardware(DeviceKind.CPU, "x")

told[lambda *threads: steps_with(*threads).fact(Threads)] = {
    "what tf.data executes is at work, and no wait": (DATA, WAITS),
    "a pool without tasks": (COMPUTE,),
}
told[lambda compute, *tasks: steps_with(compute, tasks=tasks).fact(Threads)] = {
    "the pools threads count for the operation that they ran beside": (COMPUTE, (0, 10), (20, 40)),
    "of a task that begins before it, what lies within does": (LATE, (10, 30), (35, 90)),
}
told[lambda samples, threads, hardware=FOUR: Cores.measure(hardware, samples, threads, Framework())] = {
    "samples come before what the trace shows": (Samples(9, run_cores=1.0, other_cores=2.0), Threads(3.0, {})),
    "where no other is at work they are certain": (Samples(9, run_cores=1.0, other_cores=0.0), Threads(3.0, {})),
    "without samples the traces threads count": (None, Threads(3.0, {})),
    "also where they tell nothing of cores": (Samples(9), Threads(3.0, {})),
    "there are no more cores at work than there are": (None, Threads(9.0, {})),
    "a machine of unknown cores": (None, Threads(1.0, {}), UNKNOWN),
    "a trace without a host": (None, Unavailable("no host")),
}

# What the input's work takes from a CPU's compute.

CPU, GPU = Device(DeviceKind.CPU, 1, 1), Device(DeviceKind.GPU, 1, 1)
STEP = Breakdown.of(input=10.0, device=30.0)

told[lambda device, cores: CpuContention.measure(device, cores, STEP)] = {
    "a CPU whose cores are at work is crowded": (CPU, Cores(2.0, 2.0 * CROWDED)),
    "one of which some are free is not": (CPU, Cores(2.0, 1.4)),
    "other programs crowd it as well": (CPU, Cores(2.0, 1.0, others=0.5)),
    "without samples it is not known": (CPU, Cores(2.0, 2.0, sampled=False)),
    "nor without cores": (CPU, None),
    "a GPU computes on no core": (GPU, Cores(2.0, 2.0)),
    "other programs count where no core is free": (CPU, Cores(2.0, 0.5, 1.5)),
    "beside a GPU too": (GPU, Cores(2.0, 0.5, 1.5)),
    "not where some are": (CPU, Cores(4.0, 0.5, 1.5)),
    "nor beside a GPU": (GPU, Cores(4.0, 0.5, 1.5)),
}

test_machine = told.test("machine")


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

"""How many threads and cores a run kept at work, told by its trace or by the samples."""

from dataclasses import replace

import numpy as np
import pytest

from tests.builders import PS, Thread, chart, executor, line, manifest, markers, recording, trace
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.machine.cores import Cores, Threads
from tfdoctor.facts.machine.samples import Samples
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import Trace

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


def test_the_pools_threads_count_for_the_operation_that_they_ran_beside() -> None:
    found = steps_with(COMPUTE, tasks=((0, 10), (20, 40))).fact(Threads)
    assert found.by_type == {"Conv2D": pytest.approx(1.75)}
    assert found.at_work == pytest.approx(0.7)
    assert not found.why_unknown


def test_a_task_that_begins_before_an_operation_counts_for_what_lies_within() -> None:
    late = line("tf_Compute/1", executor(0, 100), ("model/conv/Conv2D:Conv2D", 20, 40))
    found = steps_with(late, tasks=((10, 30), (35, 90))).fact(Threads)
    assert found.by_type == {"Conv2D": pytest.approx(1.75)}


def test_without_a_task_of_the_pool_nothing_is_said_of_its_threads() -> None:
    found = steps_with(COMPUTE).fact(Threads)
    assert not found.by_type
    assert "no task of the intra-op pool" in found.why_unknown


def test_what_tf_data_executes_is_at_work_but_not_what_waits() -> None:
    data = line("tf_data_private_threadpool/1", executor(0, 30))
    waits = line("tf_Compute/2", executor(0, 90), ("IteratorGetNextOp::DoCompute", 0, 80))
    assert steps_with(data, waits).fact(Threads).at_work == pytest.approx(0.3)


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


def test_without_either_the_cores_are_unknown() -> None:
    with pytest.raises(Unavailable, match="how many cores"):
        Cores.measure(Hardware(DeviceKind.CPU, "x"), None, Threads(1.0, {}), Framework())
    with pytest.raises(Unavailable, match="no host"):
        Cores.measure(FOUR, None, Unavailable("no host"), Framework())

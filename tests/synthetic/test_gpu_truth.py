"""What tfdoctor says of a synthetic GPU's time is what is known of it, within 2 %."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.synthetic import samples
from scripts.synthetic.gpu_truth import GpuTruth, gpu_truth
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run, Truth
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.gpu.activity import D2H, H2D, PAGEABLE, PINNED, Collectives, Transfers
from tfdoctor.facts.gpu.idle_gaps import GpuUtilization, IdleGaps
from tfdoctor.recording import Recording
from tfdoctor.trace import xplane, xprof

LARGE = Network(batch=256, size=128, width=16)

RUNS = {
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


@dataclass(frozen=True)
class Case:
    run: Run
    truth: Truth
    ruler: GpuTruth
    chart: Chart
    path: Path


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    return {name: _case(run, tmp_path_factory.mktemp("run")) for name, run in RUNS.items()}


def _case(run: Run, folder: Path) -> Case:
    truth = samples.write(run, folder)
    recording = Recording.open(folder)
    path = recording.traces[0]
    return Case(run, truth, gpu_truth(run), Chart([xplane.read(path), recording]), path)


def close(expected: float) -> object:
    return pytest.approx(expected, rel=0.02, abs=1e-4)


@pytest.mark.parametrize("name", RUNS)
def test_kernels_copies_waits_and_idle_time(cases: dict[str, Case], name: str) -> None:
    case, time = cases[name], cases[name].chart.fact(GpuUtilization)
    assert time.round_ms == close(case.truth.step_ms)
    assert time.busiest.kernel_ms == close(case.ruler.kernel_ms)
    assert time.busiest.busy_ms == close(case.ruler.busy_ms)
    assert time.round_ms - time.busiest.busy_ms == close(case.ruler.idle_ms)
    assert time.wait_ms == close(case.truth.input_wait_ms)
    assert time.exposed_wait_ms == close(case.ruler.exposed_wait_ms)
    assert time.busiest.kernels == case.truth.operations


@pytest.mark.parametrize("name", RUNS)
def test_gaps_by_size_and_by_what_the_host_does(cases: dict[str, Case], name: str) -> None:
    ruler, gaps = cases[name].ruler, cases[name].chart.fact(IdleGaps)
    assert gaps.sizes == {size: close(value) for size, value in ruler.sizes.items()}
    assert gaps.gaps == {size: close(number) for size, number in ruler.gaps.items()}
    known = ruler.causes | {"synchronizing with the GPU": 0.0}
    assert gaps.causes == {cause: close(value) for cause, value in known.items()}


@pytest.mark.parametrize("name", RUNS)
def test_copies(cases: dict[str, Case], name: str) -> None:
    case, transfers = cases[name], cases[name].chart.fact(Transfers)
    batch, loss = transfers[H2D], transfers[D2H]
    assert (batch.count, loss.count, loss.nbytes) == (1, 1, 4)
    assert batch.nbytes == case.truth.copy_bytes
    assert batch.ms == close(case.truth.copy_ms)
    assert batch.exposed_ms == close(case.ruler.copy_exposed_ms)
    assert batch.rate == close(case.truth.copy_bytes / case.truth.copy_ms * 1e3)
    assert batch.host_memory == (PAGEABLE if case.run.copy == "pageable" else PINNED)


@pytest.mark.parametrize("name", RUNS)
def test_all_reduces(cases: dict[str, Case], name: str) -> None:
    case, collectives = cases[name], cases[name].chart.fact(Collectives)
    assert collectives.ms == close(case.run.all_reduce_ms)
    assert collectives.exposed_ms == close(case.ruler.all_reduce_exposed_ms)
    assert collectives.ms - collectives.exposed_ms == close(
        case.run.all_reduce_ms - case.ruler.all_reduce_exposed_ms
    )
    assert collectives.kinds == ((("AllReduce", 1.0),) if case.run.all_reduce_ms else ())


def test_an_all_reduce_is_hidden_as_far_as_kernels_run(cases: dict[str, Case]) -> None:
    collectives = cases["a100 sums gradients"].chart.fact(Collectives)
    assert 1.09 < collectives.exposed_ms < 1.4


@pytest.mark.parametrize("name", RUNS)
def test_every_gpu_is_there_and_the_idle_ones_did_nothing(cases: dict[str, Case], name: str) -> None:
    gpus = cases[name].chart.fact(GpuUtilization).gpus
    assert len(gpus) == 1 + cases[name].run.idle_gpus
    assert [gpu.busy_ms for gpu in gpus[1:]] == [0.0] * cases[name].run.idle_gpus


def test_the_cases_differ_in_what_they_are_to_show(cases: dict[str, Case]) -> None:
    """A test of ten runs without a hidden copy, say, would prove little."""
    hidden = cases["t4 hides its copy"]
    assert hidden.ruler.copy_exposed_ms < 0.2 * hidden.truth.copy_ms
    launching = cases["a100 is launch-bound"].chart.fact(IdleGaps)
    assert launching.launching_ms > 0.5 * cases["a100 is launch-bound"].truth.step_ms
    queued = cases["v100 leaves three idle"].chart.fact(IdleGaps)
    assert queued.kernels > 0


def test_xprof_sees_no_wait_and_counts_copies_as_compute(cases: dict[str, Case]) -> None:
    """The same trace in which 3 ms of every step are a wait for input."""
    case = cases["a100 waits for input"]
    with xprof.Asked(case.path) as asked:
        opinion = asked.opinion()
    assert not opinion.error
    assert "HIGHLY" not in opinion.conclusion
    assert opinion.step_ms is not None
    assert opinion.step_ms < case.truth.step_ms - 2.9  # from the first kernel to the last
    time = case.chart.fact(GpuUtilization)
    assert time.exposed_wait_ms == close(3.0)
    assert time.busiest.kernel_ms + time.busiest.copy_ms == close(time.busiest.busy_ms)

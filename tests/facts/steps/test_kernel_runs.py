"""Steps of compiled programs on a GPU, by real traces.

Recorded on 2026-11-22 with JAX 0.11.2 on one NVIDIA H100 80GB HBM3 (driver 580.159.04, CUDA 13), by a script
of ours: twelve steps of plain SGD, queued without waiting; XLA runs them as CUDA graphs. Six convolutions of
128 channels on 128 images of 56x56 pixels, in float32 (TF32) and in bfloat16; eight bfloat16 products of
4096x4001x4001. The times were taken without the profiler: the mean of sixty steps between two waits for the
device, median of three. Paths of the machine, its name and the Python call stacks were taken out.
"""

import gzip
from pathlib import Path

import pytest

from tests.builders import chart, line, trace
from tests.facts.test_jax import calls, gpu_work, marked
from tfdoctor.facts.chart import Chart, Unavailable
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.terms.kinds import StepSource
from tfdoctor.trace import xplane

TRACES = Path(__file__).parents[1] / "traces"

TIMED_MS = {
    "jax-h100-convnet-float32": 8.79,
    "jax-h100-convnet-bfloat16": 3.89,
    "jax-h100-mlp-bfloat16-4001": 17.34,
}


@pytest.fixture(params=TIMED_MS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def charted(name: str, folder: Path) -> Chart:
    data = gzip.decompress((TRACES / f"{name}.xplane.pb.gz").read_bytes())
    (folder / "host.xplane.pb").write_bytes(data)
    opened = Recording.open(folder)
    return Chart([xplane.read(opened.traces[0]), opened])


def test_a_host_that_runs_ahead_leaves_the_runs_on_the_gpu_as_steps(name: str, tmp_path: Path) -> None:
    steps = charted(name, tmp_path).fact(Steps)

    assert (steps.source, steps.program, steps.count) == (StepSource.XLA_RUNS, "train_step", 12)
    assert steps.median_ms == pytest.approx(TIMED_MS[name], rel=0.03)


def test_their_time_is_the_devices(name: str, tmp_path: Path) -> None:
    parts = charted(name, tmp_path).fact(Breakdown)

    assert parts["device"] > 0.95 * parts.step_ms


def test_kernels_that_no_run_has_exactly_once_mark_no_step() -> None:
    host = line("python", *marked(6, 1, 0.9, "train"), *calls(6, 1, 0.5))
    with pytest.raises(Unavailable, match="ran ahead of the device"):
        chart(trace([host], gpus=[gpu_work(6, 10)])).fact(Steps)

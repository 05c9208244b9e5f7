"""idle-device: devices that nobody uses, and those that only seem idle."""

from scripts.synthetic import samples
from scripts.synthetic.run import Run
from tests.rules.kit import *
from tests.xspaces import TRACES
from tfdoctor.rules.scale.idle_device import check


def example(
    used: int = 1, visible: int = 4, replicas: Replicas = Replicas(), *, kind: DeviceKind = DeviceKind.GPU,
    steps: int = 20, missing: Unavailable | None = None,
) -> Verdict:  # fmt: skip
    """One of four GPUs works."""
    device = Device(kind, visible, used, missing=missing)
    return check(device, replicas, even_steps(steps, 50.0), Framework())


sick = example
healthy = described("All of four GPUs work.", example, used=4)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["three of four GPUs work, and all"] = example(3), example(4)
    told["three steps, and two, which are a part of a step"] = example(steps=3), example(steps=2)
    told["a search over parameters gives each process a GPU, or four"] = example(1, 8, Replicas(granted=1))
    told[...] = example(1, 8, Replicas(granted=4))
    told["devices of other processes"] = example(1, 8, Replicas(workers=8))
    told["kernels that were not recorded"] = example(0, missing=NO_CUPTI)
    told["a CPU"] = example(1, 1, kind=DeviceKind.CPU)
    devices = ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]
    run = {"strategy": "MirroredStrategy", "replicas": 2, "batch_size": 32, "devices": devices}
    program = {"run": run, "datasets": [{"id": 0, "class": "_RebatchDataset"}]}
    replicas = chart(trace(), recording(program)).fact(Replicas)
    told["they are as the run recorded them, each with a part of the batch"] = replicas, replicas.each
    undivided = Replicas(2, 2, batch=16)
    told["distribute_datasets_from_function makes the batch of one replica, which nobody divides"] = undivided.each
    job, trained = manifest(worker=WorkerRank("worker-0", 0, 4)), EndedProcess(trained=True)
    two = manifest(processes=(trained, trained, EndedProcess()))
    told["workers, and processes"] = [
        chart(trace(), recording(manifest=one)).fact(Replicas).workers for one in (job, two)
    ]


def test_three_of_four_gpus_of_a_synthetic_run_are_idle(tmp_path: Path) -> None:
    truth = samples.write(Run(device="v100", idle_gpus=3), tmp_path)
    of = Recording.open(tmp_path)
    result = examined(check, Chart([xplane.read(of.traces[0]), of]))
    assert isinstance(result.outcome, Finding)
    assert result.outcome.summary.startswith("3 of 4 GPUs")
    assert result.saving is not None
    assert result.saving.bound is Bound.AT_MOST
    assert result.saving.ms_per_step <= 0.75 * truth.compute_ms + 1e-3


@pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not at hand")
def test_a_partial_step_of_eight_gpus_accuses_none_of_them() -> None:
    path = next((TRACES / "v100x8-bert-partial-step").rglob("*.xplane.pb"))
    assert isinstance(examined(check, chart(xplane.read(path))).outcome, NotApplicable)

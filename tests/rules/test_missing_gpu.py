"""missing-gpu: what is told of each obstacle, and when nothing can be said."""

import pytest

from tests.rules.kit import *
from tfdoctor.recording.program import MissingLibrary
from tfdoctor.rules.scale.missing_gpu import Boards, Obstacle, check

CUDNN = MissingLibrary("libcudnn.so.9", "libcudnn.so.9: cannot open shared object file: No such file or directory")


def example(
    boards: Boards = Boards(("Tesla T4",), GpuAccess(missing=(CUDNN,), readable=True, files=1)),
    device: Device | None = None,
    phases: RunPhases | None = None,
) -> Verdict:
    """NVML lists a T4, and the loader does not find cuDNN."""
    return check(boards, device, phases)


sick = example


def healthy() -> Verdict:
    """TensorFlow registers the GPU."""
    return example(Boards(names=("Tesla T4",), usable=1))


NO_DRIVER = GpuAccess(driver="no driver")
MACHINE = [{"unix_ns": 1, "gpu": [{"index": 0, "name": "Tesla T4"}]}]


def boards(samples: Any = MACHINE, devices: Any = ("/device:CPU:0",), **gpus: Any) -> Boards:
    """The fact of a recording with these samples and this record of the run."""
    run = {"devices": list(devices), "gpus": {"registered": 0, "cuda": True, **gpus}}
    return chart(trace([]), recording({"run": run}, samples)).fact(Boards)


@pytest.mark.parametrize(
    ("gpus", "obstacle", "detail"),
    [
        ({"shown": "-1"}, Obstacle.VARIABLE, "-1"),
        ({"shown": ""}, Obstacle.VARIABLE, ""),
        ({"registered": 1}, Obstacle.PROGRAM, ""),
        ({"cuda": False, "package": "tensorflow-cpu 2.21.0"}, Obstacle.BUILD, "tensorflow-cpu 2.21.0"),
        ({"driver": "CUDA_ERROR_NO_DEVICE (100)"}, Obstacle.DRIVER, "CUDA_ERROR_NO_DEVICE (100)"),
        ({"missing": [{"name": "libcudnn.so.9", "why": "not found"}]}, Obstacle.LIBRARY, ""),
        ({"shown": "0"}, Obstacle.UNKNOWN, ""),
    ],
)
def test_each_obstacle_is_known(gpus: Any, obstacle: Obstacle, detail: str) -> None:
    found = boards(**gpus)
    assert found.obstacle is obstacle
    finding = as_finding(example(found))
    assert "Tesla T4" in finding.summary
    assert detail in finding.summary
    assert finding.remedies
    chosen = obstacle in {Obstacle.VARIABLE, Obstacle.PROGRAM}
    assert finding.severity is (Severity.NOTE if chosen else Severity.WARNING)


def test_what_somebody_chose_comes_before_what_is_also_true() -> None:
    assert boards(shown="-1", cuda=False).obstacle is Obstacle.VARIABLE


def test_a_library_is_shown_with_the_message_of_the_loader() -> None:
    (table,) = (item for item in as_finding(example()).evidence if isinstance(item, Table))
    assert "cannot open shared object file" in str(table.rows)


def test_gpus_and_tpus_in_use_are_healthy() -> None:
    for kind in ("GPU", "TPU"):
        assert isinstance(example(boards(devices=("/device:CPU:0", f"/device:{kind}:0"))), Healthy)


def test_a_machine_without_a_gpu_for_this_run_is_not_judged() -> None:
    """Trap: device files of the host that are in a container which may not use them."""
    for found, said in (
        (Boards(access=NO_DRIVER), "no NVIDIA GPU"),
        (Boards(access=GpuAccess(files=8, readable=False, driver="no driver")), "may not open"),
        (Boards(("T4",), NO_DRIVER, foreign="jax"), "jax"),
    ):
        assert said in as_not_applicable(example(found)).reason


def test_device_files_that_can_be_opened_are_enough() -> None:
    found = boards((), files=2, readable=True, driver="libcuda.so.1: cannot open")
    assert "2" in str(as_finding(example(found)).evidence)


def test_a_program_that_uses_a_gpu_or_needs_none_is_not_judged() -> None:
    preparing = divided_run(1000.0, {Phase.PREPARING: 1000.0})
    found = example(boards(), device=Device(DeviceKind.GPU, 1, 1)), example(boards(), phases=preparing)
    assert kinds(*found) == [NotApplicable, NotApplicable]


def test_recordings_that_do_not_tell_are_not_judged() -> None:
    with pytest.raises(Unavailable, match="not recorded"):
        chart(trace([]), recording({"run": {"devices": ["/device:CPU:0"]}}, MACHINE)).fact(Boards)

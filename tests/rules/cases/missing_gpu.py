"""The cases of missing-gpu: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.recording.program import MissingLibrary
from tfdoctor.rules.scale.missing_gpu import check
from tfdoctor.rules.scale.missing_gpu.boards import Boards

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

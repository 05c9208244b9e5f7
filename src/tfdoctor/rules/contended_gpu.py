from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.machine.gpu_boards import Board, GpuBoards

__doc__, CODE = page(__file__)

TOPIC = Topic.SCALE
SINCE = "0.2.0"
BY_HAND = "which programs run on a GPU is not decided by the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """When other programs are reported."""

    share: float = share_limit(
        0.1, "Smallest share of the time with kernels of other programs on the GPU; less may be a display"
    )


def check(boards: GpuBoards, device: Device, limits: Limits = Limits()) -> Verdict:
    """Report the load by other programs of the GPUs that the run uses."""
    if device.kind is not DeviceKind.GPU:
        return NotApplicable(reason="the run used no GPU")
    others = max(board.others for board in boards.boards)
    if not others:
        return Healthy(summary="No other program computes on the GPUs of the run")
    known = [board for board in boards.boards if board.others_share is not None]
    if not known:
        return NotApplicable(
            reason=f"{counted(others, 'process', 'processes')} that may be of other programs use the GPU, and the "
            "driver does not tell how much each computes"
        )
    worst = max(known, key=_share)
    evidence = (
        Measure("processes of other programs", count(others)),
        Measure.share("share of the time with kernels of others", _share(worst), limits.share),
    )
    if _share(worst) < limits.share:
        summary = f"Kernels of other programs were on the GPU for {percent(_share(worst))} of the time"
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=f"Kernels of other programs were on {worst.name} for {percent(_share(worst))} of the time",
        evidence=(*evidence, _table(boards)),
        remedies=(Remedy("Give the run a GPU of its own", OWN_GPU),),
        effects=(Effect(Stage.DEVICE, 1.0 - _share(worst), bound=Bound.AT_MOST),),
    )


def _share(board: Board) -> float:
    return board.others_share or 0.0


def _table(boards: GpuBoards) -> Table:
    return Table.of(
        boards.boards,
        ("GPU", lambda board: f"{board.name} ({board.index})"),
        ("processes of other programs", lambda board: count(board.others)),
        (
            "share of the time with their kernels",
            lambda board: None if board.others_share is None else ratio(board.others_share),
        ),
    )


OWN_GPU = "# in a terminal: nvidia-smi lists the processes; then CUDA_VISIBLE_DEVICES=1 python train.py"

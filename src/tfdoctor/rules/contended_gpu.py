"""Other programs compute on the GPU meanwhile.

## What it checks

For how much of the time kernels of processes that are not of the run were on a GPU while the run used it too,
by the driver's own utilization of each process, read every 5 s. Processes that hold memory and compute nothing,
such as an idle notebook, do not count here.

## Why it matters

Processes on one GPU take turns: while the kernels of one run, those of the other wait. The compute time of a step
grows by up to the share that the others take.

## How to fix

Give each job a GPU of its own: `CUDA_VISIBLE_DEVICES`, or the scheduler's exclusive mode (`nvidia-smi -c
EXCLUSIVE_PROCESS`). `nvidia-smi` lists the processes. Where jobs are too small for a whole GPU, MIG divides one
of the larger data-center boards so that jobs do not wait for each other.

## Holds for

NVIDIA GPUs whose driver tells the utilization by process (not with MIG, and some recent boards do not),
recorded with `tfdoctor profile`. In a container the driver may name the host's processes; then this rule says
that it cannot tell them apart. The saving is an upper bound: kernels of two processes may run side by side
under MPS. This rule was tested with a stand-in for the driver's library: it was never seen on hardware.

## Sources

- [NVML, device queries: nvmlDeviceGetProcessUtilization, NVIDIA](https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html)
- [Multi-Process Service: time-slicing without it, NVIDIA](https://docs.nvidia.com/deploy/mps/index.html)
- [nvidia-smi: compute modes, NVIDIA](https://docs.nvidia.com/deploy/nvidia-smi/index.html)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.machine.gpu_boards import Board, GpuBoards
from tfdoctor.facts.run.device import Device
from tfdoctor.terms.humanize import counted, percent
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

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


def example(share: float | None = 0.4, *, others: int = 1, kind: DeviceKind = DeviceKind.GPU) -> Verdict:
    """Another process computes on the GPU for 40 % of the time."""
    board = Board(name="GPU", index=0, others=others, others_share=share)
    return check(GpuBoards((board,)), Device(kind, 1, 1))


sick = example


def healthy() -> Verdict:
    """An idle notebook holds memory of the GPU."""
    return example(0.0)

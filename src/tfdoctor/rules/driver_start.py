"""The NVIDIA driver starts anew with the program.

## What it checks

How long it took to open the GPUs when the recording began, where the driver's persistence mode is off and no other
program had them open. tfdoctor's sampler opens them beside the start of the program, and the first to do so waits
until the driver has initialized them. Without tfdoctor, the program itself waits: the time is one that it saves in
runs of its own, not in the recorded one.

## Why it matters

With persistence mode off, Linux's driver initializes each GPU when the first program opens it, and
deinitializes it when the last one ends. NVIDIA gives 1 to 3 s for each GPU, most of it to check the memory.
Short jobs, restarts and trials of a search pay it each time, and settings such as power limits are lost in
between.

## How to fix

Let the service `nvidia-persistenced` keep the driver loaded; packages of most distributions start it with the
machine. `nvidia-smi -pm 1` switches the older persistence mode on until the next restart. In a cloud or a cluster,
ask the administrators.

## Holds for

NVIDIA GPUs on Linux, in recordings of the whole run by `tfdoctor profile`. This rule was built from NVIDIA's
documentation and tested with a stand-in for the driver's library: it was never seen on hardware.

## Sources

- [Driver persistence, overview, NVIDIA](https://docs.nvidia.com/deploy/driver-persistence/overview.html)
- [NVML, device queries: nvmlDeviceGetPersistenceMode, NVIDIA](https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html)
- [tensorflow#27877: minutes until a GPU is found](https://github.com/tensorflow/tensorflow/issues/27877)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import whole_run
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.machine.gpu_boards import Board, GpuBoards
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.terms.humanize import milliseconds, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Concern, Finding, Healthy, Measure, NotApplicable, Remedy, Severity, Verdict

TOPIC = Topic.RUN
SINCE = "0.2.0"
PRECONDITIONS = (whole_run,)

BY_HAND = "the driver is a setting of the machine, not of the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """When the start of the driver is reported: it has to reach both."""

    least_ms: float = limit(
        1000.0,
        "Shortest time in ms to open all GPUs; NVIDIA gives 1 to 3 s for one that is initialized anew, others open "
        "in milliseconds",
    )
    share: float = share_limit(0.01, "Smallest ratio of that time to the time of the run")


def check(boards: GpuBoards, phases: RunPhases, limits: Limits = Limits()) -> Verdict:
    """Compare the time to open the GPUs with the run, where nothing keeps the driver loaded."""
    modes = [board.persistence for board in boards.boards]
    if boards.opened_ms is None or all(mode is None for mode in modes):
        return NotApplicable(
            reason="the driver does not tell its persistence mode: Linux's does, in recordings of the whole run"
        )
    evidence = (
        Measure("time to open all GPUs", ms(boards.opened_ms), ms(limits.least_ms)),
        Measure("GPUs with persistence mode off", count(modes.count(False))),
    )
    opened, share = milliseconds(boards.opened_ms), boards.opened_ms / phases.total_ms
    if False not in modes:
        summary = f"Persistence mode is on: the GPUs opened in {opened}"
        return Healthy(summary=summary, evidence=evidence, concern=Concern.RUN)
    if boards.opened_ms < limits.least_ms or share < limits.share or _in_use(boards):
        summary = f"Persistence mode is off, and the GPUs opened in {opened}"
        return Healthy(summary=summary, evidence=evidence, concern=Concern.RUN)
    return Finding(
        summary=f"Persistence mode is off, and the driver took {opened} to open the GPUs, as long as "
        f"{percent(share)} of the run",
        evidence=evidence,
        remedies=(Remedy("Keep the NVIDIA driver loaded with nvidia-persistenced", PERSISTENCE),),
        severity=Severity.NOTE,
        concern=Concern.RUN,
    )


def _in_use(boards: GpuBoards) -> bool:
    """Return whether other programs computed on each GPU when the run began: they had it open before."""
    return all(board.others_at_start for board in boards.boards)


PERSISTENCE = """\
# in a terminal, once: sudo systemctl enable --now nvidia-persistenced
# until the next restart of the machine: sudo nvidia-smi -pm 1"""


def example(
    opened_ms: float | None = 2_400.0,
    *,
    persistence: bool | None = False,
    others: int = 0,
    total_ms: float = 60_000.0,
) -> Verdict:
    """A run of a minute, before which the driver took 2.4 s to open the only GPU."""
    board = Board(name="GPU", index=0, persistence=persistence, others_at_start=others)
    boards = GpuBoards((board,), "580.95.05", opened_ms)
    return check(boards, RunPhases.divided(total_ms, {}))


sick = example


def healthy() -> Verdict:
    """The same run where the driver stays loaded."""
    return example(3.0, persistence=True)

from tfdoctor.families.kit import *
from tfdoctor.rules.scale.missing_gpu.boards import Boards, Obstacle

__doc__, CODE = page(__file__)

DELIBERATE = (Obstacle.VARIABLE, Obstacle.PROGRAM)  # Obstacles that somebody chose, perhaps for this run
WORK = (Phase.STEPS, Phase.EVALUATION, Phase.PREDICTION)
REMEDIES = {
    Obstacle.VARIABLE: Remedy("Remove the variable, if the run is meant for the GPU", CODE["shown"]),
    Obstacle.PROGRAM: Remedy("Remove the call, if the run is meant for the GPU", CODE["hidden"]),
    Obstacle.BUILD: Remedy("Install a package with CUDA instead", CODE["another"]),
    Obstacle.DRIVER: Remedy("Give the run access to the driver of the machine", CODE["driver"]),
    Obstacle.LIBRARY: Remedy("Install the libraries that TensorFlow was built with", CODE["libraries"]),
    Obstacle.UNKNOWN: Remedy("Read what TensorFlow logs when it looks for GPUs", CODE["log"]),
}


def check(boards: Boards, device: Device | None, phases: RunPhases | None) -> Verdict:
    """Compare the boards of the machine with the devices of TensorFlow."""
    if boards.usable:
        return Healthy(summary=f"TensorFlow uses {counted(boards.usable, 'accelerator')}")
    access, kind = boards.access, device.kind if device else DeviceKind.CPU
    closed = "there are device files of NVIDIA GPUs, which the run may not open, and NVML lists no GPU"
    reason = why_not(
        (kind != DeviceKind.CPU, f"the trace shows work on a {kind}"),
        (boards.foreign, f"Keras computes with {boards.foreign}, which needs no GPU of TensorFlow's"),
        (not boards.names and access.files and not access.readable, closed),
        (not boards.count, "the machine shows no NVIDIA GPU"),
        (phases and not phases.of(*WORK), "the run neither trains nor evaluates nor predicts"),
    )
    if reason:
        return NotApplicable(reason=reason)
    obstacle, name = boards.obstacle, boards.names[0] if boards.names else "an NVIDIA GPU"
    package, libraries = (
        access.package or "this package of TensorFlow",
        ", ".join(one.name for one in access.missing),
    )
    said = obstacle.format(shown=access.shown, package=package, driver=access.driver, libraries=libraries)
    loader = Table(("library", "message of the loader"), tuple((one.name, one.why) for one in access.missing))
    return Finding(
        summary=f"The run computes on the CPU beside {name}: {said}",
        evidence=(
            Measure("GPUs of the machine", count(boards.count)),
            Measure("GPUs that TensorFlow gives to the program", count(boards.usable)),
            *([loader] if access.missing else []),
        ),
        remedies=(REMEDIES[obstacle],),
        severity=Severity.NOTE if obstacle in DELIBERATE else Severity.WARNING,
    )

from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=Healthy(summary="XLA compiles the optimizer's update on a TPU")),)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    values: float = limit(10_000.0)
    each_ms: float = limit(0.005)
    on_cpu: float = limit(1000.0)


def check(
    work: OptimizerWork, operations: Operations, hardware: Hardware, breakdown: Breakdown, limits: Limits = Limits()
) -> Verdict:
    """Add up the optimizer's small operations.

    On a CPU, the time between them goes as well: their part, by number, of the host's time.
    """
    if not work.rows:
        return NotApplicable(reason=UNNAMED)
    small = [row for row in work.rows if is_small(row, limits.values, limits.each_ms)]
    part, calls = operations.part(sum(row.ms for row in small)), sum(row.calls for row in small)
    on_cpu, at = hardware.kind == DeviceKind.CPU, next((row.at for row in small if row.at), None)
    fewer = Remedy("Use fewer and larger variables", CODE["fewer"], at)
    fused = Remedy("Compile the step so that XLA fuses the update", CODE["fuse"], at, "jit-compile")
    effects = [row.scaled(0.0, Bound.AT_MOST) for row in small]
    if on_cpu and calls:
        host_ms = calls / sum(row.calls for row in operations.rows) * breakdown[Stage.HOST]
        effects.append(Effect(Stage.HOST, 0.0, StepWork.OPTIMIZER, ms(host_ms), bound=Bound.AT_MOST))
    return spared(
        part,
        limits.share,
        "in the optimizer's small operations",
        effects,
        healthy=f"The optimizer's operations on small tensors take {part}",
        finding=f"The optimizer runs {counted(round(calls), 'small operation')}: {part}",
        wrong=part.share >= limits.share and (calls >= limits.on_cpu or not on_cpu),
        remedies=[fewer] if on_cpu else [fused, fewer],
        more=[
            Measure("small optimizer operations per step", count(calls)),
            Measure("time in all optimizer operations per step", ms(work.ms)),
        ],
    )


UNNAMED = "the trace names no operation of an optimizer: XLA compiled them, or they are outside a Keras optimizer"

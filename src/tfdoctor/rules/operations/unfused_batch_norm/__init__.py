from tfdoctor.facts.operations.step_parts import FUSED_PASSES, BatchNorm
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (
    not_on(
        DeviceKind.TPU, verdict=Healthy(summary="XLA compiles everything on a TPU, batch normalization included")
    ),
)


class Limits(RuleLimits):
    full_speed: float = limit(16.0, least=1.0)
    half_speed: float = limit(8.0, least=1.0)
    half_rate: float = limit(0.6, least=0.01, most=1.0)


def check(norms: BatchNorms, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Price each unfused layer at the bytes that a fused one moves."""
    if norms.unfused:
        return _of_unfused(norms, hardware, limits)
    if norms.fused:
        return Healthy(summary=f"{counted(norms.fused, 'batch normalization layer')} ran fused")
    if norms.seen:
        return Healthy(summary=f"{counted(norms.seen, 'batch normalization layer')} ran, none in training mode")
    return NotApplicable(reason=UNSEEN)


UNALIGNED = "would run slower as oneDNN's fused operation: align the channels to a multiple of 16 first"

NO_IMAGES = "cannot be fused: TensorFlow's fused operation takes only images (rank 4, channels last)"

UNSEEN = (
    "the trace contains no operation of a batch normalization layer: XLA compiled the layers, or they ran eagerly, "
    "or not in the traced steps"
)


def _of_unfused(norms: BatchNorms, hardware: Hardware, limits: Limits) -> Verdict:
    """Judge where fusing helps: XLA fuses every layer, oneDNN images with aligned channels."""
    on_cpu = hardware.kind == DeviceKind.CPU
    fusible = [
        norm
        for norm in norms.unfused
        if not on_cpu or (norm.of_images and (norm.channels or 0) % limits.half_speed == 0)
    ]
    if not fusible:
        layers = counted(len(norms.unfused), "unfused batch normalization layer")
        of_images = any(norm.of_images for norm in norms.unfused)
        return NotApplicable(reason=f"{layers} {UNALIGNED if of_images else NO_IMAGES}")

    def fused_ms(norm: BatchNorm) -> float | None:  # its passes over the activation at this run's rate
        time_ms = norms.passes_ms(norm, FUSED_PASSES)
        if not time_ms or not on_cpu or norm.channels is None or norm.channels % limits.full_speed == 0:
            return time_ms
        return time_ms / limits.half_rate

    def fused(norm: BatchNorm) -> Cell | None:
        if norm not in fusible:
            return "slower: align the channels first" if norm.of_images else "not for this rank"
        time_ms = fused_ms(norm)
        return None if time_ms is None else ms(time_ms)

    def effect(norm: BatchNorm) -> Effect:
        time_ms = fused_ms(norm)
        scales = 0.0 if time_ms is None else min(1.0, time_ms / norm.ms)
        bound = Bound.AT_MOST if time_ms is None else Bound.EXPECTED
        return Effect(Stage.DEVICE, scales, norm.subject, ms(norm.ms), bound=bound, parts=norm.names)

    total_ms = sum(norm.ms for norm in fusible)
    measures = [Measure("time in unfused batch normalization per step", ms(total_ms))]
    if norms.rate:
        measures.append(Measure("memory bandwidth of elementwise operations in this run", bandwidth(norms.rate)))
    table = Table.of(
        sorted(norms.unfused, key=lambda norm: -norm.ms),
        ("layer", lambda norm: norm.layer.name),
        ("your line", lambda norm: norm.layer.at),
        ("operations", lambda norm: count(norm.operations)),
        ("channels", lambda norm: None if norm.channels is None else count(norm.channels)),
        ("time per step", lambda norm: ms(norm.ms)),
        ("fused time", fused),
    )
    layers = counted(len(fusible), "batch normalization layer")
    lines = [norm.layer.at for norm in fusible if norm.layer.at]
    at, shared = next(iter(lines), None), next((line for line in lines if lines.count(line) > 1), None)
    remedies = [Remedy("Use TensorFlow's fused batch normalization", CODE["drop-in"], at, "fused-batch-norm")]
    if hardware.kind == DeviceKind.GPU:
        remedies = [
            Remedy("Compile the model with XLA to fuse batch normalization", CODE["xla"], at, "jit-compile")
        ]
    elif shared is not None:
        action = "Clone the model with the fused layer if one line creates many layers"
        remedies.append(Remedy(action, CODE["clone"], shared))
    return Finding(
        summary=f"The unfused operations of {layers} take {milliseconds(total_ms)} per step",
        evidence=(*measures, table),
        remedies=tuple(remedies),
        effects=tuple(map(effect, fusible)),
    )

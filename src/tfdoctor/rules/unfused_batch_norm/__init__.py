from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.batch_norm import FUSED_PASSES, BatchNorm, BatchNorms
from tfdoctor.terms.units import bandwidth
from tfdoctor.terms.verdict import Cell

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (
    not_on(
        DeviceKind.TPU, verdict=Healthy(summary="XLA compiles everything on a TPU, batch normalization included")
    ),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """For which widths oneDNN's fused operation is fast on a CPU."""

    full_speed: float = limit(
        16.0,
        "Multiple of channels with which oneDNN's fused operation reaches the memory bandwidth on a CPU "
        "(benchmarks/batch_norm.py)",
        least=1.0,
    )
    half_speed: float = limit(
        8.0,
        "Multiple of channels from which fusing is advised on a CPU: with other widths, the fused operation "
        "takes 1.4 to 1.8 times as long as the separate ones (benchmarks/batch_norm.py)",
        least=1.0,
    )
    half_rate: float = limit(
        0.6,
        "Share of the memory bandwidth that a fused layer reaches on a CPU with a multiple of half_speed, but "
        "not of full_speed, channels (benchmarks/batch_norm.py)",
        least=0.01,
        most=1.0,
    )


def check(norms: BatchNorms, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Price each unfused layer at the bytes that a fused one moves."""
    if norms.unfused:
        fusible = [norm for norm in norms.unfused if _is_fusible(norm, hardware, limits)]
        if fusible:
            return _finding(fusible, norms, hardware, limits)
        layers = counted(len(norms.unfused), "unfused batch normalization layer")
        of_images = any(norm.of_images for norm in norms.unfused)
        return NotApplicable(reason=f"{layers} {UNALIGNED if of_images else NO_IMAGES}")
    if norms.fused:
        return Healthy(summary=f"{counted(norms.fused, 'batch normalization layer')} ran fused")
    if norms.seen:
        layers = counted(norms.seen, "batch normalization layer")
        return Healthy(summary=f"{layers} ran, none in training mode")
    return NotApplicable(reason=UNSEEN)


UNALIGNED = "would run slower as oneDNN's fused operation: align the channels to a multiple of 16 first"

NO_IMAGES = "cannot be fused: TensorFlow's fused operation takes only images (rank 4, channels last)"

UNSEEN = (
    "the trace contains no operation of a batch normalization layer: XLA compiled the layers, or they ran eagerly, "
    "or not in the traced steps"
)


def _is_fusible(norm: BatchNorm, hardware: Hardware, limits: Limits) -> bool:
    """Say whether fusing helps: XLA fuses every layer, oneDNN images with aligned channels."""
    if hardware.kind != DeviceKind.CPU:
        return True
    return norm.of_images and (norm.channels or 0) % limits.half_speed == 0


def _finding(fusible: list[BatchNorm], norms: BatchNorms, hardware: Hardware, limits: Limits) -> Finding:
    def fused(norm: BatchNorm) -> Cell | None:
        if not _is_fusible(norm, hardware, limits):
            return "slower: align the channels first" if norm.of_images else "not for this rank"
        fused_ms = _fused_ms(norm, norms, hardware, limits)
        return None if fused_ms is None else ms(fused_ms)

    total_ms = sum(norm.ms for norm in fusible)
    measures = [Measure("time in unfused batch normalization per step", ms(total_ms))]
    if norms.rate:
        label = "memory bandwidth of elementwise operations in this run"
        measures.append(Measure(label, bandwidth(norms.rate)))
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
    return Finding(
        summary=f"The unfused operations of {layers} take {milliseconds(total_ms)} per step",
        evidence=(*measures, table),
        remedies=_remedies(hardware, fusible),
        effects=tuple(_effect(norm, norms, hardware, limits) for norm in fusible),
    )


def _fused_ms(norm: BatchNorm, norms: BatchNorms, hardware: Hardware, limits: Limits) -> float | None:
    """Return the time of the fused operation: its passes over the activation at this run's rate."""
    full_speed_ms = norms.passes_ms(norm, FUSED_PASSES)
    if not full_speed_ms or hardware.kind != DeviceKind.CPU or norm.channels is None:
        return full_speed_ms
    is_aligned = norm.channels % limits.full_speed == 0
    return full_speed_ms if is_aligned else full_speed_ms / limits.half_rate


def _effect(norm: BatchNorm, norms: BatchNorms, hardware: Hardware, limits: Limits) -> Effect:
    fused_ms = _fused_ms(norm, norms, hardware, limits)
    if fused_ms is None:
        bound, scales = Bound.AT_MOST, 0.0
    else:
        bound, scales = Bound.EXPECTED, min(1.0, fused_ms / norm.ms)
    time = ms(norm.ms)
    return Effect(Stage.DEVICE, scales, norm.subject, time, bound=bound, parts=norm.names)


def _remedies(hardware: Hardware, fusible: list[BatchNorm]) -> tuple[Remedy, ...]:
    lines = [norm.layer.at for norm in fusible if norm.layer.at]
    at = lines[0] if lines else None
    if hardware.kind == DeviceKind.GPU:
        code = "model.compile(..., jit_compile=True)"
        action = "Compile the model with XLA to fuse batch normalization"
        return (Remedy(action, code, at, "jit-compile"),)
    drop_in = Remedy("Use TensorFlow's fused batch normalization", DROP_IN, at, "fused-batch-norm")
    shared = next((line for line in lines if lines.count(line) > 1), None)
    if shared is None:
        return (drop_in,)
    action = "Clone the model with the fused layer if one line creates many layers"
    return drop_in, Remedy(action, CLONE, shared)


DROP_IN = '''\
class FusedBatchNormalization(keras.layers.BatchNormalization):
    """Same weights, one operation where it is faster: for images with a multiple of 8 channels."""

    def call(self, inputs, training=None, mask=None):
        is_image = len(inputs.shape) == 4 and self.axis in (-1, 3) and inputs.shape[-1] % 8 == 0
        learns = training and self.trainable and self.scale and self.center
        if not (is_image and learns and mask is None):
            return super().call(inputs, training=training, mask=mask)
        outputs, mean, variance, *_ = tf.compat.v1.nn.fused_batch_norm(
            inputs, tf.cast(self.gamma, "float32"), tf.cast(self.beta, "float32"),
            epsilon=self.epsilon, is_training=True)
        keep = self.momentum
        self.moving_mean.assign(keep * self.moving_mean + (1 - keep) * mean)
        self.moving_variance.assign(keep * self.moving_variance + (1 - keep) * variance)
        return outputs'''

CLONE = '''\
def fused(layer):
    """Return a copy of a layer; batch normalization becomes fused."""
    normalizes = type(layer) is keras.layers.BatchNormalization
    kind = FusedBatchNormalization if normalizes else type(layer)
    return kind.from_config(layer.get_config())


clone = keras.models.clone_model(model, clone_function=fused)  # a functional or sequential model
clone.set_weights(model.get_weights())
# then compile and fit the clone instead of the model'''

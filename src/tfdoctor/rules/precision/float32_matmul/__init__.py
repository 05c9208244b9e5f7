from tfdoctor.facts.operations.kernel_kinds import of_operation
from tfdoctor.facts.operations.matmuls import of_unknown_precision
from tfdoctor.facts.operations.step_parts import CAST_PASSES
from tfdoctor.facts.run.hardware import AMX, SixteenBit
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Time of each call on a CPU that 16-bit precision does not change: starting threads, repacking operands
# (benchmarks/precision.py, small matmuls: ``min(t, 0.1) + 0.6 (t - 0.1)`` is within a quarter of them).
FIXED_MS = 0.1
# Time of the casts of weights and of their gradients that a mixed policy adds to each matmul on a CPU
# (benchmarks/precision.py: 5 to 11 us for a small layer of three matmuls).
CAST_MS = 0.003

# Time per million weights that a mixed policy adds to each convolution on a CPU, for their casts and for arranging
# them anew (benchmarks/precision.py, "layer conv": with 0.6 to 2.4 million weights the three convolutions of a
# layer take 0.6 of their time in float32 and 0.7 to 1.5 ms per million, on an AMD EPYC with avx512_bf16, TensorFlow
# 2.21, 2026-11-23).
WEIGHTS_MS = 0.33

# Like FIXED_MS, where it is more. Of convolutions with 12 input channels or more the median of ``(bfloat16 - 0.6
# float32) / 0.4`` was, in two runs, 0.18 and 0.39 ms in forward passes, 0.09 and 0.06 in gradients by the input,
# 0.36 and 0.53 in those by the weights; the lower ones count (benchmarks/precision.py, "part of conv", least of 20
# to 30 turns, on an AMD EPYC with avx512_bf16 that others used, TensorFlow 2.21, 2026-11-24). An Einsum also
# transposes its operands ("small attention": 64 matmuls of 64 x 24 x 64 take 0.39 ms in float32 and 0.36 in
# bfloat16; 256 of 128 x 64 x 128, 9.9 and 4.4).
FIXED_OF_TYPE = {"Conv2D": 0.2, "Conv2DBackpropFilter": 0.35, "Einsum": 0.25}

# Time in bfloat16 relative to float32 on a CPU of a convolution along one axis, gradients included: 0.64 to 0.85 in
# four shapes (benchmarks/precision.py, on an Intel Xeon with AMX, TensorFlow 2.21, 2026-11-22).
ALONG_ONE_AXIS = 0.8
# Like ALONG_ONE_AXIS, of a convolution of fewer input channels than the first, which a tile of the matrix unit
# holds: 0.58 to 0.6 in three shapes of 1 and 8 channels; 0.26 and 0.31 with 16 and 32 channels.
FEW_CHANNELS, OF_FEW_CHANNELS = 16, 0.6
# Like OF_FEW_CHANNELS, on a CPU without AMX, and there of a first layer, whose input needs no gradient: 0.75 to
# 0.84 in four shapes of 8 channels, and 0.79 to 1.4 in eleven of 1 and 3, 1.1 in the median
# (benchmarks/precision.py, "conv" and "first conv", on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24).
WITHOUT_AMX, OF_COLORS = 0.8, 1.0
COLORS = 3  # Channels of an image, which a first layer gets
MEMORY_BOUND = 0.6  # Share of the memory bandwidth from which bytes, not the MXU, limit an operation on a TPU
# The least time in bfloat16 relative to TF32 that was measured, as a share of what the peak rates say: gradients of
# filters took 0.28, of inputs 0.44, and convolutions 0.54 of their TF32 time, where the rates say 0.5 (NVIDIA H100,
# 128 channels, JAX 0.11.2, cuDNN of CUDA 13, 2026-11-22).
LEAST_OF_PEAKS = 0.56
CONV2D = 4  # Dimensions of the weights of a convolution of images: height, width, input and output channels
# Time per million values of a cast from float32 to bfloat16 on a CPU (benchmarks/precision.py, "Cast": 0.22, 0.16
# and 0.17 with 0.5, 2 and 8 million values, on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24). In
# traced training steps inputs of 0.24 and 0.39 million values took 0.13 and 0.27.
TO_BFLOAT16_MS = 0.17
# Like TO_BFLOAT16_MS, with a cast back, as of weights and their gradient: 0.27, 0.19 and 0.2, and in a second run
# 0.22 and 0.31 with 2 and 8 million values. With it two training steps of dense layers with 2.7 and 7.1 million
# weights, which became 19 and 14 to 20 % shorter, are promised 14 to 17 and 13 %; without it 20 and 30 %.
BOTH_WAYS_MS = 0.22
WITH_BOTH_GRADIENTS = 3  # Matmuls of a dense layer in a training step: forward, by its weights and by its input


def _priced(
    operations: Operations, hardware: Hardware, unit: SixteenBit, program: Program | None
) -> Iterator[tuple[OperationTime, bool, Effect | None]]:
    """Yield what runs in float32, whether 16-bit precision makes it faster, and its effect: on a CPU that of casts.

    What a mixed policy keeps in float32 is left out.
    """
    kept = set[str]()
    if program and (program.settings.policy or "").startswith("mixed"):
        kept = {layer.name for layer in program.layers if layer.compute_dtype == "float32"}
    rows = [row for row in operations.matrix if row.precision == "float32" and row.layer not in kept]
    on_cpu, peak = hardware.kind == DeviceKind.CPU, hardware.bandwidth_bytes_s
    casts = _input_casts(rows, program) if on_cpu else {}
    for row in rows:
        cast_ms, faster, effect = casts.get(row.name, 0.0), True, None
        if on_cpu:
            in_onednn = any(name.rpartition(":")[2].startswith("_Mkl") for name in row.ran)
            faster = in_onednn and row.ms > _fixed_ms(row) and _least_on_cpu(row, hardware.matrix_unit) < 1.0
        elif hardware.kind == DeviceKind.TPU:
            moved = (row.nbytes or 0.0) * row.calls
            faster = bool(peak and moved) and moved / (row.ms * 1e-3) > MEMORY_BOUND * (peak or 0.0)
        if faster:
            effect = row.scaled(_scales(row, hardware, unit, cast_ms), unit.bound)
        elif on_cpu and row.ms:
            effect = row.scaled(1.0 + (CAST_MS * row.calls + cast_ms) / row.ms)
        yield row, faster, effect


def _scales(row: OperationTime, hardware: Hardware, unit: SixteenBit, cast_ms: float) -> float:
    if hardware.kind == DeviceKind.CPU:
        weights, of_weights = prod(row.kernel or (0,)) / 1e6, 0.0  # what is done with the weights in both types
        if row.type.startswith("Conv"):
            of_weights = WEIGHTS_MS * weights
        elif row.type == "MatMul" and not BACKPROP.search(row.name):
            of_weights = BOTH_WAYS_MS * weights
        added = ((CAST_MS + of_weights) * row.calls + cast_ms) / row.ms
        of_matmul = unit.matmul_scales if row.type == "MatMul" else None
        scales = max(unit.scales if of_matmul is None else of_matmul, _least_on_cpu(row, hardware.matrix_unit))
        fixed = _fixed_ms(row) / row.ms
        return added + fixed + scales * (1.0 - fixed)
    if unit.scalar_scales is None or avoids_unit(row, unit):
        return unit.scales if unit.scalar_scales is None else unit.scalar_scales
    # The ratio of the peaks holds only where both types reach the same share of theirs.
    if not hardware.peak_flop_s or not row.flops:
        return min(unit.scales, LEAST_OF_PEAKS * unit.scales)
    return min(unit.scales, row.least_ms(None, hardware.peak_flop_s * hardware.reached) / row.ms)


def _fixed_ms(row: OperationTime) -> float:
    return FIXED_OF_TYPE.get(row.type, FIXED_MS) * row.calls


def _least_on_cpu(row: OperationTime, unit: str) -> float:
    """Return the least time in 16-bit precision relative to float32 that a CPU's kernels reach for a shape."""
    kernel = row.kernel
    if not row.type.startswith("Conv") or not kernel or len(kernel) != CONV2D:
        return 0.0
    height, width, channels, _ = kernel
    if min(height, width) == 1 < max(height, width):
        return ALONG_ONE_AXIS
    if channels >= FEW_CHANNELS:
        return 0.0
    if unit == AMX:
        return OF_FEW_CHANNELS
    return OF_COLORS if channels <= COLORS else WITHOUT_AMX


def avoids_unit(row: OperationTime, unit: SixteenBit) -> bool:
    """Say whether its kernels leave the unit unused although it multiplies float32 (as TF32)."""
    return unit.scalar_scales is not None and of_operation(row.ran) is False


def millions(row: OperationTime, program: Program | None) -> float:
    """Return the millions of values of an operation's first operand per step, 0 where its shape is unknown."""
    tensors = row.operation.inputs if row.operation else ()
    shapes = [shape for dtype, shape in tensors if dtype == "float32"]
    known = program.shape(shapes[0]) if program and shapes else None
    return prod(known) / 1e6 * row.calls if known else 0.0


def _input_casts(rows: Iterable[OperationTime], program: Program | None) -> dict[str, float]:
    """Return the ms per step of the casts of the model's inputs, which a mixed policy adds before the first layer.

    By the name of the forward operations that read them: those of trained layers without a gradient by their input.
    """
    layers = defaultdict(list)
    for row in rows:
        layers[row.layer].append(row)
    layers.pop("", None)
    casts: dict[str, float] = {}
    for group in layers.values():
        forward = [row for row in group if not BACKPROP.search(f"{row.name} {row.type}")]
        by_input = any("BackpropInput" in row.type for row in group)
        if len(forward) < len(group) < WITH_BOTH_GRADIENTS and not by_input:
            casts |= {row.name: TO_BFLOAT16_MS * millions(row, program) for row in forward}
    return casts


# Time of an accelerator's memory-bound operation in 16-bit relative to float32. Variables, which the optimizer
# updates, stay float32; operations that a layer casts back to float32 gain less.
HALF_THE_BYTES = 0.5

STRIDED_GRADIENT = "DepthwiseConv2dNativeBackpropInput"

# Time in bfloat16 relative to float32 on a CPU, with stride 2: the median of seven shapes, which took 9 to 27 times
# as long (benchmarks/precision.py, without 0.25 ms for the call itself, on an AMD EPYC with avx512_bf16, TensorFlow
# 2.21, 2026-11-21; with stride 1 bfloat16 is faster).
STRIDED_SCALES = 12.0

# Time in bfloat16 relative to float32 on a CPU: each value is widened, computed and rounded again
# (benchmarks/precision.py, on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-21; BiasAddGrad took 1.6 to
# 2.6 times as long with 0.5 to 8 million values, 2026-11-24). Operations that only move bytes get faster there,
# which is not counted.
SLOWER = {
    "BiasAddGrad": 2.0, "Elu": 2.3, "Erf": 2.0, "Erfc": 3.6, "Exp": 1.7, "Log": 1.6, "Relu6": 1.9, "Sigmoid": 3.2,
    "SigmoidGrad": 1.8, "Softplus": 1.6, "Tanh": 2.0, "TanhGrad": 1.8,
}  # fmt: skip

# Like SLOWER, while the values fit into the processor's caches: with 0.5 and 2 million values these took 1.4 to
# 1.8, 1.3 to 1.6, and 1.5 to 1.9 times as long, with 8 million values 0.8 to 1.2 times (benchmarks/precision.py, on
# an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24).
SLOWER_IN_CACHES = {"RealDiv": 1.5, "Relu": 1.4, "ReluGrad": 1.5}
# Time of a call of these in float32 up to which its values fit: 0.4 to 0.7 ms with 2 million values, and 1.7 to 3.2
# with 8 million (as above). The graph of a Keras step has no batch size, so the number of values is unknown.
IN_CACHES_MS = 1.0
# The start of the names of layers whose mean Keras computes in float32 (``keras.ops.mean``): their input is cast,
# and so is the gradient by it.
POOLED = "GlobalAveragePooling"


class ReducedPrecision(Record):
    """The effects of 16-bit on other operations than matmuls: ``gains`` on accelerators, ``costs`` on CPUs."""

    gains: tuple[Effect, ...] = ()
    costs: tuple[Effect, ...] = ()

    @classmethod
    def measure(
        cls, operations: Operations, hardware: Hardware, norms: BatchNorms | None, program: Program | None
    ) -> Self:
        """Collect the effects on the operations of the step.

        Where matmuls already run in 16-bit, the others are in float32 on purpose, as Keras' normalization is. A CPU
        takes longer for casts, strided gradients, and what it computes value by value; there operations of an
        unknown type count as float32, and depthwise convolutions of unknown strides as strided.
        """
        rest = OptimizerWork.measure(operations).others(operations)
        if hardware.kind != DeviceKind.CPU:
            in_16_bits = any(row.precision in HALVES for row in operations.matrix)
            wide = [row for row in rest if row.precision == "float32" and not row.is_matrix]
            return cls(gains=tuple(row.scaled(HALF_THE_BYTES, Bound.AT_MOST) for row in wide if not in_16_bits))
        costs = []
        for norm in norms.unfused if norms else ():
            cost = norms.passes_ms(norm, CAST_PASSES) if norms else None
            if cost and norm.ms:
                costs.append(Effect(Stage.DEVICE, 1.0 + cost / norm.ms, norm.subject, ms(norm.ms)))
        wide = [row for row in rest if row.precision in ("float32", "")]
        for row in wide:
            strides = row.operation.attrs.strides if row.operation else ()
            if row.type == STRIDED_GRADIENT and (not strides or max(strides) > 1):
                costs.append(row.scaled(STRIDED_SCALES))
        for row in wide:
            in_caches = row.ms <= IN_CACHES_MS * row.calls
            if scales := SLOWER.get(row.type) or (SLOWER_IN_CACHES.get(row.type) if in_caches else None):
                costs.append(row.scaled(scales))
        layers = program.layers if program else ()
        pooled = {layer.name for layer in layers if layer.kind.startswith(POOLED)}
        means = (row for row in rest if row.type == "Mean" and row.layer in pooled and row.ms)
        costs += [row.scaled(1.0 + BOTH_WAYS_MS * millions(row, program) / row.ms) for row in means]
        return cls(costs=tuple(costs))


class Limits(RuleLimits):
    on_cpu: float = share_limit(0.15)
    on_amx: float = share_limit(0.25)


UNKNOWN_PRECISION = (
    "the precision of the matmuls is unknown: record a step that runs in a graph, not eagerly, with "
    "`tfdoctor profile`"
)


def check(
    operations: Operations, hardware: Hardware, program: Program | None, reduced: ReducedPrecision,
    framework: Framework, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Price every float32 matmul and convolution at the 16-bit rate.

    A gain on a CPU has to be larger than what is not counted, such as casts of activations.
    """
    unit = hardware.sixteen_bit
    if unit is None:
        return NotApplicable(reason=hardware.missing or f"{hardware.name} has no 16-bit matrix unit")
    if not any(row.precision for row in operations.matrix):
        unknown = UNKNOWN_PRECISION if operations.matrix else operations.why_unlisted
        return nothing("The step runs no matmul or convolution", unknown)
    priced = list(_priced(operations, hardware, unit, program))
    slow = [row for row, faster, _ in priced if faster]
    taken_ms = sum(row.ms for row in slow or (row for row, *_ in priced))
    summary = f"Float32 matmuls and convolutions take {milliseconds(taken_ms)} per step"
    if not slow:
        healthy = f"{summary}; 16-bit precision would not shorten them"
        if not taken_ms:
            times = summed((row.precision, row.ms) for row in operations.matrix if row.precision)
            said = (f"in {precision} ({milliseconds(time)} per step)" for precision, time in times.items())
            healthy = f"Matmuls and convolutions run {' and '.join(said)}"
        return nothing(healthy, of_unknown_precision(operations))
    gains = [effect for _, faster, effect in priced if faster and effect]
    costs = [effect for _, faster, effect in priced if effect and not faster]
    effects = (*gains, *reduced.gains, *reduced.costs, *costs)
    if framework.foreign and not framework.keras:
        action = f"Compute in {unit.dtype}, and keep the weights and the loss in float32"
        remedy = Remedy(action, CODE["jax-cast" if framework.name == JAX else "torch-autocast"].format(unit.dtype))
    else:
        at, code = program.first_line if program else None, CODE["policy"].format(unit.dtype)
        remedy = Remedy(f"Train in mixed_{unit.dtype}", code, at, "mixed-precision")
    finding = Finding(
        summary=f"{summary}; they run faster in {unit.dtype} ({hardware.matrix_unit})",
        evidence=tuple(_evidence(slow, gains, reduced, operations, hardware, unit)),
        remedies=(remedy,),
        effects=effects,
    )
    least = limits.on_amx if hardware.matrix_unit == AMX else limits.on_cpu
    share = sum((1.0 - effect.scales) * _ms(effect) for effect in effects) / operations.total_ms
    if hardware.kind != DeviceKind.CPU or share >= least:
        return finding
    label = "share of the compute time that 16-bit precision saves, after costs"
    return Healthy(
        summary=f"{finding.summary}, but casts around them cost about as much as 16-bit precision gains",
        evidence=(*finding.evidence, Measure.share(label, share, least)),
    )


def _ms(effect: Effect) -> float:
    return effect.of.value if effect.of else 0.0


def _evidence(
    slow: Sequence[OperationTime], gains: Iterable[Effect], reduced: ReducedPrecision, operations: Operations,
    hardware: Hardware, unit: SixteenBit,
) -> Iterator[Evidence]:  # fmt: skip
    """Yield the ratios that the saving is computed from, the times that they apply to, and what is not counted."""
    slow_ms, scalar = sum(row.ms for row in slow), [row for row in slow if avoids_unit(row, unit)]
    yield from operations.part(slow_ms).measures("in float32 matmuls and convolutions")
    if hardware.kind == DeviceKind.GPU:
        least_ms = sum(effect.scales * _ms(effect) for effect in gains)
        yield Measure.share(
            f"least {unit.dtype} time relative to float32, at the highest rate measured", least_ms / slow_ms
        )
    if len(scalar) < len(slow):
        yield Measure.share(f"{unit.dtype} time relative to float32 ({unit.source})", unit.scales)
    if scalar:
        label = "time in kernels that do not use the Tensor Cores, not even as TF32"
        yield Measure(label, ms(sum(row.ms for row in scalar)))
        label = f"{unit.dtype} time relative to kernels without Tensor Cores, by peak rates"
        yield Measure.share(label, unit.scalar_scales or unit.scales)
    yield layer_table(slow)
    halved, lost = map(_ms, reduced.gains), ((effect.scales - 1.0) * _ms(effect) for effect in reduced.costs)
    unknown = (row.ms for row in operations.matrix if not row.precision)
    for label, times in (
        ("time in other float32 operations, which move half the bytes in 16-bit precision", halved),
        ("time lost in operations that are slower in 16-bit precision on a CPU", lost),
        ("time in matmuls and convolutions of unknown precision, not counted", unknown),
    ):
        if time := sum(times):
            yield Measure(label, ms(time))

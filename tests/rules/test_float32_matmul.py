"""float32-matmul: matmuls in float32 on a device that is faster in 16-bit precision, and the edit of a model."""

import math

import pytest

from tests.builders import Machine, device, line
from tests.edits.kit import declined, edited
from tests.h100 import TIMED_MS, judged
from tests.rules.kit import *
from tfdoctor.facts.operations.step_parts import BatchNorm
from tfdoctor.facts.run.framework import PYTORCH
from tfdoctor.facts.run.hardware import SixteenBit
from tfdoctor.facts.run.program import Attributes
from tfdoctor.rules.precision import float32_matmul
from tfdoctor.rules.precision import float32_matmul as rule
from tfdoctor.rules.precision.float32_matmul import (
    BOTH_WAYS_MS,
    OF_FEW_CHANNELS,
    SLOWER,
    TO_BFLOAT16_MS,
    WEIGHTS_MS,
    Limits,
    ReducedPrecision,
)
from tfdoctor.source_code.splice import Declined

CPU = Hardware(DeviceKind.CPU, "example", "AVX512-BF16", SixteenBit("bfloat16", 0.6, Bound.EXPECTED, "an example"))


def conv(dtype: str = "float32") -> OperationTime:
    """Build a convolution that takes 80 ms."""
    name = "model/conv2d/convolution"
    tensors = ((dtype, (32, 64, 64, 48)), (dtype, (3, 3, 48, 48)))
    return OperationTime(
        name=name,
        type="Conv2D",
        ms=80.0,
        ran=(f"{name}:_MklNativeConv2D",),
        layer="conv2d",
        at=Location("train.py", 9),
        operation=Operation(name=name, type="Conv2D", inputs=tensors),
    )


def example(
    *rows: OperationTime, hardware: Hardware = CPU, program: Program | None = None,
    norms: BatchNorms | None = None, framework: Framework = Framework(), limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """A float32 convolution takes 80 ms on a CPU with avx512_bf16."""
    operations = Operations(rows or (conv(),))
    reduced = ReducedPrecision.measure(operations, hardware, norms, program)
    return float32_matmul.check(operations, hardware, program, reduced, framework, limits)


sick = example


def healthy() -> Verdict:
    """The convolution runs in bfloat16."""
    return example(conv("bfloat16"))


TO_BF16 = SixteenBit("bfloat16", 0.6, Bound.EXPECTED, "measured")
GPU = Hardware(DeviceKind.GPU, "x", "Tensor Core", TO_BF16)
TPU = Hardware(DeviceKind.TPU, "x", "MXU", TO_BF16, bandwidth_bytes_s=1e12)
AMX = Hardware(DeviceKind.CPU, "x", "AMX", replace(TO_BF16, scales=0.33))
RELU = OperationTime(name="gradient_tape/m/relu", type="ReluGrad", ms=5.0)
UNNAMED = OperationTime(name="k", type="compiled or unnamed", ms=9)
LOOPED = matmul("MatMul", ms=5.0, dtype="", name="MatMul", calls=440.0)
"""Of an LSTM, in the body of a loop, which belongs to no layer."""

KERNEL = 3 * 3 * 32 * 32 / 1e6
"""Million weights of the convolution that is made up."""

check = partial(example, limits=Limits(on_cpu=float("-inf"), on_amx=float("-inf")))
"""Reports every gain, so that the tests can see what is counted."""


def slower(*rows: OperationTime, **more: Any) -> dict[str, float]:
    return {subject: factor for subject, factor in scales(check(*rows, **more)).items() if factor > 1}


def of_shape(kind: str, ms: float, shape: tuple[int, ...], weights: tuple[int, ...], **more: Any) -> OperationTime:
    row = matmul(kind, ms=ms, **more)
    made = Operation(name=row.name, type=kind, inputs=(("float32", shape), ("float32", weights)))
    return replace(row, operation=made)


def test_float32_matmuls_are_priced_one_by_one() -> None:
    finding = as_finding(check(matmul(ms=10, layer="a"), matmul("MatMul", ms=4, layer="b"), RELU))
    assert scales(finding) == {
        "model/a/Conv2D": pytest.approx((0.003 + 0.2 + WEIGHTS_MS * KERNEL + 0.6 * 9.8) / 10),
        "model/b/MatMul": pytest.approx((0.003 + 0.1 + BOTH_WAYS_MS * KERNEL + 0.6 * 3.9) / 4),
    }
    assert [effect.of.value for effect in finding.effects if effect.of] == [10.0, 4.0]
    assert "mixed_bfloat16" in finding.remedies[0].code
    assert "float32" in finding.remedies[0].code


@pytest.mark.parametrize("other", [matmul(dtype="bfloat16", layer="a"), LOOPED])
def test_only_float32_counts_and_what_is_unknown_is_told(other: OperationTime) -> None:
    verdict = check(other, matmul(ms=20.0, layer="head"), RELU)
    assert [*scales(verdict)] == ["model/head/Conv2D"]
    assert [*figures(verdict, "not counted").values()] == ([5.0] if other is LOOPED else [])


REDUCED = "convolutions run in 16-bit precision (10.0 ms per step)"
HEADS = [matmul("MatMul", ms=0.04, layer="dense", dtype=dtype) for dtype in ("float32", "bfloat16")]

test_where_nothing_is_advised_the_reason_is_told = each_is(
    (check(matmul(dtype="bfloat16"), RELU), Healthy, REDUCED),
    (check(matmul(dtype="float16"), RELU), Healthy, REDUCED),
    (check(matmul(dtype="float64"), RELU), Healthy, "convolutions run in float64 ("),
    (check(matmul(dtype="bfloat16", name="h"), matmul(dtype="float64")), Healthy, ", except 10.0 ms in float64"),
    (check(matmul(ran="m/c:Conv2D")), Healthy, "16-bit precision would not shorten them"),  # outside of oneDNN
    (check(RELU), Healthy, "The step runs no matmul"),
    (check(matmul(dtype="", ran="m/c:Conv2D")), NotApplicable, "precision of the matmuls is unknown"),
    (check(UNNAMED), NotApplicable),
    *((check(LOOPED, head, RELU), NotApplicable, "5.00 ms of 5.04 ms") for head in HEADS),
)


def test_the_policy_belongs_before_the_first_layer() -> None:
    layers = (Layer(name="input", kind="InputLayer"), Layer(name="a", kind="Conv2D", at=Location("t.py", 4)))
    assert as_finding(check(matmul(), program=Program(layers=layers))).remedies[0].at == Location("t.py", 4)


def test_hardware_without_a_unit_is_not_applicable() -> None:
    verdict = check(matmul(), hardware=Hardware(DeviceKind.CPU, "x", missing="x has none"))
    assert verdict == NotApplicable(reason="x has none")


# What gains


@pytest.mark.parametrize(("ms", "calls", "kind"), [(0.101, 1, Finding), (0.1, 1, Healthy), (0.9, 9, Healthy)])
@pytest.mark.parametrize("name", ["MatMul", "Conv2DBackpropInput", *rule.FIXED_OF_TYPE])
def test_a_cpus_short_matmuls_gain_nothing(name: str, ms: float, calls: float, kind: type) -> None:
    """Trap: a convolution of 128 small images, and its gradients, take 0.2 to 0.4 ms in both types."""
    scaled = round(ms * 10 * rule.FIXED_OF_TYPE.get(name, 0.1), 6)
    assert isinstance(check(matmul(name, ms=scaled, calls=calls)), kind)


@pytest.mark.parametrize(
    ("weights", "left"),
    [
        ((3, 3, 16, 32), 0.33),
        ((3, 3, 15, 32), OF_FEW_CHANNELS),
        ((1, 1, 15, 32), OF_FEW_CHANNELS),
        ((1, 5, 64, 64), rule.ALONG_ONE_AXIS),
        ((7, 1, 64, 64), rule.ALONG_ONE_AXIS),
    ],
)
def test_a_cpu_gains_less_along_one_axis_and_from_few_channels(weights: tuple[int, ...], left: float) -> None:
    (factor,) = scales(check(of_shape("Conv2D", 10.2, (32, 64, 64, weights[2]), weights), hardware=AMX)).values()
    assert factor * 10.2 == pytest.approx(0.003 + 0.2 + WEIGHTS_MS * math.prod(weights) / 1e6 + left * 10.0)


def test_a_cpus_dense_layers_gain_what_was_measured_of_them() -> None:
    epyc = Hardware(DeviceKind.CPU, "x", "AVX512-BF16", replace(TO_BF16, matmul_scales=0.47))
    rows = (matmul("MatMul", ms=4, layer="b"), matmul("BatchMatMulV2", ms=4, layer="c"), matmul("Einsum", ms=1.0))
    assert scales(check(*rows, RELU, hardware=epyc)) == {
        "model/b/MatMul": pytest.approx((0.003 + 0.1 + BOTH_WAYS_MS * KERNEL + 0.47 * 3.9) / 4),
        "model/c/BatchMatMulV2": pytest.approx((0.003 + 0.1 + 0.6 * 3.9) / 4),
        "model/layer/Einsum": pytest.approx(0.003 + 0.25 + 0.6 * 0.75),  # it transposes its operands first
    }


def test_a_cpus_convolution_of_many_weights_on_few_pixels_gains_nothing() -> None:
    """Measured: 3x3, 512 -> 512 on 2x2 pixels takes 4.25 ms in float32 and 4.19 in bfloat16, gradients included."""
    (factor,) = scales(check(of_shape("Conv2D", 4.25 / 3, (8, 2, 2, 512), (3, 3, 512, 512)), RELU)).values()
    assert 0.95 < factor < 1.25


def mixed(policy: str) -> Verdict:
    program = Program(
        layers=(Layer("head", "Dense", compute_dtype="float32"),), settings=RunSettings(policy=policy)
    )
    return check(matmul(dtype="bfloat16", layer="a"), matmul(ms=3.0, layer="head"), program=program)


def beside(others: float, hardware: Hardware) -> Verdict:
    """Judge a product of 10 ms, of which AMX saves 6.6, by the limits."""
    return example(matmul(ms=10.0), replace(RELU, type="GatherV2", ms=others), hardware=hardware)


test_both_sides_of_each_limit = each_is(
    (mixed("mixed_bfloat16"), Healthy),  # the policy keeps that layer in float32
    (mixed("float32"), Finding),
    (check(matmul(nbytes=6.1e9), hardware=TPU), Finding),  # there matmuls bound by memory gain
    (check(matmul(nbytes=5.9e9), hardware=TPU), Healthy),
    (check(matmul(nbytes=None), hardware=TPU), Healthy),
    # Trap: small networks, which the same change made slower
    (beside(10.0, AMX), Finding),
    (beside(20.0, AMX), Healthy),
    (beside(20.0, replace(AMX, matrix_unit="AVX512-BF16")), Finding),
    (beside(50.0, replace(AMX, matrix_unit="AVX512-BF16")), Healthy),
    # Trap: casts of activations, which are not counted, take a gain of some per cent away
    (beside(15.5, CPU), Finding),
    (beside(17.0, CPU), Healthy, "casts"),
    (beside(17.0, GPU), Finding),
)


# What costs


def test_on_a_cpu_casts_of_weights_cost_matmuls_that_gain_nothing() -> None:
    short = matmul(ms=0.09, calls=1, layer="short")
    assert slower(matmul(ms=10), short) == {short.name: pytest.approx(1 + 0.003 / 0.09)}


def test_casts_around_unfused_batch_norm_cost_a_cpu_time() -> None:
    """Six passes over 100 MB at 300 GB/s: casts of 2 ms for a layer of 8 ms. A GPU fuses them."""
    norm = BatchNorm(Layer(name="bn", kind="BatchNormalization"), ms=8.0, operations=9, nbytes=10**8)
    norms = BatchNorms((norm,), fused=0, seen=1, rate=3e11)
    assert slower(matmul(ms=10), norms=norms) == {"bn (batch norm)": pytest.approx(1.25)}
    assert [*scales(check(matmul(ms=10), norms=norms, hardware=GPU))] == ["model/layer/Conv2D"]


def other(kind: str, name: str = "g", dtype: str = "float32", *, stride: int = 0, **more: Any) -> OperationTime:
    attrs = Attributes(strides=(1, stride, stride, 1)) if stride else Attributes()
    known = Operation(name=name, type=kind, inputs=((dtype, (None, 28, 28, 64)),), attrs=attrs)
    return OperationTime(name=name, type=kind, operation=known, **({"ms": 2.0} | more))


STRIDED = "DepthwiseConv2dNativeBackpropInput"


@pytest.mark.parametrize(
    ("row", "factor"),
    [
        (other(STRIDED, stride=2), 12.0),
        (other(STRIDED, stride=1), None),
        (other(STRIDED), 12.0),
        (other("Sigmoid", "m/act/s"), SLOWER["Sigmoid"]),
        (other("Sigmoid", "m/act/s", "bfloat16"), None),
        (other("Sigmoid", "adam/s"), None),
        (other("ReluGrad", ms=0.9), rule.SLOWER_IN_CACHES["ReluGrad"]),
        (other("ReluGrad", ms=1.8, calls=2.0), rule.SLOWER_IN_CACHES["ReluGrad"]),
        (other("ReluGrad", ms=1.1), None),
        (other("BiasAddGrad", ms=9.0), SLOWER["BiasAddGrad"]),
        (other("MaxPoolGrad", ms=0.9), None),
    ],
)
def test_operations_that_take_longer_on_a_cpu_cost_time(row: OperationTime, factor: float | None) -> None:
    """Traps: EfficientNet's sigmoids made bfloat16 a third slower; small convolutions gained less than others lost.

    Values are widened one by one; gradients of activations lose while they fit into caches.
    """
    assert slower(matmul(ms=20), row) == ({row.name: factor} if factor else {})
    assert bool(figures(check(matmul(ms=20), row), "slower in 16-bit precision")) is bool(factor)
    assert slower(matmul(ms=20), row, hardware=GPU) == {}


DENSE = ("dense/MatMul", "gradient_tape/dense/MatMul/MatMul", "gradient_tape/dense/MatMul/MatMul_1")
LAYER = Program(layers=(Layer(name="layer", kind="Conv2D"), Layer(name="pool", kind="GlobalAveragePooling2D")))
CONVS = [matmul(kind, layer="layer") for kind in ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput")]
MATMULS = [matmul("MatMul", layer="dense", name=name) for name in DENSE]


@pytest.mark.parametrize(
    ("rows", "casts"), [(CONVS[:2], 1), (CONVS, 0), (CONVS[:1], 0), (MATMULS[:2], 1), (MATMULS, 0)]
)
def test_the_layer_that_reads_the_models_input_pays_for_its_cast(rows: list[OperationTime], casts: int) -> None:
    """Trap: a layer that runs no gradient at all is not known to read the model's input."""
    alone, known = scales(check(*rows)), scales(check(*rows, program=LAYER))
    added = TO_BFLOAT16_MS * math.prod((32, 32, 32, 32)) / 1e6 / 10.0
    expected = {row.name: alone[row.name] + added * (at < casts) for at, row in enumerate(rows)}
    assert known == pytest.approx(expected)


def test_the_casts_of_a_dense_layers_weights_are_counted_once() -> None:
    forward, *backward = scales(check(*MATMULS)).values()
    least = (0.003 + 0.1 + 0.6 * 9.9) / 10
    assert backward == [pytest.approx(least)] * 2
    assert forward == pytest.approx(least + BOTH_WAYS_MS * KERNEL / 10)


def test_a_first_layer_that_gains_nothing_still_pays_for_the_cast() -> None:
    """Trap: on spectrograms the cast of the input took a third of what the convolutions gained."""
    shape = (32, 59, 129, 1)
    first = of_shape("Conv2D", 10.0, shape, (5, 5, 1, 8), layer="layer", name="f")
    costs = slower(matmul(layer="b"), first, matmul("Conv2DBackpropFilter", layer="layer"), program=LAYER)
    assert costs["f"] == pytest.approx(1 + (0.003 + TO_BFLOAT16_MS * math.prod(shape) / 1e6) / 10)


@pytest.mark.parametrize(
    ("layer", "width", "costs"), [("pool", 15, True), ("bn", 15, False), ("pool", None, False)]
)
def test_global_pooling_casts_its_input_and_its_gradient(layer: str, width: int | None, *, costs: bool) -> None:
    made = Operation(name="mean", type="Mean", inputs=(("float32", (32, width, 15, 32)), ("int32", (2,))))
    mean = OperationTime(name="mean", type="Mean", ms=0.05, layer=layer, operation=made)
    added = BOTH_WAYS_MS * 32 * 15 * 15 * 32 / 1e6
    expected = {"mean": pytest.approx(1 + added / 0.05)} if costs else {}
    assert slower(matmul(ms=10), mean, program=LAYER) == expected


# Other operations


FLOAT_KERNEL = "void Eigen::internal::EigenMetaKernel<float>"


@pytest.mark.parametrize(("kind", "gaining"), [(DeviceKind.GPU, ["gradient_tape/relu"]), (DeviceKind.CPU, [])])
def test_an_accelerators_other_operations_move_half_the_bytes(kind: DeviceKind, gaining: list[str]) -> None:
    """Except the optimizer's, whose variables stay float32, and those in 16-bit precision already."""
    relu = OperationTime(name="gradient_tape/relu", type="ReluGrad", ms=4.0, ran=(FLOAT_KERNEL,))
    half = OperationTime(name="half", type="Relu", ms=4.0, ran=(FLOAT_KERNEL.replace("float", "half"),))
    adam = OperationTime(name="adam/Mul", type="Mul", ms=4.0, ran=(FLOAT_KERNEL,))
    hardware = Hardware(kind, "x", "unit", TO_BF16, bandwidth_bytes_s=1e12)
    others = as_finding(check(matmul(ms=10, nbytes=9e9), relu, half, adam, hardware=hardware)).effects[1:]
    assert [effect.subject for effect in others] == gaining
    assert all((effect.scales, effect.bound) == (0.5, Bound.AT_MOST) for effect in others)


def test_in_a_mixed_model_other_float32_operations_stay() -> None:
    """Trap: Keras computes normalization in float32 under a mixed policy."""
    norm = OperationTime(name="bn/mul", type="Mul", ms=4.0, ran=(FLOAT_KERNEL,), layer="bn")
    rows = (matmul(ms=3.0, layer="raw"), matmul(dtype="float16", layer="a"), norm)
    assert [*scales(check(*rows, hardware=GPU))] == ["model/raw/Conv2D"]


# From traces


def examine(gpu: Machine) -> Result:
    (result,) = engine.examine(chart(trace([markers(6, 10)], gpus=[gpu])), [Rule.from_module(rule)])
    return result


def kernels(name: str, ms: float = 8) -> Any:
    conv = {"tf_op": "model/c/Conv2D:Conv2D"}
    return line("Stream #1", *((name, 10 * n + 1, 10 * n + 1 + ms, conv) for n in range(6)))


def test_a_v100_in_float32_is_advised_float16() -> None:
    result = examine(v100(kernels("volta_scudnn_128x64_relu")))
    assert "mixed_float16" in as_finding(result.outcome).remedies[0].code
    assert result.saving
    # 8 ms become 1, but the host that leaves the device idle for 2 is taken to launch for 2 more
    assert result.saving.ms_per_step == pytest.approx(8 - 2)
    assert result.saving.bound is Bound.AT_MOST


P4 = device(kernels("maxwell_scudnn_128x64_relu"), gpu_device_name="Tesla P4", compute_cap_major=6)


test_other_gpus_are_not_advised = each_is(
    (examine(v100(kernels("volta_fp16_s884cudnn_fp16_128x128"))).outcome, Healthy),
    (
        examine(v100(kernels("volta_sgemm_32x32", ms=0.03))).outcome,
        Healthy,
        "less than 3 %",
    ),  # a head of ten classes
    (examine(v100()).outcome, NotApplicable),
    (examine(P4).outcome, NotApplicable),
)


@pytest.mark.parametrize(
    ("kernel", "factor", "avoids"),
    [
        ("ampere_sgemm_128x64_nn", 1 / 16, True),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", 1 / 2, False),
    ],
)
def test_float32_that_avoids_tensor_cores_on_an_a100_gains_more_than_tf32(
    kernel: str, factor: float, *, avoids: bool
) -> None:
    """128 against 2048 FLOP per multiprocessor and clock; as TF32 it would be 1024."""
    outcome = examine(device(kernels(kernel), compute_cap_major=8, compute_cap_minor=0)).outcome
    least = factor if avoids else factor * rule.LEAST_OF_PEAKS  # its FLOPs are unknown
    assert [*scales(outcome).values()] == [least]
    assert [*figures(outcome, "time relative to").values()] == [least, factor]
    assert bool(figures(outcome, "not even as TF32")) is avoids


def test_what_bfloat16_saved_on_an_h100_is_within_the_ceiling() -> None:
    result = judged("convnet-float32", rule)
    assert result.saving is not None
    saved = 1.0 - TIMED_MS["convnet-bfloat16"] / TIMED_MS["convnet-float32"]
    assert saved <= result.saving.share <= saved + 0.08
    assert isinstance(judged("convnet-bfloat16", rule).outcome, Healthy)


@pytest.mark.parametrize(
    ("framework", "code"),
    [
        (Framework(JAX), "astype(jnp.bfloat16)"),
        (Framework(PYTORCH), "torch.autocast"),
        (Framework(JAX, keras=True), "mixed_bfloat16"),
        (Framework(), "mixed_bfloat16"),
    ],
)
def test_the_remedy_is_of_the_framework(framework: Framework, code: str) -> None:
    assert code in as_finding(check(matmul(), framework=framework)).remedies[0].code


# The edit of a model with classes of the file: only where every operand of call() has the policy's type


TEXT = """import keras
import numpy as np
import tensorflow as tf
TABLE, SCALE = tf.ones([4]), 2.0
class Block(keras.layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.inner = keras.layers.Dense(width)
    def call(self, x):
        return tf.nn.relu(self.inner(x)) + x
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [Block(4) for _ in range(2)]
        self.head = keras.layers.Dense(2)
        self.weight = tf.Variable(1.0)
    def call(self, x, training=False):
        for block in self.blocks:
            x = block(x)
        {body}
        return {result}
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean({loss})
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {{"loss": loss}}
model = Net()
model.compile("sgd", "mse")
model.fit(data)
{after}
"""


def own(body: str = "pass", result: str = "self.head(x)", loss: str = "self(x) - y", after: str = "") -> str:
    return TEXT.format(body=body, result=result, loss=loss, after=after)


@pytest.mark.parametrize(
    "body", ["pass", "x = x * 2.0", "x = x * SCALE", "x = tf.concat([x, x], -1)", "x = tf.reshape(x, [-1, 4])"]
)
def test_the_head_of_an_own_model_stays_float32(body: str) -> None:
    text = edited("mixed-precision", own(body), "model = Net")
    assert 'self.head = keras.layers.Dense(2, dtype="float32")' in text
    assert 'keras.mixed_precision.set_global_policy("mixed_bfloat16")' in text
    assert text.count("float32") == 1


@pytest.mark.parametrize(
    "text",
    [
        own("x = x + tf.random.normal([4])"),
        own("x = x * TABLE"),
        own("x = x * np.pi"),
        own("x = x * self.weight"),
        own("x = tf.cast(x, tf.float32)"),
        own("x = tf.matmul(x, TABLE)"),
        own("x = helper(x)"),
        own(result="tf.nn.softmax(self.head(x))"),
        own(result="self.head(x), x"),
        own(result="self.blocks(x)"),
        own(loss="self.head(x) - y"),
        own(after="print(model.head(data))"),
        own(after="other = keras.Model(a, b)"),
    ],
)
def test_what_may_mix_two_types_declines(text: str) -> None:
    assert declined("mixed-precision", text, "model = Net") is None


def test_a_call_of_several_inputs_declines() -> None:
    with pytest.raises(Declined, match="several inputs"):
        edited("mixed-precision", own().replace("call(self, x):", "call(self, x, y):"), "model = Net")


def test_the_last_layers_of_several_models_stay_float32() -> None:
    models = ("Sequential([keras.layers.Dense(8), keras.layers.Dense(4)])", "Sequential([keras.layers.Dense(1)])")
    text = edited("mixed-precision", "import keras\n" + "".join(f"m = keras.{model}\n" for model in models), "m =")
    assert 'Dense(4, dtype="float32")' in text
    assert 'Dense(1, dtype="float32")' in text
    assert text.count("float32") == 2

"""float32-matmul: matmuls in float32 on a device that is faster in 16-bit precision, and the edit of a model."""

from tests.h100 import TIMED_MS, judged
from tests.rules.kit import *
from tfdoctor.rules.precision import float32_matmul
from tfdoctor.rules.precision.float32_matmul import SLOWER, Limits, ReducedPrecision

CPU = Hardware(DeviceKind.CPU, "example", "AVX512-BF16", SixteenBit("bfloat16", 0.6, Bound.EXPECTED, "an example"))
TO_BF16 = SixteenBit("bfloat16", 0.6, Bound.EXPECTED, "measured")
GPU = Hardware(DeviceKind.GPU, "x", "Tensor Core", TO_BF16)
TPU = Hardware(DeviceKind.TPU, "x", "MXU", TO_BF16, bandwidth_bytes_s=1e12)
AMX = Hardware(DeviceKind.CPU, "x", "AMX", replace(TO_BF16, scales=0.33))
RELU = took("gradient_tape/m/relu", "ReluGrad", 5.0)
LOOPED = matmul("MatMul", ms=5.0, dtype="", name="MatMul", calls=440.0)
"""Of an LSTM, in the body of a loop, which belongs to no layer."""
NORM = BatchNorm(Layer(name="bn", kind="BatchNormalization"), ms=8.0, operations=9, nbytes=10**8)
NORMS = BatchNorms((NORM,), fused=0, seen=1, rate=3e11)
"""Six passes over 100 MB at 300 GB/s: casts of 2 ms for a layer of 8 ms."""
NORM_ROW = took("bn/mul", "Mul", 4.0, layer="bn", ran=("EigenMetaKernel<float>",))
DENSE = ("dense/MatMul", "gradient_tape/dense/MatMul/MatMul", "gradient_tape/dense/MatMul/MatMul_1")
LAYER = Program(layers=(Layer(name="layer", kind="Conv2D"), Layer(name="pool", kind="GlobalAveragePooling2D")))
CONVS = [matmul(kind, layer="layer") for kind in ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput")]
MATMULS = [matmul("MatMul", layer="dense", name=name) for name in DENSE]
EPYC = Hardware(DeviceKind.CPU, "x", "AVX512-BF16", replace(TO_BF16, matmul_scales=0.47))
PLACED = Program(layers=(Layer("input", "InputLayer"), Layer("a", "Conv2D", at=Location("t.py", 4))))
STRIDED = "DepthwiseConv2dNativeBackpropInput"
BY_FILTER = matmul("Conv2DBackpropFilter", layer="layer")
AVX = replace(AMX, matrix_unit="AVX512-BF16")


def conv(dtype: str = "float32") -> OperationTime:
    """Build a convolution that takes 80 ms."""
    name, tensors = "model/conv2d/convolution", ((dtype, (32, 64, 64, 48)), (dtype, (3, 3, 48, 48)))
    graph = Operation(name=name, type="Conv2D", inputs=tensors)
    more: dict[str, Any] = {"layer": "conv2d", "at": script(9), "operation": graph}
    return took(name, "Conv2D", 80.0, ran=(f"{name}:_MklNativeConv2D",), **more)


def example(
    *rows: OperationTime, hardware: Hardware = CPU, program: Program | None = None,
    norms: BatchNorms | None = None, framework: Framework = Framework(), limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """A float32 convolution takes 80 ms on a CPU with avx512_bf16."""
    operations = Operations(rows or (conv(),))
    reduced = ReducedPrecision.measure(operations, hardware, norms, program)
    return float32_matmul.check(operations, hardware, program, reduced, framework, limits)


def of_shape(kind: str, ms: float, shape: tuple[int, ...], weights: tuple[int, ...], **more: Any) -> OperationTime:
    row = matmul(kind, ms=ms, **more)
    made = Operation(name=row.name, type=kind, inputs=(("float32", shape), ("float32", weights)))
    return replace(row, operation=made)


def mixed(policy: str) -> Verdict:
    program = Program(
        layers=(Layer("head", "Dense", compute_dtype="float32"),), settings=RunSettings(policy=policy)
    )
    return check(matmul(dtype="bfloat16", layer="a"), matmul(ms=3.0, layer="head"), program=program)


def of_weights(*weights: int, ms: float = 10.2, hardware: Hardware = CPU) -> Verdict:
    return check(of_shape("Conv2D", ms, (32, 64, 64, weights[2]), weights), hardware=hardware)


def other(kind: str, name: str = "g", dtype: str = "float32", *, stride: int = 0, **more: Any) -> OperationTime:
    attrs = Attributes(strides=(1, stride, stride, 1)) if stride else Attributes()
    known = Operation(name=name, type=kind, inputs=((dtype, (None, 28, 28, 64)),), attrs=attrs)
    return OperationTime(name=name, type=kind, operation=known, **({"ms": 2.0} | more))


def pooled(layer: str, width: int | None) -> Verdict:
    made = Operation(name="mean", type="Mean", inputs=(("float32", (32, width, 15, 32)), ("int32", (2,))))
    mean = took("mean", "Mean", 0.05, layer=layer, operation=made)
    return check(matmul(ms=10), mean, program=LAYER)


def beside(others: float, hardware: Hardware) -> Verdict:
    """Judge a product of 10 ms, of which AMX saves 6.6, by the limits."""
    return example(matmul(ms=10.0), replace(RELU, type="GatherV2", ms=others), hardware=hardware)


def accelerator(kind: DeviceKind) -> Verdict:
    names = {"gradient_tape/relu": "float", "half": "half", "adam/Mul": "float"}
    rest = (
        took(name, "Relu", 4.0, ran=(f"void Eigen::internal::EigenMetaKernel<{dtype}>",))
        for name, dtype in names.items()
    )
    hardware = Hardware(kind, "x", "unit", TO_BF16, bandwidth_bytes_s=1e12)
    return check(matmul(ms=10, nbytes=9e9), *rest, hardware=hardware)


sick = example
healthy = described("The convolution runs in bfloat16.", example, conv("bfloat16"))
check = partial(example, limits=Limits(on_cpu=float("-inf"), on_amx=float("-inf")))
"""Reports every gain, so that the tests can see what is counted."""
SPECTROGRAM = of_shape("Conv2D", 10.0, (32, 59, 129, 1), (5, 5, 1, 8), layer="layer", name="f")


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["each matmul in float32 has its own price, and other operations have none"] = check(
        matmul(ms=10, layer="a"), matmul("MatMul", ms=4, layer="b"), RELU
    )
    told["a float32 head"] = check(matmul(dtype="bfloat16", layer="a"), matmul(ms=20.0, layer="head"), RELU)
    told["an LSTM's loop of unknown precision is not counted"] = check(LOOPED, matmul(ms=20.0, layer="head"), RELU)
    told["in 16 or in 64 bits"] = [check(matmul(dtype=dtype), RELU) for dtype in ("bfloat16", "float16", "float64")]
    told["in bfloat16 but for some float64"] = check(matmul(dtype="bfloat16", name="h"), matmul(dtype="float64"))
    told["a matmul outside of oneDNN would not get shorter"] = check(matmul(ran="m/c:Conv2D"))
    told["no matmul"] = check(RELU)
    told["matmuls of unknown precision"] = check(matmul(dtype="", ran="m/c:Conv2D"))
    told["operations that are not named"] = check(UNNAMED)
    told["a loop of unknown precision takes nearly all, beside a head in float32 or bfloat16"] = [
        check(LOOPED, matmul("MatMul", ms=0.04, layer="dense", dtype=dtype), RELU)
        for dtype in ("float32", "bfloat16")
    ]
    told["hardware without a unit"] = check(matmul(), hardware=Hardware(DeviceKind.CPU, "x", missing="x has none"))
    told["the policy belongs before the first layer"] = check(matmul(), program=PLACED)
    told["JAX casts the arrays, PyTorch has autocast, and Keras on JAX a policy"] = [
        check(matmul(), framework=one) for one in (Framework(JAX), Framework(PYTORCH), Framework(JAX, keras=True))
    ]
    told["a head in float32, which a mixed policy keeps, or no policy"] = mixed("mixed_bfloat16"), mixed("float32")
    told["16 channels fill a tile of AMX, and 15 do not, of one pixel neither"] = [
        of_weights(*weights, 32, hardware=AMX) for weights in ((3, 3, 16), (3, 3, 15), (1, 1, 15))
    ]
    told["16, 15, 4, and 3 channels without AMX"] = [of_weights(3, 3, channels, 32) for channels in (16, 15, 4, 3)]
    told["a convolution along one axis or the other gains less"] = of_weights(*(1, 5), 64, 64, hardware=AMX)
    told[...] = of_weights(*(7, 1), 64, 64, hardware=AMX)
    told["many weights on few pixels gain nothing: measured, 4.25 ms in float32 and 4.19 in bfloat16"] = check(
        of_shape("Conv2D", 4.25 / 3, (8, 2, 2, 512), (3, 3, 512, 512)), RELU
    )
    told["dense layers gain what was measured of them, and an Einsum transposes first"] = check(
        *(matmul(kind, ms=ms, layer=kind[0]) for kind, ms in (("MatMul", 4), ("BatchMatMulV2", 4), ("Einsum", 1))),
        RELU,
        hardware=EPYC,
    )
    told["small networks, which the same change made slower: 10 and 20 ms beside on AMX, 20 and 50 without"] = [
        beside(ms, hardware) for ms, hardware in ((10.0, AMX), (20.0, AMX), (20.0, AVX), (50.0, AVX))
    ]


@golden_cases
def test_casts(told: Cases) -> None:
    told["casts of activations take some per cent of a gain; not on a GPU"] = beside(15.5, CPU)
    told[...] = beside(17.0, CPU), beside(17.0, GPU)
    told["what gains nothing casts its weights"] = check(matmul(ms=10), matmul(ms=0.09, calls=1, layer="short"))
    told["casts around unfused batch norm; a GPU fuses them"] = check(matmul(ms=10), norms=NORMS, hardware=CPU)
    told[...] = check(matmul(ms=10), norms=NORMS, hardware=GPU)
    told["the layer that reads the model's input pays for its cast"] = check(*CONVS[:2], program=LAYER)
    told[...] = check(*CONVS, program=LAYER)
    told["a layer that runs no gradient is not known to read the model's input"] = check(CONVS[0], program=LAYER)
    told["a dense layer that reads the input, and one that does not"] = check(*MATMULS[:2], program=LAYER)
    told[...] = check(*MATMULS, program=LAYER)
    told["on spectrograms the first layer casts"] = check(matmul(layer="b"), SPECTROGRAM, BY_FILTER, program=LAYER)
    told["global pooling casts its input and gradient; another mean does not"] = pooled("pool", 15)
    told[...] = pooled("bn", 15), pooled("pool", None)


# From traces
def examine(gpu: Machine) -> Result:
    return examined(float32_matmul, chart(trace([markers(6, 10)], gpus=[gpu])))


def kernels(name: str, ms: float = 8) -> Any:
    conv = {"tf_op": "model/c/Conv2D:Conv2D"}
    return line("Stream #1", *((name, 10 * n + 1, 10 * n + 1 + ms, conv) for n in range(6)))


P4 = device(kernels("maxwell_scudnn"), gpu_device_name="Tesla P4", compute_cap_major=6, compute_cap_minor=1)
V100 = examine(v100(kernels("volta_scudnn_128x64_relu")))


@golden_cases
def test_other_operations(told: Cases) -> None:
    told["a GPU's other operations move half the bytes, except the optimizer's"] = accelerator(DeviceKind.GPU)
    told["a CPU's other operations do not gain"] = accelerator(DeviceKind.CPU)
    told["Keras keeps normalization in float32 in a mixed model"] = check(
        matmul(ms=3.0, layer="raw"), matmul(dtype="float16", layer="a"), NORM_ROW, hardware=GPU
    )
    told["a matmul on a TPU at 61 % of the bandwidth, at 59 %, and of unknown bytes"] = [
        check(matmul(nbytes=nbytes), hardware=TPU) for nbytes in (6.1e9, 5.9e9, None)
    ]

    def short(kind: str, ms: float, calls: float = 1.0) -> Verdict:
        return check(matmul(kind, ms=ms, calls=calls))

    # Measured: a convolution of 128 small images, and its gradients, take 0.2 to 0.4 ms in both types
    for kind, ms in (("MatMul", 0.1), ("Conv2DBackpropInput", 0.1), *float32_matmul.FIXED_OF_TYPE.items()):
        told[f"{kind}s of {ms} ms gain nothing, and longer ones do"] = short(kind, ms)
        told[...] = short(kind, 9 * ms, calls=9.0), short(kind, ms + 0.001)
    slow = {
        kind: check(matmul(ms=20), other(kind, "m/x", ms=0.9))
        for kind in (*SLOWER, *float32_matmul.SLOWER_IN_CACHES)
    }
    told["a CPU widens values one by one, which made EfficientNet a third slower"] = [
        f"{kind}: {as_finding(verdict).effects[1].scales:g}" for kind, verdict in slow.items()
    ]
    told["what is slower is told, and a GPU loses nothing"] = check(matmul(ms=20), other("Sigmoid"), hardware=CPU)
    told[...] = check(matmul(ms=20), other("Sigmoid"), hardware=GPU)
    told["gradients of strides 2, 0, 1"] = [
        check(matmul(ms=20), other(STRIDED, stride=stride)) for stride in (2, 0, 1)
    ]
    told["what loses nothing in 16 bits"] = check(matmul(ms=20), other("Sigmoid", dtype="bfloat16"))
    told[...] = check(matmul(ms=20), other("Sigmoid", "adam/s")), check(matmul(ms=20), other("MaxPoolGrad", ms=0.9))
    told["gradients of activations lose while they fit into caches: 0.9 ms a call, and not 1.1"] = [
        check(matmul(ms=20), other("ReluGrad", ms=ms, calls=calls)) for ms, calls in ((1.8, 2.0), (1.1, 1.0))
    ]
    told["a V100 in float32 is advised float16"] = V100.outcome
    # 8 ms become 1, but the host that leaves the device idle for 2 is taken to launch for 2 more
    told["what float16 saves on the V100"] = (V100.saving,)
    told["a V100 in float16, and one with a head of ten classes"] = [
        examine(v100(kernels(name, ms))).outcome
        for name, ms in (("volta_fp16_s884cudnn_fp16_128x128", 8), ("volta_sgemm_32x32", 0.03))
    ]
    told["a V100 without kernels"] = examine(v100()).outcome
    told["a P4 has no Tensor Cores"] = examine(P4).outcome
    told["float32 that avoids the Tensor Cores of an A100 gains more than TF32"] = [
        examine(device(kernels(kernel), compute_cap_major=8, compute_cap_minor=0)).outcome
        for kernel in ("ampere_sgemm_128x64_nn", "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4")
    ]


def test_what_bfloat16_saved_on_an_h100_is_within_the_ceiling() -> None:
    result = judged("convnet-float32", float32_matmul)
    assert result.saving is not None
    saved = 1.0 - TIMED_MS["convnet-bfloat16"] / TIMED_MS["convnet-float32"]
    assert saved <= result.saving.share <= saved + 0.08
    assert isinstance(judged("convnet-bfloat16", float32_matmul).outcome, Healthy)


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


def change(text: str, marked: str = "model = Net") -> str:
    return lines_of_edit("mixed-precision", text, marked)


@golden_cases
def test_edits(told: Cases) -> None:
    for body in ("pass", "x = x * 2.0", "x = x * SCALE", "x = tf.concat([x, x], -1)", "x = tf.reshape(x, [-1, 4])"):
        told[f"the head of an own model stays float32, after {body}"] = change(own(body))
    for body in (
        "x = x + tf.random.normal([4])",
        "x = x * TABLE",
        "x = x * np.pi",
        "x = x * self.weight",
        "x = tf.cast(x, tf.float32)",
        "x = tf.matmul(x, TABLE)",
        "x = helper(x)",
    ):
        told[f"{body} may mix two types"] = change(own(body))
    for result in ("tf.nn.softmax(self.head(x))", "self.head(x), x", "self.blocks(x)"):
        told[f"the result {result} is not that of a layer"] = change(own(result=result))
    told["a layer of the model is called by the loss"] = change(own(loss="self.head(x) - y"))
    told["a layer of the model is called outside of it"] = change(own(after="print(model.head(data))"))
    told["another model, which is made of tensors"] = change(own(after="other = keras.Model(a, b)"))
    told["a call of several inputs"] = change(own().replace("call(self, x):", "call(self, x, y):"))
    models = ("Sequential([keras.layers.Dense(8), keras.layers.Dense(4)])", "Sequential([keras.layers.Dense(1)])")
    several = "import keras\n" + "".join(f"m = keras.{model}\n" for model in models)
    told["the last layers of several models stay float32"] = change(several, "m =")

"""unaligned-dimension: widths that the hardware pads, where the padding costs time."""

from tests.h100 import TIMED_MS, h100, judged
from tests.rules.kit import *
from tfdoctor.facts.run.hardware import AMX_TILE, ONEDNN_TILE, Tile
from tfdoctor.rules.precision import unaligned_dimension
from tfdoctor.rules.precision.unaligned_dimension import AlignedTimes, check

CPU = Hardware(DeviceKind.CPU, "example", tile=Tile(16, "an example"))
GPU = Hardware(DeviceKind.GPU, "x", "Tensor Core", tile=Tile(8, "guide", faster_above=True))
TPU = Hardware(DeviceKind.TPU, "x", "MXU", tile=Tile(128, "guide"))
RELU = took("r", "ReluGrad", 90.0)
FAST = replace(GPU, peak_flop_s=1e15)


def one_conv(channels: int = 33) -> OperationTime:
    """Build a convolution to so many channels."""
    name = "model/conv2d/convolution"
    tensors = (("float32", (32, 32, 32, 32)), ("float32", (3, 3, 32, channels)))
    made = Operation(name=name, type="Conv2D", inputs=tensors)
    return took(name, "Conv2D", 14.5, layer="conv2d", at=script(9), operation=made)


def example(*rows: OperationTime, hardware: Hardware = CPU, aligned: AlignedTimes | None = None) -> Verdict:
    """A convolution has 33 channels where the hardware pads to 16."""
    return check(Operations(rows or (one_conv(),)), hardware, aligned)


def conv(width: int, ms: float = 10.0, **more: Any) -> OperationTime:
    return matmul(ms=ms, weights=(3, 3, 32, width), layer=f"c{width}", **more)


def hlo(name: str, width: int) -> OperationTime:
    """A product on a TPU of which the trace contains the instruction alone."""
    text = f"%fusion = bf16[512,{width}]{{1,0}} fusion(%p0, %p1), kind=kOutput"
    kind = name.rpartition("/")[2]
    return took(name, kind, 9.0, ran=(text,), category="convolution fusion")


def network(*, width: int, tile: Tile = AMX_TILE) -> Verdict:
    """Two layers of the same width, and a last one that makes twelve channels for an image."""
    layers = {"stem": (9.0, 3, width), "body": (9.0, width, width), "tail": (1.0, width, 12)}
    rows = (matmul(ms=ms, weights=(3, 3, have, make), layer=name) for name, (ms, have, make) in layers.items())
    return example(*rows, hardware=replace(CPU, tile=tile))


def slowly(width: int, least_ms: float, *, cleared_ms: float = 0.0, **more: Any) -> Verdict:
    """A matmul of 10 ms between others of its width; aligned kernels need ``least_ms`` at least."""
    rows = (
        matmul("MatMul", weights=(width, width), dtype="bfloat16", name=f"w{width}"),
        matmul("MatMul", weights=(width, 9), dtype="bfloat16", name="head"),
    )
    aligned = AlignedTimes({f"w{width}": least_ms, "head": 10.0, "scale": 1.0}, {f"w{width}": cleared_ms})
    return example(*rows, *more.get("others", ()), hardware=FAST, aligned=aligned)


sick = example
healthy = described("The convolution has 32 channels.", example, one_conv(32))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["the multiple below makes the step shorter"] = example(conv(33))
    told["43 of 48 channels are 10 % of padding, and 44 are 8 %"] = example(conv(43)), example(conv(44))
    told["channels that fill their tiles"] = example(conv(16)), example(conv(48))
    told["a multiple below that takes too much away is not proposed, but the one above"] = example(conv(24))
    told["a third of 2 of 92 ms is padding, and of 1"] = [example(conv(33, ms), RELU) for ms in (2.0, 1.0)]
    told["a quarter of 9 of 99 ms, not to be saved, and of 7"] = [example(conv(24, ms), RELU) for ms in (9, 7)]
    told["an operation of microseconds takes no less when narrower"] = [
        example(conv(33, ms, calls=calls)) for ms, calls in ((0.005, 1), (0.0049, 1), (0.0099, 2))
    ]
    dense = matmul("MatMul", ms=50.0, weights=(512, 10), dtype="float16", layer="head")
    wide = matmul("MatMul", ms=50.0, weights=(512, 512), dtype="float16", layer="body")
    told["trap: ten classes"] = example(dense, wide, hardware=TPU)
    body, head = matmul(ms=50.0, weights=(3, 3, 3, 32), layer="body"), matmul(ms=9.0, weights=(1, 1, 32, 10))
    told["trap: ten classes by a convolution that no layer reads, and a mean over the image"] = example(body, head)
    flattened = matmul("MatMul", ms=1.0, weights=(7 * 7 * 10, 5), layer="dense")
    told["ten channels that a dense layer reads"] = example(body, head, flattened)
    narrow = matmul("MatMul", weights=(512, 10), dtype="bfloat16")
    told["widths far below the multiple are not called unknown"] = example(narrow, hardware=TPU)
    for width in (10, 12, 20):
        body, head, back, narrow, reads = (
            matmul("MatMul", weights=weights, dtype="bfloat16", name=name)
            for name, weights in (
                ("body/MatMul", (320, 513)),
                ("head/MatMul", (513, width)),
                ("gradient_tape/head/MatMul/MatMul_1", (64, width)),
                ("body/MatMul", (320, width)),
                ("head/MatMul", (width, 512)),
            )
        )
        told[f"{width} units of the last layer are classes"] = example(body, head, back, hardware=GPU)
        told[f"{width} units of a layer that another reads"] = example(narrow, reads, back, hardware=GPU)
    rows = conv(33, 5.0), conv(65, 20.0), conv(33, 4.0, name="model/c33/gradient")
    told["the heaviest layer first"] = example(*rows, matmul("MatMul", ms=1.0, weights=(33 * 65, 5), layer="dense"))
    told["unknown tiles"] = example(conv(33), hardware=Hardware(DeviceKind.GPU, "x", missing="unknown"))
    told["a convolution without shapes"] = example(took("c", "Conv2D", 5.0))
    told["no matmul"] = example(RELU)
    told["operations without names"] = example(UNNAMED)
    told["oneDNN pads convolutions and not matmuls"] = example(matmul("MatMul", weights=(512, 33)))


@golden_cases
def test_hardware(told: Cases) -> None:
    told["both sides of a convolution between padded layers shrink"] = network(width=130)
    told["without a measurement on the processor it is a ceiling"] = network(width=130, tile=ONEDNN_TILE)
    told["a wider layer there"] = network(width=24, tile=ONEDNN_TILE)
    told["trap: the last convolution has twelve channels because the image needs them"] = network(width=128)
    for dtype in ("bfloat16", "float32"):
        body = matmul("MatMul", weights=(512, 33), dtype=dtype, name="body/MatMul")
        head = matmul("MatMul", ms=1.0, weights=(33, 10), dtype=dtype, name="head/MatMul")
        told[f"matmuls in {dtype} on AMX"] = example(body, head, hardware=replace(CPU, tile=AMX_TILE))
    told["whole tiles take faster kernels on tensor cores"] = example(conv(12, dtype="float16"), hardware=GPU)
    for dtype in ("float16", "bfloat16", "float32"):
        told[f"35 channels in {dtype} on tensor cores"] = example(conv(35, dtype=dtype), hardware=GPU)


@golden_cases
def test_tpu(told: Cases) -> None:
    tape = "gradient_tape/second/Conv2D/Conv2DBackprop"
    widths = {"first/Conv2D": 144, "second/Conv2D": 288, f"{tape}Filter": 288, f"{tape}Input": 144}
    told["the gradient of a layer's input is as wide as the layer before"] = example(
        *(hlo(name, width) for name, width in widths.items()), hardware=TPU
    )
    for name, shape in (
        ("its tiles are known", "bf16[512,144]{1,0:T(8,128)(2,1)}"),
        ("its tiles are unknown", "bf16[512,144]{1,0}"),
        ("it has another width", "bf16[512,96]{1,0:T(8,128)(2,1)}"),
        ("that width is not its last dimension", "bf16[144,512]{1,0:T(8,128)(2,1)}"),
    ):
        text = f"%fusion.9 = {shape} fusion(%p0), kind=kLoop"
        relu = took("relu", "Relu", 9.0, ran=(text,), category="loop fusion")
        told[f"another operation on a TPU, {name}"] = example(hlo("first/Conv2D", 144), relu, hardware=TPU)
    told["a GPU's trace tells no tiles"] = example(hlo("first/Conv2D", 144), relu, hardware=GPU)
    told["widths of no layer"] = example(hlo("gradient_tape/first/Conv2D/Conv2DBackpropInput", 144), hardware=TPU)
    told[...] = example(hlo("attention/BatchMatMulV2", 144), hardware=TPU)
    texts = (f"%fusion.3 = bf16[512,130]{{{layout}}} fusion(%p0, %p1), kind=kOutput" for layout in ("1,0", "0,1"))
    row = took("f", "MatMul", 9.0, category="convolution fusion")
    told["the result's minor dimension"] = [example(replace(row, ran=(text,)), hardware=TPU) for text in texts]


@golden_cases
def test_slow_kernels(told: Cases) -> None:
    told["the least time of aligned kernels is a ceiling"] = slowly(4001, 2.0, cleared_ms=0.5)
    told["a kernel at half of the aligned rate, and above it"] = slowly(4001, 5.0), slowly(4001, 5.1)
    told["trap: small batches and strided gradients are slow in any width"] = slowly(4000, 0.5)
    tensors = (("float32", (4096, 4001)),)
    fused = Operation(name="scale", type="mul (fused)", inputs=tensors, outputs=tensors, compiled=True)
    row = took("scale", fused.type, 4.0, operation=fused)
    of = h100("convnet-bfloat16")
    parts = of.fact(Operations), Hardware(DeviceKind.TPU, "x"), of.fact(Activity), of.fact(Steps)
    told["other devices are not compared"] = lambda: AlignedTimes.measure(*parts)
    told["other kernels of the width load whole vectors too"] = slowly(4001, 2.0, others=(row,))


def test_what_an_aligned_width_saved_on_an_h100_is_within_the_ceiling() -> None:
    for unaligned, aligned, width in (
        ("convnet-bfloat16-130", "convnet-bfloat16", "128 instead of 130"),
        ("mlp-bfloat16-4001", "mlp-bfloat16-4000", "4000 instead of 4001"),
    ):
        result = judged(unaligned, unaligned_dimension)
        assert width in first_action(result.outcome)
        assert result.saving is not None
        saved = 1.0 - TIMED_MS[aligned] / TIMED_MS[unaligned]
        assert saved <= result.saving.share <= saved + 0.08
        assert isinstance(judged(aligned, unaligned_dimension).outcome, Healthy)


# The least time of matmuls with aligned widths, by real traces of an H100.
@each("convnet-bfloat16", "mlp-bfloat16-4000")
def test_no_aligned_kernel_is_faster_than_the_rate_that_counts_as_reached(trace: str) -> None:
    chart = h100(trace)
    least = chart.fact(AlignedTimes).least_ms

    matmuls = [row for row in chart.fact(Operations).matrix if row.precision == "bfloat16"]
    assert all(least[row.name] < row.ms for row in matmuls)
    heavy = [row for row in matmuls if row.kernel and min(row.kernel[-2:]) >= 128]
    assert sum(least[row.name] for row in heavy) > 0.8 * sum(row.ms for row in heavy)


def test_clearing_the_padded_buffers_belongs_to_their_convolution() -> None:
    cleared = h100("convnet-bfloat16-130").fact(AlignedTimes).cleared_ms

    assert sum(cleared.values()) == near(0.05 * TIMED_MS["convnet-bfloat16-130"], rel=0.1)
    assert all("/cudnn-conv" in name for name in cleared)

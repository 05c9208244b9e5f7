"""unaligned-dimension: widths that the hardware pads, where the padding costs time."""

import pytest

from tests.h100 import TIMED_MS, h100, judged
from tests.rules.kit import *
from tfdoctor.facts.run.hardware import AMX_TILE, ONEDNN_TILE, Tile
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.rules.precision import unaligned_dimension
from tfdoctor.rules.precision.unaligned_dimension import AlignedTimes, check


def one_conv(channels: int = 33) -> OperationTime:
    """Build a convolution to so many channels."""
    name = "model/conv2d/convolution"
    tensors = (("float32", (32, 32, 32, 32)), ("float32", (3, 3, 32, channels)))
    return OperationTime(
        name=name,
        type="Conv2D",
        ms=14.5,
        layer="conv2d",
        at=Location("train.py", 9),
        operation=Operation(name=name, type="Conv2D", inputs=tensors),
    )


CPU = Hardware(DeviceKind.CPU, "example", tile=Tile(16, "an example"))


def example(*rows: OperationTime, hardware: Hardware = CPU, aligned: AlignedTimes | None = None) -> Verdict:
    """A convolution has 33 channels where the hardware pads to 16."""
    return check(Operations(rows or (one_conv(),)), hardware, aligned)


sick = example


def healthy() -> Verdict:
    """The convolution has 32 channels."""
    return example(one_conv(32))


GPU = Hardware(DeviceKind.GPU, "x", "Tensor Core", tile=Tile(8, "guide", faster_above=True))
TPU = Hardware(DeviceKind.TPU, "x", "MXU", tile=Tile(128, "guide"))
RELU = OperationTime(name="r", type="ReluGrad", ms=90.0)


def conv(width: int, ms: float = 10.0, **more: Any) -> OperationTime:
    return matmul(ms=ms, weights=(3, 3, 32, width), layer=f"c{width}", **more)


def test_a_tenth_of_padding_is_reported() -> None:
    """44 of 48 is 8 % of padding, 43 of 48 is 10 %."""
    kinds = [type(example(conv(width))) for width in (32, 33, 43, 44, 48, 16)]
    assert kinds == [Healthy, Finding, Finding, Healthy, Healthy, Healthy]


def test_the_multiple_below_makes_the_step_shorter() -> None:
    finding = example(conv(33))
    assert scales(finding) == {"model/c33/Conv2D": near(32 / 48)}
    assert "Choose 32 instead of 33" in first_action(finding)


def test_a_multiple_below_that_takes_too_much_away_is_not_proposed() -> None:
    assert "Choose 32 instead of 24" in first_action(example(conv(24)))
    assert effects(example(conv(24))) == []


def test_whole_tiles_take_faster_kernels_on_tensor_cores() -> None:
    ((_, _, left, bound),) = effects(example(conv(12, dtype="float16"), hardware=GPU))
    assert (left, bound) == (12 / 16, Bound.AT_MOST)


def test_padding_counts_by_the_time_that_it_takes() -> None:
    """Of 33 channels a third is padding, of 24 a quarter; a wider layer saves nothing, and takes more of it."""
    narrower, wider = (
        (example(conv(33, ms), RELU) for ms in (2.0, 1.0)),
        (example(conv(24, ms), RELU) for ms in (9, 7)),
    )
    assert kinds(*narrower) == kinds(*wider) == [Finding, Healthy]


def test_ten_classes_are_not_padding() -> None:
    """Trap: ten classes by a convolution that no layer reads, and a mean over the image."""
    dense = matmul("MatMul", ms=50.0, weights=(512, 10), dtype="float16", layer="head")
    wide = matmul("MatMul", ms=50.0, weights=(512, 512), dtype="float16", layer="body")
    body, head = matmul(ms=50.0, weights=(3, 3, 3, 32), layer="body"), matmul(ms=9.0, weights=(1, 1, 32, 10))
    flattened = matmul("MatMul", ms=1.0, weights=(7 * 7 * 10, 5), layer="dense")
    found = example(dense, wide, hardware=TPU), example(body, head), example(body, head, flattened)
    assert kinds(*found) == [Healthy, Healthy, Finding]


def test_widths_far_below_the_multiple_are_not_called_unknown() -> None:
    verdict = as_not_applicable(example(matmul("MatMul", weights=(512, 10), dtype="bfloat16"), hardware=TPU))
    assert "far below 128" in verdict.reason


def test_the_units_of_the_last_layer_are_the_classes() -> None:
    """Nobody drops two of ten classes."""
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
        assert isinstance(example(body, head, back, hardware=GPU), Healthy)
        assert len(as_finding(example(narrow, reads, back, hardware=GPU)).remedies) == 1


def test_an_operation_of_microseconds_takes_no_less_when_narrower() -> None:
    found = [example(conv(33, ms, calls=calls)) for ms, calls in ((0.005, 1), (0.0049, 1), (0.0099, 2))]
    assert kinds(*found) == [Finding, Healthy, Healthy]


def test_gradients_belong_to_the_layer_whose_width_they_have() -> None:
    """The gradient of a layer's input is as wide as the layer before."""
    tape = "gradient_tape/second/Conv2D/Conv2DBackprop"
    widths = {"first/Conv2D": 144, "second/Conv2D": 288, f"{tape}Filter": 288, f"{tape}Input": 144}
    finding = as_finding(example(*(hlo(name, width) for name, width in widths.items()), hardware=TPU))
    assert "two layers" in finding.summary.lower()
    assert {remedy.action for remedy in finding.remedies} == {
        "Choose 128 instead of 144 in first/Conv2D",
        "Choose 256 instead of 288 in second/Conv2D",
    }
    assert len(finding.effects) == 4


def test_what_a_tpu_reads_and_writes_of_that_width_shrinks_too() -> None:
    """As far as the trace tells the tiles that memory holds it in."""
    for shape, left in (
        ("bf16[512,144]{1,0:T(8,128)(2,1)}", [0.5]),
        ("bf16[512,144]{1,0}", []),
        ("bf16[512,96]{1,0:T(8,128)(2,1)}", []),
        ("bf16[144,512]{1,0:T(8,128)(2,1)}", []),
    ):
        text = f"%fusion.9 = {shape} fusion(%p0), kind=kLoop"
        relu = OperationTime(name="relu", type="Relu", ms=9.0, ran=(text,), category="loop fusion")
        for hardware, wanted in ((TPU, left), (GPU, [])):
            finding = example(hlo("first/Conv2D", 144), relu, hardware=hardware)
            found = finding.effects if isinstance(finding, Finding) else ()
            assert [effect.scales for effect in found if effect.subject == "relu"] == wanted


def test_a_width_that_no_layer_has_is_not_the_users() -> None:
    assert isinstance(example(hlo("gradient_tape/first/Conv2D/Conv2DBackpropInput", 144), hardware=TPU), Healthy)
    assert isinstance(example(hlo("attention/BatchMatMulV2", 144), hardware=TPU), Healthy)


def hlo(name: str, width: int) -> OperationTime:
    """A product on a TPU of which the trace contains the instruction alone."""
    text = f"%fusion = bf16[512,{width}]{{1,0}} fusion(%p0, %p1), kind=kOutput"
    kind = name.rpartition("/")[2]
    return OperationTime(name=name, type=kind, ms=9.0, ran=(text,), category="convolution fusion")


# What each kind of hardware pads


def test_onednn_pads_convolutions_and_not_matmuls() -> None:
    assert "on AMX" in as_not_applicable(example(matmul("MatMul", weights=(512, 33)))).reason


def test_on_amx_matmuls_in_bfloat16_are_padded_too() -> None:
    for dtype, kind in (("bfloat16", Finding), ("float32", NotApplicable)):
        body = matmul("MatMul", weights=(512, 33), dtype=dtype, name="body/MatMul")
        head = matmul("MatMul", ms=1.0, weights=(33, 10), dtype=dtype, name="head/MatMul")
        assert isinstance(example(body, head, hardware=replace(CPU, tile=AMX_TILE)), kind)


def network(*, width: int, tile: Tile = AMX_TILE) -> Verdict:
    """Two layers of the same width, and a last one that makes twelve channels for an image."""
    layers = {"stem": (9.0, 3, width), "body": (9.0, width, width), "tail": (1.0, width, 12)}
    rows = (matmul(ms=ms, weights=(3, 3, have, make), layer=name) for name, (ms, have, make) in layers.items())
    return example(*rows, hardware=replace(CPU, tile=tile))


def test_both_sides_of_a_convolution_between_padded_layers_shrink() -> None:
    finding = as_finding(network(width=130))
    assert [remedy.action for remedy in finding.remedies] == ["Choose 128 instead of 130 in body"]
    ((_, _, left, bound),) = effects(finding)
    assert (left, bound) == (near((128 / 144) ** 2), Bound.EXPECTED)


def test_without_a_measurement_on_the_processor_it_is_a_ceiling() -> None:
    finding = as_finding(network(width=130, tile=ONEDNN_TILE))
    assert finding.effects[0].bound is Bound.AT_MOST
    assert "takes at most" in finding.summary
    assert "some in float32" in first_code(network(width=24, tile=ONEDNN_TILE))


def test_aligned_layers_and_the_channels_of_an_image_are_healthy() -> None:
    """Trap: the last convolution has twelve channels because the image needs them."""
    assert isinstance(network(width=128), Healthy)


def test_tensor_cores_want_multiples_in_16_bit() -> None:
    kinds = [type(example(conv(35, dtype=dtype), hardware=GPU)) for dtype in ("float16", "bfloat16", "float32")]
    assert kinds == [Finding, Finding, NotApplicable]


def test_a_tpus_width_is_its_results_minor_dimension() -> None:
    texts = (f"%fusion.3 = bf16[512,130]{{{layout}}} fusion(%p0, %p1), kind=kOutput" for layout in ("1,0", "0,1"))
    row = OperationTime(name="f", type="MatMul", ms=9.0, category="convolution fusion")
    assert kinds(*(example(replace(row, ran=(text,)), hardware=TPU) for text in texts)) == [Finding, Healthy]


# Where there is no verdict


def test_what_is_not_known_is_said() -> None:
    hardware = Hardware(DeviceKind.GPU, "x", missing="unknown")
    assert as_not_applicable(example(conv(33), hardware=hardware)).reason == "unknown"
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9)
    shapeless = OperationTime(name="c", type="Conv2D", ms=5.0)
    for row, words in ((shapeless, "shapes"), (RELU, "runs no matmul"), (unnamed, "does not name")):
        assert words in as_not_applicable(example(row)).reason


def test_one_remedy_a_layer_the_heaviest_first() -> None:
    rows = [conv(33, 5.0), conv(65, 20.0), conv(33, 4.0, name="model/c33/gradient")]
    rows.append(matmul("MatMul", ms=1.0, weights=(33 * 65, 5), layer="dense"))
    finding = as_finding(example(*rows))
    assert [r.action for r in finding.remedies] == [
        "Choose 64 instead of 65 in c65",
        "Choose 32 instead of 33 in c33",
    ]


FAST = replace(GPU, peak_flop_s=1e15)


def wide(width: int, **more: Any) -> OperationTime:
    return matmul("MatMul", weights=(width, width), dtype="bfloat16", name=f"w{width}", **more)


def slowly(width: int, least_ms: float, *, cleared_ms: float = 0.0, **more: Any) -> Verdict:
    """A matmul of 10 ms between others of its width; aligned kernels need ``least_ms`` at least."""
    rows = (wide(width), matmul("MatMul", weights=(width, 9), dtype="bfloat16", name="head"))
    aligned = AlignedTimes({f"w{width}": least_ms, "head": 10.0, "scale": 1.0}, {f"w{width}": cleared_ms})
    return example(*rows, *more.get("others", ()), hardware=FAST, aligned=aligned)


def test_a_kernel_below_half_of_the_aligned_rate_is_slow() -> None:
    assert [type(slowly(4001, least_ms)) for least_ms in (5.0, 5.1)] == [Finding, Healthy]


def test_an_aligned_width_is_not_to_blame_for_a_slow_kernel() -> None:
    """Trap: small batches and strided gradients are slow in any width."""
    assert isinstance(slowly(4000, 0.5), Healthy)


def test_the_least_time_of_aligned_kernels_is_a_ceiling() -> None:
    finding = as_finding(slowly(4001, 2.0, cleared_ms=0.5))
    kernel, cleared = effects(finding)
    assert (kernel[2:], cleared[:3]) == ((0.2, Bound.AT_MOST), (Stage.TRANSFER, 0.5, 0.0))
    assert "take 10.0 ms per step; those for aligned widths need at least 2.00 ms" in finding.summary
    assert first_code(finding) == "4001  ->  4000    # faster kernels"


def test_other_kernels_of_the_width_load_whole_vectors_too() -> None:
    tensors = (("float32", (4096, 4001)),)
    fused = Operation(name="scale", type="mul (fused)", inputs=tensors, outputs=tensors, compiled=True)
    row = OperationTime(name="scale", type=fused.type, ms=4.0, operation=fused)
    assert scales(slowly(4001, 2.0, others=(row,)))["scale"] == 0.25


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


@pytest.mark.parametrize("trace", ["convnet-bfloat16", "mlp-bfloat16-4000"])
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


def test_other_devices_are_not_compared() -> None:
    chart = h100("convnet-bfloat16")
    parts = chart.fact(Operations), Hardware(DeviceKind.TPU, "x"), chart.fact(Activity)
    with pytest.raises(Unavailable, match="known GPUs"):
        AlignedTimes.measure(*parts, chart.fact(Steps))

"""float32-matmul: matmuls in float32 on a device that is faster in 16-bit precision."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.builders import Machine, chart, device, line, markers, matmul, trace, v100
from tests.h100 import TIMED_MS, judged
from tests.rules.cases.float32_matmul import CPU, example
from tests.rules.verdicts import as_finding, as_healthy, as_not_applicable
from tfdoctor.diagnose import engine
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.step_parts import BatchNorm, BatchNorms
from tfdoctor.facts.run.framework import JAX, PYTORCH, Framework
from tfdoctor.facts.run.hardware import Hardware, SixteenBit
from tfdoctor.facts.run.program import Attributes, Layer, Operation, Program, RunSettings
from tfdoctor.rules import float32_matmul
from tfdoctor.rules.float32_matmul import (
    ALONG_ONE_AXIS,
    BOTH_WAYS_MS,
    FIXED_OF_TYPE,
    LEAST_OF_PEAKS,
    OF_FEW_CHANNELS,
    SLOWER,
    SLOWER_IN_CACHES,
    TO_BFLOAT16_MS,
    WEIGHTS_MS,
    Limits,
)
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable

TO_BF16 = SixteenBit("bfloat16", 0.6, Bound.EXPECTED, "measured")
GPU = Hardware(DeviceKind.GPU, "x", "Tensor Core", TO_BF16)
TPU = Hardware(DeviceKind.TPU, "x", "MXU", TO_BF16, bandwidth_bytes_s=1e12)
RELU = OperationTime(name="gradient_tape/m/relu", type="ReluGrad", ms=5.0)

ANY = Limits(on_cpu=float("-inf"), on_amx=float("-inf"))
"""Reports every gain, so that the tests can see what is counted."""


check = partial(example, limits=ANY)


def find(*rows: OperationTime, **more: Any) -> Finding:
    return as_finding(check(*rows, **more))


def scales(finding: Finding) -> dict[str, float]:
    return {effect.subject: effect.scales for effect in finding.effects}


def slower(finding: Finding) -> dict[str, float]:
    return {subject: factor for subject, factor in scales(finding).items() if factor > 1}


def measured(finding: Finding, words: str) -> list[float]:
    measures = [item for item in finding.evidence if isinstance(item, Measure)]
    return [measure.value.value for measure in measures if words in measure.label]


KERNEL = 3 * 3 * 32 * 32 / 1e6
"""Million weights of the convolution that is made up."""


def test_float32_matmuls_are_priced_one_by_one() -> None:
    finding = find(matmul(ms=10, layer="a"), matmul("MatMul", ms=4, layer="b"), RELU)
    assert scales(finding) == {
        "model/a/Conv2D": pytest.approx((0.003 + 0.2 + WEIGHTS_MS * KERNEL + 0.6 * 9.8) / 10),
        "model/b/MatMul": pytest.approx((0.003 + 0.1 + BOTH_WAYS_MS * KERNEL + 0.6 * 3.9) / 4),
    }
    assert [effect.of.value for effect in finding.effects if effect.of] == [10.0, 4.0]
    assert "mixed_bfloat16" in finding.remedies[0].code
    assert "float32" in finding.remedies[0].code


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_matmuls_in_16_bit_are_not_advised_16_bit(dtype: str) -> None:
    assert isinstance(check(matmul(dtype=dtype), RELU), Healthy)


def test_of_a_mixed_model_only_float32_counts() -> None:
    finding = find(matmul(dtype="bfloat16", layer="a"), matmul(ms=3.0, layer="head"))
    assert [*scales(finding)] == ["model/head/Conv2D"]


@pytest.mark.parametrize(
    ("dtypes", "said"),
    [
        (["float64"], ["in float64 ("]),
        (["float16"], ["in 16-bit precision ("]),
        (["bfloat16", "float64"], ["in 16-bit precision (", "in float64"]),
    ],
)
def test_float64_is_not_called_16_bit(dtypes: list[str], said: list[str]) -> None:
    rows = [matmul(name=f"m/{dtype}", dtype=dtype) for dtype in dtypes]
    verdict = as_healthy(check(*rows, RELU))
    assert all(text in verdict.summary for text in said)
    assert ("16-bit" in verdict.summary) is (dtypes != ["float64"])


@pytest.mark.parametrize(("policy", "kind"), [("mixed_bfloat16", Healthy), ("float32", Finding)])
def test_the_layer_that_a_mixed_policy_keeps_in_float32_is_not_reported(policy: str, kind: type) -> None:
    rows = (matmul(dtype="bfloat16", layer="a"), matmul(ms=3.0, layer="head"))
    head = Layer(name="head", kind="Dense", compute_dtype="float32")
    program = Program(layers=(head,), settings=RunSettings(policy=policy))
    assert isinstance(check(*rows, program=program), kind)


def test_the_policy_belongs_before_the_first_layer() -> None:
    layers = (Layer(name="input", kind="InputLayer"), Layer(name="a", kind="Conv2D", at=Location("t.py", 4)))
    finding = find(matmul(), program=Program(layers=layers))
    assert finding.remedies[0].at == Location("t.py", 4)


# Where there is no verdict


def test_hardware_without_a_unit_is_not_applicable() -> None:
    verdict = check(matmul(), hardware=Hardware(DeviceKind.CPU, "x", missing="x has none"))
    assert verdict == NotApplicable(reason="x has none")


def test_unknown_precision_is_not_applicable() -> None:
    assert isinstance(check(matmul(dtype="", ran="m/c:Conv2D")), NotApplicable)


def test_unnamed_work_is_not_applicable_and_no_work_is_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9)
    assert isinstance(check(unnamed), NotApplicable)
    assert isinstance(check(RELU), Healthy)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_matmuls_of_unknown_precision_are_neither_reduced_nor_without_gain(dtype: str) -> None:
    """Trap: an LSTM's matmuls run in the body of a loop, which belongs to no layer."""
    looped = matmul("MatMul", ms=5.0, dtype="", name="MatMul", calls=440.0)
    verdict = as_not_applicable(check(looped, matmul("MatMul", ms=0.04, layer="dense", dtype=dtype), RELU))
    assert "5.00 ms of 5.04 ms" in verdict.reason


def test_the_evidence_shows_what_was_not_counted() -> None:
    looped = matmul("MatMul", ms=5.0, dtype="", name="MatMul", calls=440.0)
    finding = find(looped, matmul(ms=20.0), RELU)
    assert measured(finding, "not counted") == [5.0]
    assert [*scales(finding)] == ["model/layer/Conv2D"]


# What gains


@pytest.mark.parametrize(("ms", "calls", "kind"), [(0.101, 1, Finding), (0.1, 1, Healthy), (0.9, 9, Healthy)])
@pytest.mark.parametrize("name", ["MatMul", "Conv2DBackpropInput", *FIXED_OF_TYPE])
def test_a_cpus_short_matmuls_gain_nothing(name: str, ms: float, calls: float, kind: type) -> None:
    """Trap: a convolution of 128 small images, and its gradients, take 0.2 to 0.4 ms in both types."""
    scaled = round(ms * 10 * FIXED_OF_TYPE.get(name, 0.1), 6)
    assert isinstance(check(matmul(name, ms=scaled, calls=calls)), kind)


@pytest.mark.parametrize(
    ("weights", "left"),
    [
        ((3, 3, 16, 32), 0.33),
        ((3, 3, 15, 32), OF_FEW_CHANNELS),
        ((1, 1, 15, 32), OF_FEW_CHANNELS),
        ((1, 5, 64, 64), ALONG_ONE_AXIS),
        ((7, 1, 64, 64), ALONG_ONE_AXIS),
    ],
)
def test_a_cpu_gains_less_along_one_axis_and_from_few_channels(weights: tuple[int, ...], left: float) -> None:
    amx = Hardware(DeviceKind.CPU, "x", "AMX", SixteenBit("bfloat16", 0.33, Bound.EXPECTED, ""))
    tensors = (("float32", (32, 64, 64, weights[2])), ("float32", weights))
    made = Operation(name="m/c", type="Conv2D", inputs=tensors)
    row = replace(matmul("Conv2D", ms=10.2), operation=made)
    (factor,) = scales(find(row, hardware=amx)).values()

    of_weights = WEIGHTS_MS * math.prod(weights) / 1e6
    assert factor * 10.2 == pytest.approx(0.003 + 0.2 + of_weights + left * 10.0)


def test_a_cpus_dense_layers_gain_what_was_measured_of_them() -> None:
    unit = replace(TO_BF16, matmul_scales=0.47)
    epyc = Hardware(DeviceKind.CPU, "x", "AVX512-BF16", unit)
    rows = (matmul("MatMul", ms=4, layer="b"), matmul("BatchMatMulV2", ms=4, layer="c"))
    assert scales(find(*rows, RELU, hardware=epyc)) == {
        "model/b/MatMul": pytest.approx((0.003 + 0.1 + BOTH_WAYS_MS * KERNEL + 0.47 * 3.9) / 4),
        "model/c/BatchMatMulV2": pytest.approx((0.003 + 0.1 + 0.6 * 3.9) / 4),
    }


def test_a_cpus_convolution_of_many_weights_on_few_pixels_gains_nothing() -> None:
    """Measured: 3x3, 512 -> 512 on 2x2 pixels takes 4.25 ms in float32 and 4.19 in bfloat16, gradients included."""
    tensors = (("float32", (8, 2, 2, 512)), ("float32", (3, 3, 512, 512)))
    made = Operation(name="m/c", type="Conv2D", inputs=tensors)
    row = replace(matmul("Conv2D", ms=4.25 / 3), operation=made)
    (factor,) = scales(find(row, RELU)).values()
    assert 0.95 < factor < 1.25


@pytest.mark.parametrize(
    ("unit", "others", "kind"),
    [
        ("AMX", 10.0, Finding),
        ("AMX", 20.0, Healthy),
        ("AVX512-BF16", 10.0, Finding),
        ("AVX512-BF16", 20.0, Finding),
        ("AVX512-BF16", 50.0, Healthy),
    ],
)
def test_a_cpu_must_gain_enough_and_more_with_amx(unit: str, others: float, kind: type) -> None:
    """Trap: small networks, which the same change made slower. 6.6 of the products' 10 ms are saved."""
    hardware = Hardware(DeviceKind.CPU, "x", unit, SixteenBit("bfloat16", 0.33, Bound.EXPECTED, ""))
    rest = replace(RELU, ms=others)
    verdict = check(matmul(ms=10.0), rest, hardware=hardware, limits=Limits())
    assert isinstance(verdict, kind)


def test_a_cpus_matmuls_outside_of_onednn_gain_nothing() -> None:
    assert isinstance(check(matmul(ran="m/c:Conv2D")), Healthy)


def test_a_cpus_einsum_transposes_its_operands_first() -> None:
    (factor,) = scales(find(matmul("Einsum", ms=1.0))).values()
    assert factor == pytest.approx(0.003 + 0.25 + 0.6 * 0.75)


@pytest.mark.parametrize(("nbytes", "kind"), [(6.1e9, Finding), (5.9e9, Healthy), (None, Healthy)])
def test_on_a_tpu_only_matmuls_bound_by_memory_gain(nbytes: float | None, kind: type) -> None:
    assert isinstance(check(matmul(ms=10.0, nbytes=nbytes), hardware=TPU), kind)


@pytest.mark.parametrize(("rest", "kind"), [(15.5, Finding), (17.0, Healthy)])
@pytest.mark.parametrize("hardware", [CPU, GPU])
def test_a_cpu_must_gain_more_than_what_is_not_counted(rest: float, kind: type, hardware: Hardware) -> None:
    """Trap: casts of activations, which are not counted, take a gain of some per cent away."""
    other = OperationTime(name="gather", type="GatherV2", ms=rest)
    verdict = check(matmul(ms=10), other, hardware=hardware, limits=Limits())
    assert isinstance(verdict, kind if hardware is CPU else Finding)
    if isinstance(verdict, Healthy):
        assert "casts" in verdict.summary


# What costs


def test_on_a_cpu_casts_of_weights_cost_matmuls_that_gain_nothing() -> None:
    short = matmul(ms=0.09, calls=1, layer="short")
    assert slower(find(matmul(ms=10), short)) == {short.name: pytest.approx(1 + 0.003 / 0.09)}


NORM = BatchNorm(Layer(name="bn", kind="BatchNormalization"), ms=8.0, operations=9, nbytes=10**8)
NORMS = BatchNorms((NORM,), fused=0, seen=1, rate=3e11)
"""Six passes over 100 MB at 300 GB/s: casts of 2 ms for a layer of 8 ms."""


def test_casts_around_unfused_batch_norm_cost_a_cpu_time() -> None:
    assert slower(find(matmul(ms=10), norms=NORMS)) == {"bn (batch norm)": pytest.approx(1.25)}


def test_a_gpu_fuses_the_casts_so_they_cost_nothing() -> None:
    assert [*scales(find(matmul(ms=10), norms=NORMS, hardware=GPU))] == ["model/layer/Conv2D"]


@pytest.mark.parametrize(("stride", "costs"), [(2, True), (1, False), (None, True)])
def test_gradients_of_strided_depthwise_convolutions_cost_a_cpu_time(stride: int | None, *, costs: bool) -> None:
    attrs = Attributes(strides=(1, stride, stride, 1)) if stride else Attributes()
    kind = "DepthwiseConv2dNativeBackpropInput"
    tensors = (("int32", (4,)), ("float32", (3, 3, 64, 1)), ("float32", (16, 28, 28, 64)))
    known = Operation(name="g", type=kind, inputs=tensors, attrs=attrs)
    gradient = OperationTime(name="g", type=kind, ms=2.0, operation=known)
    assert slower(find(matmul(ms=10), gradient)) == ({"g": 12.0} if costs else {})
    assert slower(find(matmul(ms=10), gradient, hardware=GPU)) == {}


@pytest.mark.parametrize(
    ("name", "dtype", "costs"),
    [("m/act/s", "float32", True), ("m/act/s", "bfloat16", False), ("adam/s", "float32", False)],
)
def test_activations_that_a_cpu_widens_value_by_value_cost_time(name: str, dtype: str, *, costs: bool) -> None:
    """Trap: EfficientNet's sigmoids made bfloat16 a third slower than float32."""
    known = Operation(name=name, type="Sigmoid", inputs=((dtype, (16, 28, 28, 64)),))
    sigmoid = OperationTime(name=name, type="Sigmoid", ms=2.0, operation=known)
    finding = find(matmul(ms=10), sigmoid)
    assert slower(finding) == ({name: SLOWER["Sigmoid"]} if costs else {})
    assert bool(measured(finding, "slower in 16-bit precision")) is costs


@pytest.mark.parametrize(
    ("kind", "ms", "calls", "scales"),
    [
        ("ReluGrad", 0.9, 1.0, SLOWER_IN_CACHES["ReluGrad"]),
        ("ReluGrad", 1.8, 2.0, SLOWER_IN_CACHES["ReluGrad"]),
        ("ReluGrad", 1.1, 1.0, None),
        ("BiasAddGrad", 9.0, 1.0, SLOWER["BiasAddGrad"]),
        ("MaxPoolGrad", 0.9, 1.0, None),
    ],
)
def test_gradients_of_activations_cost_time_while_they_fit_into_caches(
    kind: str, ms: float, calls: float, scales: float | None
) -> None:
    """Trap: small convolutions gained 0.15 ms in bfloat16, and their other operations lost twice that."""
    known = Operation(name="g", type=kind, inputs=(("float32", (None, 16, 16, 32)),))
    gradient = OperationTime(name="g", type=kind, ms=ms, operation=known, calls=calls)
    expected = {} if scales is None else {"g": scales}
    assert slower(find(matmul(ms=20), gradient)) == expected


DENSE = ("dense/MatMul", "gradient_tape/dense/MatMul/MatMul", "gradient_tape/dense/MatMul/MatMul_1")
LAYER = Program(layers=(Layer(name="layer", kind="Conv2D"), Layer(name="pool", kind="GlobalAveragePooling2D")))


@pytest.mark.parametrize(
    ("kinds", "casts"),
    [
        (("Conv2D", "Conv2DBackpropFilter"), True),
        (("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"), False),
        (("Conv2D",), False),
    ],
)
def test_the_layer_that_reads_the_models_input_pays_for_its_cast(kinds: tuple[str, ...], *, casts: bool) -> None:
    """Trap: a layer that runs no gradient at all is not known to read the model's input."""
    rows = [matmul(kind, layer="layer") for kind in kinds]
    alone, known = scales(find(*rows)), scales(find(*rows, program=LAYER))
    added = TO_BFLOAT16_MS * math.prod((32, 32, 32, 32)) / 1e6 if casts else 0.0
    assert known == {
        name: pytest.approx(factor + added / 10.0 * name.endswith("/Conv2D")) for name, factor in alone.items()
    }


@pytest.mark.parametrize(("count", "casts"), [(2, True), (3, False)])
def test_a_dense_layer_reads_the_models_input_where_its_gradient_is_not_computed(
    count: int, *, casts: bool
) -> None:
    rows = [matmul("MatMul", layer="dense", name=name) for name in DENSE[:count]]
    alone, known = scales(find(*rows)), scales(find(*rows, program=LAYER))
    assert [name for name in known if known[name] > alone[name]] == list(DENSE[:casts])


def test_the_casts_of_a_dense_layers_weights_are_counted_once() -> None:
    rows = [matmul("MatMul", layer="dense", name=name) for name in DENSE]
    forward, *backward = scales(find(*rows)).values()
    least = (0.003 + 0.1 + 0.6 * 9.9) / 10
    assert backward == [pytest.approx(least)] * 2
    assert forward == pytest.approx(least + BOTH_WAYS_MS * KERNEL / 10)


def test_a_first_layer_that_gains_nothing_still_pays_for_the_cast() -> None:
    """Trap: on spectrograms the cast of the input took a third of what the convolutions gained."""
    shape = (32, 59, 129, 1)
    made = Operation(name="f", type="Conv2D", inputs=(("float32", shape), ("float32", (5, 5, 1, 8))))
    first = replace(matmul(layer="layer", name="f"), operation=made)
    rows = (matmul(layer="b"), first, matmul("Conv2DBackpropFilter", layer="layer"))
    costs = slower(find(*rows, program=LAYER))
    assert costs["f"] == pytest.approx(1 + (0.003 + TO_BFLOAT16_MS * math.prod(shape) / 1e6) / 10)


@pytest.mark.parametrize(
    ("layer", "shape", "costs"),
    [("pool", (32, 15, 15, 32), True), ("bn", (32, 15, 15, 32), False), ("pool", (32, None, 15, 32), False)],
)
def test_global_pooling_casts_its_input_and_its_gradient(
    layer: str, shape: tuple[int | None, ...], *, costs: bool
) -> None:
    made = Operation(name="mean", type="Mean", inputs=(("float32", shape), ("int32", (2,))))
    mean = OperationTime(name="mean", type="Mean", ms=0.05, layer=layer, operation=made)
    added = BOTH_WAYS_MS * 32 * 15 * 15 * 32 / 1e6
    expected = {"mean": pytest.approx(1 + added / 0.05)} if costs else {}
    assert slower(find(matmul(ms=10), mean, program=LAYER)) == expected


# Other operations


FLOAT_KERNEL = "void Eigen::internal::EigenMetaKernel<float>"


@pytest.mark.parametrize(("kind", "gaining"), [(DeviceKind.GPU, ["gradient_tape/relu"]), (DeviceKind.CPU, [])])
def test_an_accelerators_other_operations_move_half_the_bytes(kind: DeviceKind, gaining: list[str]) -> None:
    """Except the optimizer's, whose variables stay float32, and those in 16-bit precision already."""
    half_kernel = FLOAT_KERNEL.replace("float", "half")
    relu = OperationTime(name="gradient_tape/relu", type="ReluGrad", ms=4.0, ran=(FLOAT_KERNEL,))
    half = OperationTime(name="half", type="Relu", ms=4.0, ran=(half_kernel,))
    adam = OperationTime(name="adam/Mul", type="Mul", ms=4.0, ran=(FLOAT_KERNEL,))
    hardware = Hardware(kind, "x", "unit", TO_BF16, bandwidth_bytes_s=1e12)
    finding = find(matmul(ms=10, nbytes=9e9), relu, half, adam, hardware=hardware)
    others = finding.effects[1:]
    assert [effect.subject for effect in others] == gaining
    assert all((effect.scales, effect.bound) == (0.5, Bound.AT_MOST) for effect in others)


def test_in_a_mixed_model_other_float32_operations_stay() -> None:
    """Trap: Keras computes normalization in float32 under a mixed policy."""
    norm = OperationTime(name="bn/mul", type="Mul", ms=4.0, ran=(FLOAT_KERNEL,), layer="bn")
    rows = (matmul(ms=3.0, layer="raw"), matmul(dtype="float16", layer="a"), norm)
    assert [*scales(find(*rows, hardware=GPU))] == ["model/raw/Conv2D"]


# From traces


def examine(gpu: Machine) -> Result:
    facts = chart(trace([markers(6, 10)], gpus=[gpu]))
    (result,) = engine.examine(facts, [Rule.from_module(float32_matmul)])
    return result


def kernels(name: str, ms: float = 8) -> tuple[tuple[str, float, float, dict[str, str]], ...]:
    conv = {"tf_op": "model/c/Conv2D:Conv2D"}
    return tuple((name, 10 * n + 1, 10 * n + 1 + ms, conv) for n in range(6))


def test_a_v100_in_float32_is_advised_float16() -> None:
    result = examine(v100(line("Stream #1", *kernels("volta_scudnn_128x64_relu"))))
    assert isinstance(result.outcome, Finding)
    assert "mixed_float16" in result.outcome.remedies[0].code
    assert result.saving
    # 8 ms become 1, but the host that leaves the device idle for 2 is taken to launch for 2 more
    assert result.saving.ms_per_step == pytest.approx(8 - 2)
    assert result.saving.bound is Bound.AT_MOST


def test_a_v100_in_float16_is_healthy() -> None:
    result = examine(v100(line("Stream #1", *kernels("volta_fp16_s884cudnn_fp16_128x128"))))
    assert isinstance(result.outcome, Healthy)


def test_a_p4_is_not_applicable() -> None:
    p4 = device(
        line("Stream #1", *kernels("maxwell_scudnn_128x64_relu")),
        gpu_device_name="Tesla P4",
        compute_cap_major=6,
        compute_cap_minor=1,
    )
    assert isinstance(examine(p4).outcome, NotApplicable)


def test_a_gpu_whose_kernels_were_not_recorded_is_not_applicable() -> None:
    assert isinstance(examine(v100()).outcome, NotApplicable)


def test_a_ten_class_head_is_not_reported() -> None:
    result = examine(v100(line("Stream #1", *kernels("volta_sgemm_32x32", ms=0.03))))
    assert isinstance(result.outcome, Healthy)
    assert "less than 3 %" in result.outcome.summary


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
    stream = line("Stream #1", *kernels(kernel))
    finding = as_finding(examine(device(stream, compute_cap_major=8, compute_cap_minor=0)).outcome)
    least = factor if avoids else factor * LEAST_OF_PEAKS  # its FLOPs are unknown
    assert [effect.scales for effect in finding.effects] == [least]
    assert measured(finding, "time relative to") == [least, factor]
    assert bool(measured(finding, "not even as TF32")) is avoids


def test_what_bfloat16_saved_on_an_h100_is_within_the_ceiling() -> None:
    result = judged("convnet-float32", float32_matmul)
    assert result.saving is not None

    saved = 1.0 - TIMED_MS["convnet-bfloat16"] / TIMED_MS["convnet-float32"]
    assert saved <= result.saving.share <= saved + 0.08
    assert isinstance(judged("convnet-bfloat16", float32_matmul).outcome, Healthy)


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

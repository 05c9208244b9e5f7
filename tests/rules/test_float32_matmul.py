"""float32-matmul: products in float32 on a device that is faster in 16 bit."""

import pytest

from tests.builders import Machine, chart, device, line, markers, product, trace, v100
from tfdoctor.diagnose import engine
from tfdoctor.diagnosis import Result
from tfdoctor.facts.operations.batch_norm import BatchNorm, BatchNorms
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.operations.reduced_precision import SLOWER, ReducedPrecision
from tfdoctor.facts.run.hardware import Hardware, Narrowing
from tfdoctor.facts.run.program import Attributes, Layer, Operation, Program, RunSettings
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Rule
from tfdoctor.rules import float32_matmul
from tfdoctor.rules.float32_matmul import Limits
from tfdoctor.verdict import (
    Bound,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Stage,
    Verdict,
)

TO_BF16 = Narrowing("bfloat16", 0.6, Bound.EXPECTED, "measured")
CPU = Hardware(DeviceKind.CPU, "x", "AVX512-BF16", TO_BF16)
TPU = Hardware(DeviceKind.TPU, "x", "MXU", TO_BF16, bandwidth_bytes_s=1e12)
RELU = OperationTime(name="gradient_tape/m/relu", type="ReluGrad", ms=5.0)

ANY = Limits(on_cpu=float("-inf"))
"""Whatever is gained, so that what is counted can be seen."""


def check(
    *rows: OperationTime,
    hardware: Hardware = CPU,
    program: Program | None = None,
    norms: BatchNorms | None = None,
    limits: Limits = ANY,
) -> Verdict:
    operations = Operations(rows)
    beside = ReducedPrecision.measure(operations, hardware, norms)
    return float32_matmul.check(operations, hardware, program, beside, limits)


def test_float32_products_are_priced_one_by_one() -> None:
    finding = check(product(ms=10, layer="a"), product("MatMul", ms=4, layer="b"), RELU)
    assert isinstance(finding, Finding)
    assert [(e.stage, e.scales, e.subject, e.of and e.of.value) for e in finding.effects] == [
        (Stage.DEVICE, pytest.approx(0.6043), "model/a/Conv2D", 10.0),  # 0.003 + 0.1 + 0.6 * 9.9
        (Stage.DEVICE, pytest.approx(0.61075), "model/b/MatMul", 4.0),  # 0.003 + 0.1 + 0.6 * 3.9
    ]
    assert "mixed_bfloat16" in finding.remedies[0].code
    assert "float32" in finding.remedies[0].code


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_in_16_bit_are_not_advised_16_bit(dtype: str) -> None:
    assert isinstance(check(product(dtype=dtype), RELU), Healthy)


def test_of_a_mixed_model_only_what_is_left_in_float32_counts() -> None:
    finding = check(product(dtype="bfloat16", layer="a"), product(ms=3.0, layer="head"))
    assert isinstance(finding, Finding)
    assert [effect.subject for effect in finding.effects] == ["model/head/Conv2D"]


def test_the_layer_that_a_mixed_policy_leaves_in_float32_is_not_reported() -> None:
    rows = (product(dtype="bfloat16", layer="a"), product(ms=3.0, layer="head"))
    head = Layer(name="head", kind="Dense", compute_dtype="float32")

    def of(policy: str) -> Verdict:
        return check(*rows, program=Program(layers=(head,), settings=RunSettings(policy=policy)))

    assert isinstance(of("mixed_bfloat16"), Healthy)
    assert isinstance(of("float32"), Finding)


def test_the_policy_belongs_above_the_first_layer() -> None:
    layers = (
        Layer(name="input", kind="InputLayer"),
        Layer(name="a", kind="Conv2D", at=Location("t.py", 4)),
    )
    finding = check(product(), program=Program(layers=layers))
    assert isinstance(finding, Finding)
    assert finding.remedies[0].at == Location("t.py", 4)


# Where nothing can be verdict


def test_hardware_without_a_unit_is_not_applicable() -> None:
    verdict = check(product(), hardware=Hardware(DeviceKind.CPU, "x", missing="x has none"))
    assert verdict == NotApplicable(reason="x has none")


def test_unknown_precision_is_not_applicable() -> None:
    verdict = check(product(dtype="", ran="m/c:Conv2D"))
    assert isinstance(verdict, NotApplicable)


def test_unnamed_work_is_not_applicable_and_no_work_is_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9)
    assert isinstance(check(unnamed), NotApplicable)
    assert isinstance(check(RELU), Healthy)


# What would gain


@pytest.mark.parametrize(
    ("ms", "calls", "kind"), [(0.101, 1, Finding), (0.1, 1, Healthy), (0.9, 9, Healthy)]
)
def test_a_cpus_short_products_gain_nothing(ms: float, calls: float, kind: type) -> None:
    assert isinstance(check(product(ms=ms, calls=calls)), kind)


def test_casts_beside_products_that_gain_nothing_are_counted_against_it() -> None:
    short = product(ms=0.09, calls=1, layer="short")
    finding = check(product(ms=10), short)
    assert isinstance(finding, Finding)
    assert [e.scales for e in finding.effects if e.subject == short.name] == [
        pytest.approx(1 + 0.003 / 0.09)
    ]


def test_a_cpus_products_outside_of_onednn_gain_nothing() -> None:
    assert isinstance(check(product(ran="m/c:Conv2D")), Healthy)


@pytest.mark.parametrize(("nbytes", "kind"), [(6.1e9, Finding), (5.9e9, Healthy), (None, Healthy)])
def test_on_a_tpu_only_products_bound_by_memory_gain(nbytes: float | None, kind: type) -> None:
    row = product(ms=10.0, nbytes=nbytes)
    assert isinstance(check(row, hardware=TPU), kind)


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
    assert result.saving.per_step.value == pytest.approx(8 - 2)
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
    assert "0.5 %" in result.outcome.summary


NORM = BatchNorm(Layer(name="bn", kind="BatchNormalization"), ms=8.0, operations=9, nbytes=10**8)
NORMS = BatchNorms((NORM,), fused=0, seen=1, rate=3e11)
"""Six passes over 100 MB at 300 GB/s: casts of 2 ms beside a layer of 8 ms."""


def test_casts_around_unfused_batch_norm_are_counted_against_it_on_a_cpu() -> None:
    finding = check(product(ms=10), norms=NORMS)
    assert isinstance(finding, Finding)
    cost = finding.effects[-1]
    assert (cost.subject, cost.scales) == ("bn (batch norm)", pytest.approx(1.25))


@pytest.mark.parametrize(("stride", "costs"), [(2, True), (1, False), (None, True)])
def test_gradients_of_strided_depthwise_convolutions_are_counted_against_it(
    stride: int | None, *, costs: bool
) -> None:
    attrs = Attributes(strides=(1, stride, stride, 1)) if stride else Attributes()
    kind = "DepthwiseConv2dNativeBackpropInput"
    tensors = (("int32", (4,)), ("float32", (3, 3, 64, 1)), ("float32", (16, 28, 28, 64)))
    known = Operation(name="g", type=kind, inputs=tensors, attrs=attrs)
    gradient = OperationTime(name="g", type=kind, ms=2.0, operation=known)
    finding = check(product(ms=10), gradient)
    assert isinstance(finding, Finding)
    assert [(e.subject, e.scales) for e in finding.effects if e.scales > 1] == [("g", 12.0)] * costs
    on_gpu = check(product(ms=10), gradient, hardware=Hardware(DeviceKind.GPU, "x", "TC", TO_BF16))
    assert isinstance(on_gpu, Finding)
    assert all(effect.scales < 1 for effect in on_gpu.effects)


@pytest.mark.parametrize(
    ("name", "dtype", "costs"),
    [("m/act/s", "float32", True), ("m/act/s", "bfloat16", False), ("adam/s", "float32", False)],
)
def test_activations_that_a_cpu_widens_value_by_value_are_counted_against_it(
    name: str, dtype: str, *, costs: bool
) -> None:
    """Trap: EfficientNet's sigmoids made bfloat16 a third slower than float32."""
    known = Operation(name=name, type="Sigmoid", inputs=((dtype, (16, 28, 28, 64)),))
    sigmoid = OperationTime(name=name, type="Sigmoid", ms=2.0, operation=known)
    finding = check(product(ms=10), sigmoid)
    assert isinstance(finding, Finding)
    worse = [(effect.subject, effect.scales) for effect in finding.effects if effect.scales > 1]
    assert worse == [(name, SLOWER["Sigmoid"])] * costs
    labels = [item.label for item in finding.evidence if isinstance(item, Measure)]
    assert any("slower in 16 bit" in label for label in labels) is costs


@pytest.mark.parametrize(("rest", "kind"), [(16.0, Finding), (17.0, Healthy)])
@pytest.mark.parametrize("hardware", [CPU, Hardware(DeviceKind.GPU, "x", "TC", TO_BF16)])
def test_a_cpu_must_gain_more_than_what_is_not_counted(
    rest: float, kind: type, hardware: Hardware
) -> None:
    """Trap: of a gain of some per cent the casts of the activations, which are not counted, leave nothing."""
    other = OperationTime(name="gather", type="GatherV2", ms=rest)
    verdict = check(product(ms=10), other, hardware=hardware, limits=float32_matmul.LIMITS)
    assert isinstance(verdict, kind if hardware is CPU else Finding)
    assert isinstance(verdict, Finding) or "casts" in verdict.summary


def test_a_cpus_einsum_turns_its_operands_first() -> None:
    finding = check(product("Einsum", ms=1.0))
    assert isinstance(finding, Finding)
    assert finding.effects[0].scales == pytest.approx(0.003 + 0.25 + 0.6 * 0.75)


def test_a_gpu_fuses_the_casts_so_they_cost_nothing() -> None:
    finding = check(
        product(ms=10), norms=NORMS, hardware=Hardware(DeviceKind.GPU, "x", "TC", TO_BF16)
    )
    assert isinstance(finding, Finding)
    assert [effect.subject for effect in finding.effects] == ["model/layer/Conv2D"]


@pytest.mark.parametrize(("kind", "gaining"), [("GPU", ["gradient_tape/relu"]), ("CPU", [])])
def test_an_accelerators_other_operations_move_half_the_bytes(
    kind: str, gaining: list[str]
) -> None:
    """But for the optimizer's, whose variables stay float32, and for what is in 16 bit already."""
    kernel = "void Eigen::internal::EigenMetaKernel<float>"
    relu = OperationTime(name="gradient_tape/relu", type="ReluGrad", ms=4.0, ran=(kernel,))
    half = OperationTime(name="half", type="Relu", ms=4.0, ran=(kernel.replace("float", "half"),))
    adam = OperationTime(name="adam/Mul", type="Mul", ms=4.0, ran=(kernel,))
    of = Hardware(kind, "x", "unit", TO_BF16, bandwidth_bytes_s=1e12)
    finding = check(product(ms=10, nbytes=9e9), relu, half, adam, hardware=of)
    assert isinstance(finding, Finding)
    others = finding.effects[1:]
    assert [effect.subject for effect in others] == gaining
    assert all((e.scales, e.bound) == (0.5, Bound.AT_MOST) for e in others)


def test_what_is_left_in_float32_beside_16_bit_stays_so() -> None:
    """Trap: Keras computes normalization in float32 under a mixed policy."""
    kernel = "void Eigen::internal::EigenMetaKernel<float>"
    norm = OperationTime(name="bn/mul", type="Mul", ms=4.0, ran=(kernel,), layer="bn")
    rows = (product(ms=3.0, layer="raw"), product(dtype="float16", layer="a"), norm)
    finding = check(*rows, hardware=Hardware(DeviceKind.GPU, "x", "TC", TO_BF16))
    assert isinstance(finding, Finding)
    assert [effect.subject for effect in finding.effects] == ["model/raw/Conv2D"]


def test_float32_that_avoids_tensor_cores_on_an_a100_gains_more_than_tf32() -> None:
    """128 against 2048 FLOP per multiprocessor and clock; as TF32 it would be 1024."""
    scales = []
    for name in ("ampere_sgemm_128x64_nn", "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4"):
        a100 = device(
            line("Stream #1", *kernels(name)),
            compute_cap_major=8,
            compute_cap_minor=0,
        )
        finding = examine(a100).outcome
        assert isinstance(finding, Finding)
        scales += [effect.scales for effect in finding.effects]
        told = [m for m in finding.evidence if "not even as TF32" in getattr(m, "label", "")]
        assert bool(told) == (name == "ampere_sgemm_128x64_nn")
        shown = [
            m.value.value for m in finding.evidence if "time relative to" in getattr(m, "label", "")
        ]
        assert shown == [scales[-1]]
    assert scales == [1 / 16, 1 / 2]


def test_products_of_unknown_precision_are_neither_narrow_nor_without_gain() -> None:
    """Trap: an LSTM's products run in the body of a loop, which belongs to no layer."""
    looped = product("MatMul", ms=5.0, dtype="", name="MatMul", calls=440.0)
    head = product("MatMul", ms=0.04, layer="dense")
    verdict = check(looped, head, RELU)
    assert isinstance(verdict, NotApplicable)
    assert "5.00 ms of 5.04 ms" in verdict.reason
    narrow = check(looped, product("MatMul", ms=0.04, dtype="bfloat16"), RELU)
    assert isinstance(narrow, NotApplicable)


def test_a_finding_tells_what_it_did_not_count() -> None:
    looped = product("MatMul", ms=5.0, dtype="", name="MatMul", calls=440.0)
    finding = check(looped, product(ms=20.0), RELU)
    assert isinstance(finding, Finding)
    assert [
        m.value.value for m in finding.evidence if getattr(m, "label", "").endswith("not counted")
    ] == [5.0]
    assert {effect.subject for effect in finding.effects} == {"model/layer/Conv2D"}

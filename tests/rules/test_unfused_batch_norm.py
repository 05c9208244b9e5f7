"""unfused-batch-norm: layers of that class, by what they ran."""

import pytest

from tests.rules.kit import *
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.run.program import LayerConfig
from tfdoctor.rules import unfused_batch_norm

SHAPE = (32, 64, 64, 48)
SIZE = 32 * 64 * 64 * 48 * 4
CPU, GPU = Hardware(DeviceKind.CPU, "x"), Hardware(DeviceKind.GPU, "x")


def layer(name: str = "bn", kind: str = "BatchNormalization") -> Layer:
    return Layer(name=name, kind=kind, at=Location("t.py", 5))


def ran(kind: str, ms: float = 10.0, within: str = "bn") -> OperationTime:
    tensor = ("float32", SHAPE)
    graph = Operation(name=f"m/{within}/{kind}", type=kind, inputs=(tensor, tensor))
    return OperationTime(name=graph.name, type=kind, ms=ms, layer=within, operation=graph)


STREAM = OperationTime(name="m/add", type="AddV2", ms=3.0, nbytes=3.0 * SIZE)
"""An addition that streams at SIZE bytes a millisecond."""


def check(*rows: OperationTime, layers: Any = None, hardware: Hardware = CPU) -> Verdict:
    program = Program(layers=tuple(layers or [layer()]))
    chart = Chart([program, Operations(rows), hardware])
    try:
        return Rule.from_module(unfused_batch_norm).apply(chart)
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))


def test_moments_of_their_own_are_an_unfused_layer() -> None:
    finding = as_finding(check(ran("SquaredDifference"), ran("Mul", 15.0), STREAM))
    (effect,) = finding.effects
    assert effect.of
    assert effect.of.value == 25.0
    assert effect.scales == near(8 / 25)
    assert effect.bound is Bound.EXPECTED


def test_where_a_line_makes_many_layers_the_model_is_cloned() -> None:
    rows = (ran("SquaredDifference"), ran("SquaredDifference", within="bn_1"), STREAM)
    finding = as_finding(check(*rows, layers=[layer(), layer("bn_1")]))
    assert [remedy.at for remedy in finding.remedies] == [Location("t.py", 5)] * 2
    assert "clone_model" in finding.remedies[1].code
    assert len(as_finding(check(*rows[::2], layers=[layer()])).remedies) == 1


def test_without_a_memory_rate_the_saving_is_a_ceiling() -> None:
    finding = as_finding(check(ran("SquaredDifference")))
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (0.0, Bound.AT_MOST)


def test_a_layer_faster_than_the_memory_saves_nothing() -> None:
    assert as_finding(check(ran("SquaredDifference", 1.0), STREAM)).effects[0].scales == 1.0


@pytest.mark.parametrize("kind", ["FusedBatchNormV3", "FusedBatchNormGradV3"])
def test_a_fused_layer_is_healthy(kind: str) -> None:
    assert "fused" in as_healthy(check(ran(kind))).summary


def test_a_layer_that_is_only_named_so_is_not_found() -> None:
    named = layer("batch_norm", "LayerNormalization")
    assert isinstance(check(ran("SquaredDifference", within="batch_norm"), layers=[named]), NotApplicable)


@pytest.mark.parametrize("kind", ["SyncBatchNormalization", "MyBatchNormalization"])
def test_variants_and_subclasses_are_batch_normalization_too(kind: str) -> None:
    assert isinstance(check(ran("SquaredDifference"), layers=[layer(kind=kind)]), Finding)


def test_an_inference_graph_has_no_moments() -> None:
    assert "none in training mode" in as_healthy(check(ran("Mul"), ran("Rsqrt"))).summary


def test_layers_that_left_no_operation_are_not_called_healthy() -> None:
    assert isinstance(check(STREAM), NotApplicable)


def test_xla_leaves_nothing_unfused_on_a_tpu() -> None:
    assert isinstance(check(ran("SquaredDifference"), hardware=Hardware(DeviceKind.TPU, "x")), Healthy)


def test_of_several_layers_only_the_unfused_count() -> None:
    rows = [ran("SquaredDifference", within="a"), ran("FusedBatchNormV3", within="b")]
    finding = as_finding(check(*rows, layers=[layer("a"), layer("b")]))
    assert [effect.subject for effect in finding.effects] == ["a (batch norm)"]


@pytest.mark.parametrize(("hardware", "words"), [(GPU, "jit_compile=True"), (CPU, "fused_batch_norm(")])
def test_the_remedy_follows_the_hardware(hardware: Hardware, words: str) -> None:
    finding = as_finding(check(ran("SquaredDifference"), hardware=hardware))
    assert words in finding.remedies[0].code
    assert finding.remedies[0].at == Location("t.py", 5)


def of_width(channels: int) -> tuple[OperationTime, ...]:
    tensor = ("float32", (32, 64, 64, channels))
    graph = Operation(name="m/bn/SquaredDifference", type="SquaredDifference", inputs=(tensor,))
    moments = OperationTime(name=graph.name, type=graph.type, ms=40.0, layer="bn", operation=graph)
    return moments, STREAM


@pytest.mark.parametrize("channels", [30, 33, 66, 7])
def test_widths_for_which_onednn_is_slower_are_not_advised(channels: int) -> None:
    assert "align" in as_not_applicable(check(*of_width(channels))).reason


def test_multiples_of_eight_gain_less_than_multiples_of_sixteen() -> None:
    (half,), (full,) = (finding.effects for c in (40, 48) if isinstance(finding := check(*of_width(c)), Finding))
    assert half.scales * 48 / 40 == near(full.scales / unfused_batch_norm.Limits().half_rate)


def test_on_a_gpu_the_width_does_not_matter() -> None:
    assert isinstance(check(*of_width(33), hardware=GPU), Finding)


def test_a_layer_of_a_bad_width_is_listed_but_not_counted() -> None:
    bad, _ = of_width(33)
    rows = (replace(bad, layer="odd"), ran("SquaredDifference"), STREAM)
    finding = as_finding(check(*rows, layers=[layer(), layer("odd")]))
    assert [effect.subject for effect in finding.effects] == ["bn (batch norm)"]
    table = finding.evidence[-1]
    assert isinstance(table, Table)
    assert any("align" in str(cell) for row in table.rows for cell in row)


@pytest.mark.parametrize("shape", [(64, 64), (32, 100, 64)])
def test_the_fused_operation_takes_images_only(shape: tuple[int, ...]) -> None:
    graph = Operation(name="m/bn/S", type="SquaredDifference", inputs=(("float32", shape),))
    row = OperationTime(name=graph.name, type=graph.type, ms=40.0, layer="bn", operation=graph)
    assert "rank 4" in as_not_applicable(check(row, STREAM)).reason
    assert isinstance(check(row, STREAM, hardware=GPU), Finding)


def test_another_axis_is_no_image_either() -> None:
    first = Layer(name="bn", kind="BatchNormalization", config=LayerConfig(axis=1))
    assert isinstance(check(*of_width(48), layers=[first]), NotApplicable)

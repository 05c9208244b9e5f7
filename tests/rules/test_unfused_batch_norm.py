"""unfused-batch-norm: layers of that class, by what they ran."""

from math import prod

from tests.rules.kit import *
from tfdoctor.facts.operations.step_parts import MOMENTS
from tfdoctor.facts.run.program import LayerConfig
from tfdoctor.rules.operations import unfused_batch_norm


def sick() -> Verdict:
    """The separate operations of a layer take 20 ms."""
    return unfused_batch_norm.check(_norms(MOMENTS), Hardware(DeviceKind.CPU, "example"))


def healthy() -> Verdict:
    """The layer runs as the fused operation."""
    return unfused_batch_norm.check(_norms("FusedBatchNormV3"), Hardware(DeviceKind.CPU, "example"))


def _norms(kind: str) -> BatchNorms:
    layer = Layer(name="bn", kind="BatchNormalization", at=Location("train.py", 10))
    program = Program(layers=(layer,), settings=RunSettings(batch_size=32))
    tensor = ("float32", (32, 64, 64, 48))
    graph = Operation(name="model/bn/moments", type=kind, inputs=(tensor,), outputs=(tensor,))
    size = 3.0 * prod(tensor[1]) * 4
    norm = OperationTime(name=graph.name, type=kind, ms=20.0, layer="bn", operation=graph)
    add = OperationTime(name="model/add", type="AddV2", ms=2.0, nbytes=size)
    return BatchNorms.measure(program, Operations((norm, add)))


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
    found = effects(check(ran("SquaredDifference"), ran("Mul", 15.0), STREAM))
    assert [one[1:] for one in found] == [(25.0, near(8 / 25), Bound.EXPECTED)]


def test_where_a_line_makes_many_layers_the_model_is_cloned() -> None:
    rows = (ran("SquaredDifference"), ran("SquaredDifference", within="bn_1"), STREAM)
    finding = as_finding(check(*rows, layers=[layer(), layer("bn_1")]))
    assert [remedy.at for remedy in finding.remedies] == [Location("t.py", 5)] * 2
    assert "clone_model" in finding.remedies[1].code
    assert len(as_finding(check(*rows[::2], layers=[layer()])).remedies) == 1


def test_without_a_memory_rate_the_saving_is_a_ceiling() -> None:
    assert [one[2:] for one in effects(check(ran("SquaredDifference")))] == [(0.0, Bound.AT_MOST)]
    assert effects(check(ran("SquaredDifference", 1.0), STREAM))[0][2] == 1.0  # faster than the memory


def test_a_fused_layer_is_healthy() -> None:
    for kind in ("FusedBatchNormV3", "FusedBatchNormGradV3"):
        assert "fused" in as_healthy(check(ran(kind))).summary


def test_a_layer_that_is_only_named_so_is_not_found() -> None:
    """Variants and subclasses are batch normalization, too."""
    named = layer("batch_norm", "LayerNormalization")
    assert isinstance(check(ran("SquaredDifference", within="batch_norm"), layers=[named]), NotApplicable)
    for kind in ("SyncBatchNormalization", "MyBatchNormalization"):
        assert isinstance(check(ran("SquaredDifference"), layers=[layer(kind=kind)]), Finding)


def test_an_inference_graph_has_no_moments() -> None:
    assert "none in training mode" in as_healthy(check(ran("Mul"), ran("Rsqrt"))).summary


def test_layers_that_left_no_operation_are_not_called_healthy() -> None:
    assert isinstance(check(STREAM), NotApplicable)


def test_xla_leaves_nothing_unfused_on_a_tpu() -> None:
    assert isinstance(check(ran("SquaredDifference"), hardware=Hardware(DeviceKind.TPU, "x")), Healthy)


def test_of_several_layers_only_the_unfused_count() -> None:
    rows = ran("SquaredDifference", within="a"), ran("FusedBatchNormV3", within="b")
    assert [*scales(check(*rows, layers=[layer("a"), layer("b")]))] == ["a (batch norm)"]


def test_the_remedy_follows_the_hardware() -> None:
    for hardware, words in ((GPU, "jit_compile=True"), (CPU, "fused_batch_norm(")):
        remedy = as_finding(check(ran("SquaredDifference"), hardware=hardware)).remedies[0]
        assert (words in remedy.code, remedy.at) == (True, Location("t.py", 5))


def of_shape(*shape: int) -> tuple[OperationTime, OperationTime]:
    graph = Operation(name="m/bn/SquaredDifference", type="SquaredDifference", inputs=(("float32", shape),))
    return OperationTime(name=graph.name, type=graph.type, ms=40.0, layer="bn", operation=graph), STREAM


def of_width(channels: int) -> tuple[OperationTime, OperationTime]:
    return of_shape(32, 64, 64, channels)


def test_widths_for_which_onednn_is_slower_are_not_advised() -> None:
    for channels in (30, 33, 66, 7):
        assert "align" in as_not_applicable(check(*of_width(channels))).reason
    assert isinstance(check(*of_width(33), hardware=GPU), Finding)


def test_multiples_of_eight_gain_less_than_multiples_of_sixteen() -> None:
    half, full = (effects(check(*of_width(channels)))[0][2] for channels in (40, 48))
    assert half * 48 / 40 == near(full / unfused_batch_norm.Limits().half_rate)


def test_a_layer_of_a_bad_width_is_listed_but_not_counted() -> None:
    rows = replace(of_width(33)[0], layer="odd"), ran("SquaredDifference"), STREAM
    finding = as_finding(check(*rows, layers=[layer(), layer("odd")]))
    assert [*scales(finding)] == ["bn (batch norm)"]
    table = finding.evidence[-1]
    assert isinstance(table, Table)
    assert any("align" in str(cell) for row in table.rows for cell in row)


def test_the_fused_operation_takes_images_only() -> None:
    for shape in ((64, 64), (32, 100, 64)):
        assert "rank 4" in as_not_applicable(check(*of_shape(*shape))).reason
        assert isinstance(check(*of_shape(*shape), hardware=GPU), Finding)


def test_another_axis_is_no_image_either() -> None:
    first = Layer(name="bn", kind="BatchNormalization", config=LayerConfig(axis=1))
    assert isinstance(check(*of_width(48), layers=[first]), NotApplicable)

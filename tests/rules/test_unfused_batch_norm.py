"""unfused-batch-norm: layers of that class, by what they ran."""

from tests.rules.kit import *
from tfdoctor.rules.operations import unfused_batch_norm

SHAPE = (32, 64, 64, 48)
SIZE = 32 * 64 * 64 * 48 * 4
CPU, GPU = Hardware(DeviceKind.CPU, "x"), Hardware(DeviceKind.GPU, "x")
STREAM = took("m/add", "AddV2", 3.0, nbytes=3.0 * SIZE)
"""An addition that streams at SIZE bytes a millisecond."""


def _norms(kind: str) -> BatchNorms:
    layer = Layer(name="bn", kind="BatchNormalization", at=script(10))
    program = Program(layers=(layer,), settings=RunSettings(batch_size=32))
    tensor = ("float32", (32, 64, 64, 48))
    graph = Operation(name="model/bn/moments", type=kind, inputs=(tensor,), outputs=(tensor,))
    size = 3.0 * prod(tensor[1]) * 4
    norm = took(graph.name, kind, 20.0, layer="bn", operation=graph)
    add = took("model/add", "AddV2", 2.0, nbytes=size)
    return BatchNorms.measure(program, Operations((norm, add)))


def layer(name: str = "bn", kind: str = "BatchNormalization") -> Layer:
    return Layer(name=name, kind=kind, at=Location("t.py", 5))


def ran(kind: str, ms: float = 10.0, within: str = "bn") -> OperationTime:
    tensor = ("float32", SHAPE)
    graph = Operation(name=f"m/{within}/{kind}", type=kind, inputs=(tensor, tensor))
    return took(graph.name, kind, ms, layer=within, operation=graph)


def check(*rows: OperationTime, layers: Any = None, hardware: Hardware = CPU) -> Verdict:
    program = Program(layers=tuple(layers or [layer()]))
    chart = Chart([program, Operations(rows), hardware])
    try:
        return rule_of(unfused_batch_norm).apply(chart)
    except Unavailable as missing:
        return NotApplicable(reason=str(missing))


def of_shape(*shape: int) -> tuple[OperationTime, OperationTime]:
    graph = Operation(name="m/bn/SquaredDifference", type="SquaredDifference", inputs=(("float32", shape),))
    return took(graph.name, graph.type, 40.0, layer="bn", operation=graph), STREAM


def of_width(channels: int) -> tuple[OperationTime, OperationTime]:
    return of_shape(32, 64, 64, channels)


on_cpu = partial(unfused_batch_norm.check, hardware=Hardware(DeviceKind.CPU, "example"))
sick = described("The separate operations of a layer take 20 ms.", on_cpu, _norms(MOMENTS))
healthy = described("The layer runs as the fused operation.", on_cpu, _norms("FusedBatchNormV3"))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["the separate operations of a layer take 20 ms, and the fused one"] = sick(), healthy()
    moments = ran("SquaredDifference")
    told["moments are an unfused layer, with all that it runs"] = check(moments, ran("Mul", 15.0), STREAM)
    rows = (moments, ran("SquaredDifference", within="bn_1"), STREAM)
    told["where a line makes two layers the model is cloned"] = check(*rows, layers=[layer(), layer("bn_1")])
    told["without a memory rate the saving is a ceiling"] = check(moments)
    told["a layer that is faster than the memory"] = check(ran("SquaredDifference", 1.0), STREAM)
    told["the fused gradient alone"] = check(ran("FusedBatchNormGradV3"))
    named = layer("batch_norm", "LayerNormalization")
    told["a layer that is only named so"] = check(ran("SquaredDifference", within="batch_norm"), layers=[named])
    for kind in ("SyncBatchNormalization", "MyBatchNormalization"):
        told[f"{kind} is batch normalization, too"] = check(moments, layers=[layer(kind=kind)])
    told["an inference graph has no moments"] = check(ran("Mul"), ran("Rsqrt"))
    told["layers that left no operation are not called healthy"] = check(STREAM)
    told["XLA leaves nothing unfused on a TPU"] = check(moments, hardware=Hardware(DeviceKind.TPU, "x"))
    rows = ran("SquaredDifference", within="a"), ran("FusedBatchNormV3", within="b"), STREAM
    told["of several layers only the unfused count"] = check(*rows, layers=[layer("a"), layer("b")])
    told["the remedy on a GPU"] = check(moments, hardware=GPU)


@golden_cases
def test_shapes(told: Cases) -> None:
    for channels in (30, 33, 66, 7):
        told[f"{channels} channels, for which oneDNN is slower"] = check(*of_width(channels))
    told["33 channels on a GPU"] = check(*of_width(33), hardware=GPU)
    told["48 channels"] = check(*of_width(48))
    told["40 channels gain less: no multiple of 16"] = check(*of_width(40))
    rows = replace(of_width(33)[0], layer="odd"), ran("SquaredDifference"), STREAM
    told["a layer of a bad width is listed but not counted"] = check(*rows, layers=[layer(), layer("odd")])
    for shape in ((64, 64), (32, 100, 64)):
        told[f"the fused operation takes images only: {shape}"] = check(*of_shape(*shape))
        told[f"XLA fuses any shape on a GPU: {shape}"] = check(*of_shape(*shape), hardware=GPU)
    first = Layer(name="bn", kind="BatchNormalization", config=LayerConfig(axis=1))
    told["another axis is no image either"] = check(*of_width(48), layers=[first])

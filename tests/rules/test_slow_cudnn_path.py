"""slow-cudnn-path: both sides of its share, and a remedy for each obstacle."""

from tests.rules.kit import *
from tfdoctor.facts.steps.steps import STEP
from tfdoctor.rules.execution.slow_cudnn_path import check
from tfdoctor.rules.execution.slow_cudnn_path.recurrent_layers import CudnnObstacle, LoopedLayer, RecurrentLayers


def example(
    *obstacles: CudnnObstacle, loop_ms: float = 6.0, launching_ms: float = 20.0, step_ms: float = 30.0
) -> Verdict:
    """An LSTM with recurrent_dropout launches hundreds of kernels; the GPU idles for 20 of 30 ms."""
    row = OperationTime(
        name="lstm/while/body/_1/lstm/while/lstm_cell/MatMul", type="MatMul", ms=loop_ms,
        layer="lstm", at=script(9), calls=64.0,
    )  # fmt: skip
    arguments = RecurrentArguments(recurrent_dropout=0.2)
    layer = Layer(name="lstm", kind="LSTM", at=script(9), recurrent=arguments)
    looped = LoopedLayer(layer, (row,), obstacles or (CudnnObstacle.RECURRENT_DROPOUT,), launching_ms)
    step = Breakdown.of(host=step_ms - loop_ms, device=loop_ms)
    return check(RecurrentLayers((looped,), 1), step)


sick = example
healthy = described(
    "The layer is a kernel of cuDNN's.", check, RecurrentLayers((), 1), Breakdown.of(host=1.0, device=2.0)
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = example(loop_ms=5.05, launching_ms=0.0, step_ms=100.0)
    told[...] = example(loop_ms=4.95, launching_ms=0.0, step_ms=100.0)
    for obstacle in CudnnObstacle:
        told[f"a remedy for {obstacle.name.lower()}"] = example(obstacle)
    steady, cpu = SteadySteps(STEP, Intervals(), Intervals(), 1), Hardware(DeviceKind.CPU, "x")
    told["trap: the loop on a CPU"] = applied(check, RecurrentLayers((), 1), Breakdown.of(device=9.0), cpu, steady)


# Which recurrent layers are off cuDNN, and why.
LOOP = "lstm/while/body/_1/lstm/while/lstm_cell/MatMul"
DEFAULT: dict[str, Any] = {
    "recurrent_dropout": 0.0, "unroll": False, "use_bias": True, "use_cudnn": "auto", "activation": "tanh",
    "recurrent_activation": "sigmoid",
}  # fmt: skip


def row(name: str = LOOP, kind: str = "MatMul", layer: str = "lstm") -> OperationTime:
    return took(name, kind, 2.0, layer=layer)


def measured(
    *rows: OperationTime, arguments: dict[str, Any] | None = None, layers: tuple[Layer, ...] = (),
    operations: tuple[Operation, ...] = (), kind: str = "LSTM", sequences: list[dict[str, Any]] | None = None,
    gaps: IdleGaps | None = None,
) -> RecurrentLayers:  # fmt: skip
    given = RecurrentArguments(**(DEFAULT | (arguments or {})))
    program = Program(operations, (Layer(name="lstm", kind=kind, recurrent=given), *layers))
    beside = recording(program={"graphs": [], "sequences": sequences} if sequences else None)
    return RecurrentLayers.measure(Operations(rows or (row(),)), program, beside, gaps)


@golden_cases
def test_obstacles(told: Cases) -> None:
    def looped(name: str, *rows: OperationTime, **more: Any) -> None:
        found = measured(*rows, **more).looped
        told[name] = [", ".join(one.name.lower() for one in layer.obstacles) for layer in found]

    looped("recurrent_dropout", arguments={"recurrent_dropout": 0.2})
    looped("another activation", arguments={"activation": "relu"})
    looped("another recurrent activation", arguments={"recurrent_activation": "hard_sigmoid"}, kind="GRU")
    looped("an unrolled layer", arguments={"unroll": True})
    looped("no bias", arguments={"use_bias": False})
    looped("a GRU that resets before", arguments={"reset_after": False}, kind="GRU")
    looped("cuDNN is not wanted", arguments={"use_cudnn": False})
    looped("no obstacle in the arguments")
    moves = row("lstm/transpose", "Transpose")
    looped("trap: other operations of a layer that cuDNN computes", row("lstm/CudnnRNNV3", "CudnnRNNV3"), moves)
    unknown = row("PartitionedCall/CudnnRNNV3", "CudnnRNNV3", "")
    looped("trap: a kernel of cuDNN's that no layer is known for", unknown, row())
    looped("no loop ran", moves)
    looped("another layer", row("dense/MatMul", layer="dense"))
    masks = (Layer(name="embedding", kind="Embedding", masks=True),)
    left = {"shape": [4, 9], "lengths": [[3, 9, 5, 2]], "leading": True, "begins": 1.0}
    looped("a mask on the left is told by the data", layers=masks, sequences=[left])
    looped("a mask on the right", layers=masks, sequences=[left | {"leading": False}])
    looped("a mask on an unknown side", layers=masks)
    ragged = Operation(name="lstm/RaggedToTensor", type="RaggedTensorToTensor")
    looped("a ragged input is told by the graph", operations=(ragged,))
    sizes = dict.fromkeys(GapSize, 0.0) | {GapSize.SMALL: 8.0}
    rows = row(), *[row("dense/MatMul", layer="dense")] * 3
    (one,) = measured(*rows, gaps=IdleGaps(8.0, {}, sizes, sizes, sizes, kernels=4.0)).looped
    told["8 ms of launching are shared by the number of kernels"] = one.launching_ms
    program = Program(layers=(Layer(name="lstm", kind="LSTM"),))
    told["unknown arguments"] = lambda: RecurrentLayers.measure(Operations((row(),)), program, recording(), None)

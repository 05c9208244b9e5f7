"""slow-cudnn-path: both sides of its share, and a remedy for each obstacle."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.gpu.idle_gaps import GapSize
from tfdoctor.facts.run.program import RecurrentArguments
from tfdoctor.facts.steps.steps import STEP
from tfdoctor.rules.execution import slow_cudnn_path
from tfdoctor.rules.execution.slow_cudnn_path import CudnnObstacle, Limits, LoopedLayer, RecurrentLayers, check
from tfdoctor.trace import Intervals


def example(
    *obstacles: CudnnObstacle, loop_ms: float = 6.0, launching_ms: float = 20.0, step_ms: float = 30.0
) -> Verdict:
    """An LSTM with recurrent_dropout launches hundreds of kernels; the GPU idles for 20 of 30 ms."""
    row = OperationTime(
        name="lstm/while/body/_1/lstm/while/lstm_cell/MatMul", type="MatMul", ms=loop_ms,
        layer="lstm", at=Location("train.py", 9), calls=64.0,
    )  # fmt: skip
    arguments = RecurrentArguments(recurrent_dropout=0.2)
    layer = Layer(name="lstm", kind="LSTM", at=Location("train.py", 9), recurrent=arguments)
    looped = LoopedLayer(layer, (row,), obstacles or (CudnnObstacle.RECURRENT_DROPOUT,), launching_ms)
    step = Breakdown.of(host=step_ms - loop_ms, device=loop_ms)
    return check(RecurrentLayers((looped,), 1), step)


sick = example


def healthy() -> Verdict:
    """The layer is a kernel of cuDNN's."""
    return check(RecurrentLayers((), 1), Breakdown.of(host=1.0, device=2.0))


def test_the_layers_operations_and_launches_may_go() -> None:
    finding = as_finding(example())
    assert {(part, bound) for part, _, _, bound in effects(finding)} == {
        (Stage.DEVICE, Bound.AT_MOST),
        (Stage.HOST, Bound.AT_MOST),
    }
    assert "recurrent_dropout" in finding.remedies[0].action
    assert finding.remedies[0].at == Location("train.py", 9)


def test_both_sides_of_the_share() -> None:
    times = (Limits().share * 100 * factor for factor in (1.01, 0.99))
    found = [example(loop_ms=loop_ms, launching_ms=0.0, step_ms=100.0) for loop_ms in times]
    assert kinds(*found) == [Finding, Healthy]


def test_each_obstacle_has_a_remedy() -> None:
    for obstacle in CudnnObstacle:
        assert first_action(example(obstacle)) == obstacle.action


def test_a_cpu_has_no_cudnn() -> None:
    """Trap: the same loop on a CPU, which recurrent-loop judges."""
    steady, cpu = SteadySteps(STEP, Intervals(), Intervals(), 1), Hardware(DeviceKind.CPU, "x")
    facts = (RecurrentLayers((), 1), Breakdown.of(device=9.0), cpu, steady)
    assert isinstance(applied(slow_cudnn_path, *facts), NotApplicable)


# Which recurrent layers are off cuDNN, and why.


LOOP = "lstm/while/body/_1/lstm/while/lstm_cell/MatMul"
DEFAULT: dict[str, Any] = {
    "recurrent_dropout": 0.0, "unroll": False, "use_bias": True, "use_cudnn": "auto", "activation": "tanh",
    "recurrent_activation": "sigmoid",
}  # fmt: skip


def row(name: str = LOOP, kind: str = "MatMul", layer: str = "lstm") -> OperationTime:
    return OperationTime(name=name, type=kind, ms=2.0, layer=layer)


def measured(
    *rows: OperationTime, arguments: dict[str, Any] | None = None, layers: tuple[Layer, ...] = (),
    operations: tuple[Operation, ...] = (), kind: str = "LSTM", sequences: list[dict[str, Any]] | None = None,
    gaps: IdleGaps | None = None,
) -> RecurrentLayers:  # fmt: skip
    given = RecurrentArguments(**(DEFAULT | (arguments or {})))
    program = Program(operations, (Layer(name="lstm", kind=kind, recurrent=given), *layers))
    beside = recording(program={"graphs": [], "sequences": sequences} if sequences else None)
    return RecurrentLayers.measure(Operations(rows or (row(),)), program, beside, gaps)


def test_arguments_keep_a_layer_off_cudnn() -> None:
    for arguments, kind, obstacle in (
        ({"recurrent_dropout": 0.2}, "LSTM", CudnnObstacle.RECURRENT_DROPOUT),
        ({"activation": "relu"}, "LSTM", CudnnObstacle.ACTIVATION),
        ({"recurrent_activation": "hard_sigmoid"}, "GRU", CudnnObstacle.RECURRENT_ACTIVATION),
        ({"unroll": True}, "LSTM", CudnnObstacle.UNROLL),
        ({"use_bias": False}, "LSTM", CudnnObstacle.USE_BIAS),
        ({"reset_after": False}, "GRU", CudnnObstacle.RESET_AFTER),
        ({"use_cudnn": False}, "LSTM", CudnnObstacle.USE_CUDNN),
        ({}, "LSTM", CudnnObstacle.UNKNOWN),
    ):
        (one,) = measured(arguments=arguments, kind=kind).looped
        assert one.obstacles == (obstacle,)


def test_a_layer_that_cudnn_computes_or_may_is_not_looped() -> None:
    """Traps: its other operations, and a kernel of cuDNN's that no layer is known for."""
    moves = row("lstm/transpose", "Transpose")
    for rows in (
        (row("lstm/CudnnRNNV3", "CudnnRNNV3"), moves),
        (row("PartitionedCall/CudnnRNNV3", "CudnnRNNV3", ""), row()),  # its layer is unknown
        (moves,),  # no loop ran
        (row("dense/MatMul", layer="dense"),),
    ):
        assert measured(*rows).looped == ()


def test_a_mask_on_the_left_is_told_by_the_data() -> None:
    masks = (Layer(name="embedding", kind="Embedding", masks=True),)
    left = {"shape": [4, 9], "lengths": [[3, 9, 5, 2]], "leading": True, "begins": 1.0}
    for sequences, obstacle in (
        ([left], CudnnObstacle.LEFT_PADDING),
        ([left | {"leading": False}], CudnnObstacle.MASK),
        (None, CudnnObstacle.MASK),
    ):
        (one,) = measured(layers=masks, sequences=sequences).looped
        assert one.obstacles == (obstacle,)


def test_a_ragged_input_is_told_by_the_graph() -> None:
    ragged = Operation(name="lstm/RaggedToTensor", type="RaggedTensorToTensor")
    (one,) = measured(operations=(ragged,)).looped
    assert one.obstacles == (CudnnObstacle.RAGGED,)


def test_launching_is_shared_by_the_number_of_kernels() -> None:
    sizes = dict.fromkeys(GapSize, 0.0) | {GapSize.SMALL: 8.0}
    gaps = IdleGaps(8.0, {}, sizes, sizes, sizes, kernels=4.0)
    other = row("dense/MatMul", layer="dense")
    (one,) = measured(row(), other, other, other, gaps=gaps).looped
    assert one.launching_ms == near(2.0)


def test_recordings_without_the_arguments_raise() -> None:
    program = Program(layers=(Layer(name="lstm", kind="LSTM"),))
    with pytest.raises(Unavailable, match="arguments"):
        RecurrentLayers.measure(Operations((row(),)), program, recording(), None)

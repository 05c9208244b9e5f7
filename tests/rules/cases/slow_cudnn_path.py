"""The cases of slow-cudnn-path: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.run.program import RecurrentArguments
from tfdoctor.rules.execution.slow_cudnn_path import check
from tfdoctor.rules.execution.slow_cudnn_path.recurrent_layers import CudnnObstacle, LoopedLayer, RecurrentLayers


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

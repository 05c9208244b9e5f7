"""Recurrent layers that a GPU computes step by step, and what keeps them off cuDNN."""

from tfdoctor.facts.run.operation_types import RECURRENT
from tfdoctor.facts.run.program import Layer, RecurrentArguments
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.trace.names import FRAME

RAGGED = "RaggedTensorToTensor"  # The operation by which Keras pads a ragged input
MOSTLY = 0.9  # Share of the rows that end with a value, from which their padding is on the left


class CudnnObstacle(Enum):
    """What keeps a layer off cuDNN (Keras 2 and 3, `LSTM` and `GRU`), and what to do; the page has the code."""

    RECURRENT_DROPOUT = "recurrent_dropout", "Drop recurrent_dropout, and use dropout"
    ACTIVATION = "activation", "Use the default activation"
    RECURRENT_ACTIVATION = "recurrent_activation", "Use the default recurrent activation"
    UNROLL = "unroll", "Do not unroll the layer"
    USE_BIAS = "use_bias", "Use the bias"
    RESET_AFTER = "reset_after", "Apply the reset gate after the product"
    USE_CUDNN = "use_cudnn", "Let Keras use cuDNN"
    LEFT_PADDING = "padding on the left", "Pad the sequences on the right"
    MASK = "a mask", "Check that the mask is padded on the right only"
    RAGGED = "a ragged input", "Pad the ragged input on the right"
    UNKNOWN = "unknown", "Look for what keeps the layer off cuDNN: the table of this rule's page"

    def __init__(self, label: str, action: str) -> None:
        self.label, self.action = label, action


class LoopedLayer(Record, OperationRows):
    """A recurrent layer off cuDNN: its operations, what keeps it there, and the host's part; ms per step."""

    layer: Layer
    rows: tuple[OperationTime, ...]
    obstacles: tuple[CudnnObstacle, ...]
    launching_ms: float = 0.0  # in which the GPU idles while the host launches its kernels


class RecurrentLayers(Record):
    """The LSTM and GRU layers of a step on a GPU: those off cuDNN, and the number of all that ran."""

    looped: tuple[LoopedLayer, ...]
    ran: int

    @classmethod
    def measure(cls, operations: Operations, program: Program, recording: Recording, gaps: IdleGaps | None) -> Self:
        """Find the layers whose operations ran in a loop or unrolled, without one of cuDNN.

        Raises:
            Unavailable: the arguments of recurrent layers were not recorded.
        """
        layers = [layer for layer in program.layers if layer.recurrent]
        if not layers and any(layer.kind in ("LSTM", "GRU") for layer in program.layers):
            raise Unavailable("the arguments of the recurrent layers were not recorded")
        on_cudnn = {row.layer for row in operations.rows if row.type in RECURRENT}  # "" may be of any layer
        of_input = CudnnObstacle.MASK if any(layer.masks for layer in program.layers) else CudnnObstacle.UNKNOWN
        for one in (recording.program.sequences if recording.program else None) or ():
            width = one.shape[1] if len(one.shape) > 1 else 0
            shorter = any(length < width for lengths in one.lengths for length in lengths)
            # Rows begin with padding and end with values.
            if of_input is CudnnObstacle.MASK and one.leading and one.begins >= MOSTLY and shorter:
                of_input = CudnnObstacle.LEFT_PADDING
        if any(operation.type == RAGGED for operation in program.operations):
            of_input = CudnnObstacle.RAGGED
        looped, ran = [], 0
        for layer in layers:
            rows = tuple(row for row in operations.rows if row.layer == layer.name)
            ran += bool(rows)
            given = layer.recurrent or RecurrentArguments()
            # With these Keras does not ask cuDNN; those that a layer lacks forbid nothing.
            forbidden = {
                CudnnObstacle.RECURRENT_DROPOUT: given.recurrent_dropout,
                CudnnObstacle.ACTIVATION: given.activation not in (None, "tanh"),
                CudnnObstacle.RECURRENT_ACTIVATION: given.recurrent_activation not in (None, "sigmoid"),
                CudnnObstacle.UNROLL: given.unroll,
                CudnnObstacle.USE_BIAS: given.use_bias is False,
                CudnnObstacle.RESET_AFTER: given.reset_after is False and layer.kind == "GRU",
                CudnnObstacle.USE_CUDNN: given.use_cudnn is False,
            }
            obstacles = tuple(obstacle for obstacle, holds in forbidden.items() if holds)
            off = obstacles or any(FRAME.search(row.name) for row in rows)
            if rows and off and on_cudnn.isdisjoint((layer.name, "")):
                looped.append(LoopedLayer(layer, rows, obstacles or (of_input,)))
        calls = sum(row.calls for row in operations.rows)
        idle_ms = gaps.launching_ms if gaps and calls else 0.0  # while the host launches: a part by kernels
        return cls(tuple(replace(one, launching_ms=one.calls / (calls or 1.0) * idle_ms) for one in looped), ran)

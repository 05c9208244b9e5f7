"""Recurrent layers that a GPU computes step by step, and what keeps them off cuDNN."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.gpu.idle_gaps import IdleGaps
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import RECURRENT
from tfdoctor.facts.run.program import Layer, Program, RecurrentArguments
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedSequences
from tfdoctor.trace.names import FRAME

RAGGED = "RaggedTensorToTensor"
"""The operation by which Keras pads a ragged input."""


MOSTLY = 0.9
"""Share of the rows that end with a value, from which their padding is on the left."""


class CudnnObstacle(StrEnum):
    """What keeps a layer off cuDNN (Keras 2 and 3, `LSTM` and `GRU`)."""

    RECURRENT_DROPOUT = "recurrent_dropout"
    ACTIVATION = "activation"
    RECURRENT_ACTIVATION = "recurrent_activation"
    UNROLL = "unroll"
    USE_BIAS = "use_bias"
    RESET_AFTER = "reset_after"
    USE_CUDNN = "use_cudnn"
    LEFT_PADDING = "padding on the left"
    MASK = "a mask"
    RAGGED = "a ragged input"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LoopedLayer(OperationRows):
    """A recurrent layer off cuDNN: its operations, what keeps it there, and the host's part; ms per step."""

    layer: Layer
    rows: tuple[OperationTime, ...]
    obstacles: tuple[CudnnObstacle, ...]
    launching_ms: float = 0.0  # in which the GPU idles while the host launches its kernels


@dataclass(frozen=True, slots=True)
class RecurrentLayers:
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
        outside = _common(program, recording)
        looped, ran = [], 0
        for layer in layers:
            rows = tuple(row for row in operations.rows if row.layer == layer.name)
            ran += bool(rows)
            if one := _looped(layer, rows, operations, outside):
                looped.append(one)
        return cls(tuple(_with_launches(looped, operations, gaps)), ran)


def _looped(
    layer: Layer, rows: tuple[OperationTime, ...], operations: Operations, outside: tuple[CudnnObstacle, ...]
) -> LoopedLayer | None:
    """Return a layer that is off cuDNN; None where an operation of cuDNN's is its own, or may be."""
    own = (layer.name, "")
    if not rows or any(row.type in RECURRENT and row.layer in own for row in operations.rows):
        return None
    arguments = tuple(_of_arguments(layer.kind, layer.recurrent or RecurrentArguments()))
    if not arguments and not any(FRAME.search(row.name) for row in rows):
        return None
    return LoopedLayer(layer, rows, arguments or outside or (CudnnObstacle.UNKNOWN,))


def _of_arguments(kind: str, given: RecurrentArguments) -> Iterator[CudnnObstacle]:
    """Yield the arguments with which Keras does not ask cuDNN; those that a layer lacks forbid nothing."""
    if given.recurrent_dropout:
        yield CudnnObstacle.RECURRENT_DROPOUT
    if given.activation not in (None, "tanh"):
        yield CudnnObstacle.ACTIVATION
    if given.recurrent_activation not in (None, "sigmoid"):
        yield CudnnObstacle.RECURRENT_ACTIVATION
    if given.unroll:
        yield CudnnObstacle.UNROLL
    if given.use_bias is False:
        yield CudnnObstacle.USE_BIAS
    if given.reset_after is False and kind == "GRU":
        yield CudnnObstacle.RESET_AFTER
    if given.use_cudnn is False:
        yield CudnnObstacle.USE_CUDNN


def _common(program: Program, recording: Recording) -> tuple[CudnnObstacle, ...]:
    """Return what keeps a layer off cuDNN whose arguments do not: its input."""
    if any(operation.type == RAGGED for operation in program.operations):
        return (CudnnObstacle.RAGGED,)
    if not any(layer.masks for layer in program.layers):
        return ()
    sequences = recording.program.sequences if recording.program else None
    return (CudnnObstacle.LEFT_PADDING if any(map(_is_left, sequences or ())) else CudnnObstacle.MASK,)


def _is_left(sequences: RecordedSequences) -> bool:
    """Say whether some rows begin with padding and end with values."""
    width = sequences.shape[1] if len(sequences.shape) > 1 else 0
    shorter = any(length < width for lengths in sequences.lengths for length in lengths)
    return sequences.leading and sequences.begins >= MOSTLY and shorter


def _with_launches(
    looped: list[LoopedLayer], operations: Operations, gaps: IdleGaps | None
) -> Iterator[LoopedLayer]:
    """Yield the layers with their part, by number of kernels, of the idle time while the host launches."""
    calls = sum(row.calls for row in operations.rows)
    launching_ms = gaps.launching_ms if gaps else 0.0
    for one in looped:
        part = sum(row.calls for row in one.rows) / calls if calls else 0.0
        yield LoopedLayer(one.layer, one.rows, one.obstacles, part * launching_ms)

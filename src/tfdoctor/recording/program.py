"""program.json.gz: what the run built, as the agent wrote it down at its end.

The classes mirror the file; `tfdoctor.facts.run.program` makes of them what rules reason over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from tfdoctor.recording.typed import KEY, LOOSE, WHOLE, Amount, Bounds, Count

SourceLine = tuple[str, int]
"""A file of the user's and a line in it."""

TensorType = tuple[str, tuple[int | None, ...] | None]
"""dtype and shape; None in a shape is a dimension the graph left open, a None shape any rank."""

Setting = bool | int | float | str
"""A value of an option of tf.data."""

Number = Annotated[int, LOOSE, Bounds(least=0)]
"""What the user gave to fit: a whole number, of numpy perhaps."""

Size = Annotated[int, LOOSE, Bounds(least=1)]
"""A number that may not be zero, of numpy perhaps."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of an operation that facts compute with; an operation has only some."""

    strides: tuple[int, ...] = ()
    data_format: str = "NHWC"
    equation: str = ""
    transpose_a: bool = False
    adj_x: bool = False


@dataclass(frozen=True, slots=True)
class RecordedOperation:
    """One operation of a graph; `sources` are the positions of those that make its inputs."""

    name: str
    type: str
    inputs: tuple[TensorType, ...] = ()
    outputs: tuple[TensorType, ...] = ()
    sources: tuple[int | None, ...] = field(default=(), metadata={KEY: "from"})
    attrs: Attributes = Attributes()
    layer: str = ""
    at: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class RecordedGraph:
    """One traced function."""

    operations: Annotated[tuple[RecordedOperation, ...], WHOLE]
    name: str = ""
    kind: str = ""  # "dataset": a function of tf.data's
    given: tuple[str, ...] = ()  # what it was traced for, one text an argument


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """The settings of a Keras layer that facts use."""

    axis: int | tuple[int, ...] = -1


@dataclass(frozen=True, slots=True)
class RecordedLayer:
    """One Keras layer."""

    name: str
    kind: str = field(metadata={KEY: "class"})
    module: str = ""
    config: LayerConfig = LayerConfig()
    compute_dtype: str = ""
    at: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class RecordedFunction:
    """The user's function that a dataset maps."""

    name: str = ""
    at: SourceLine | None = None
    python: bool = False
    types: tuple[str, ...] | None = None
    stateful: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class DatasetParameters:
    """What a stage of a pipeline was given; None is not given, or not recorded."""

    batch_size: Annotated[int, Bounds(least=1)] | None = None
    buffer_size: int | None = None
    count: int | None = None
    drop_remainder: bool | None = None
    reshuffle_each_iteration: bool | None = None


@dataclass(frozen=True, slots=True)
class FileList:
    """The paths that a dataset yields or reads."""

    count: Count | None = None
    scheme: str = ""  # "gs", "s3": the file system across a network
    nbytes: Count | None = field(default=None, metadata={KEY: "bytes"})  # of one of them


@dataclass(frozen=True, slots=True)
class RecordedDataset:
    """One stage of a tf.data pipeline."""

    id: int
    kind: str = field(metadata={KEY: "class"})
    trace_name: str = ""
    inputs: tuple[int, ...] = ()
    parameters: DatasetParameters = DatasetParameters()
    options: Mapping[str, Setting] | None = None
    files: FileList | None = None
    function: RecordedFunction | None = None
    element_spec: str = ""
    cardinality: int | None = None
    at: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How the run was set up; None is unknown."""

    policy: str | None = None
    optimizer: str | None = None
    loss_scale: bool | None = None
    jit_compile: bool | str | None = None  # True, False or "auto"
    run_eagerly: bool | None = None
    steps_per_execution: int | str | None = None
    batch_size: Size | None = None
    fit_at: SourceLine | None = None
    epochs: Number | None = None
    steps_per_epoch: Number | None = None
    strategy: str | None = None
    replicas: Size | None = None
    devices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SeenPlace:
    """A line at which Python was seen between the calls that train, and how often."""

    seen: Count
    at: SourceLine | None = None
    callback: str = ""
    makes: bool | None = None


@dataclass(frozen=True, slots=True)
class FedArgument:
    """One argument of the function that trains."""

    shape: tuple[int, ...] = ()
    anew: bool = False


@dataclass(frozen=True, slots=True)
class FedCall:
    """The call of the function that trains, and what it is given."""

    at: SourceLine | None = None
    arguments: tuple[FedArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonRecord:
    """Where Python was between the calls that train."""

    places: tuple[SeenPlace, ...] = ()
    collecting_ms: Amount = 0.0
    fed: FedCall | None = None


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """`program.json.gz`; `layers` are None where no list of them was written."""

    graphs: Annotated[tuple[RecordedGraph, ...], WHOLE] = ()
    layers: Annotated[tuple[RecordedLayer, ...] | None, WHOLE] = None
    datasets: Annotated[tuple[RecordedDataset, ...], WHOLE] = ()
    feeds: int | None = None
    input_kind: str = ""
    run: RunSettings = RunSettings()
    python: PythonRecord | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

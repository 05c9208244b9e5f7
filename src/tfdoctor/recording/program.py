"""program.json.gz: the graphs, layers and datasets of a run, written by the agent at its end.

The classes mirror the file. Those that facts have as well are of any kind of line: in the record it has the path of
the machine that ran, in facts the one that reports show.
"""

from collections.abc import Mapping
from typing import Annotated, Generic, TypeVar

from msgspec import Meta

from tfdoctor.recording.typed import LOOSE, MOST, WHOLE, Amount, Count
from tfdoctor.terms.record import Record, field

DIGITS = 8  # Of the hash of a line; the agent writes as many
SourceLine = tuple[str, int]  # A file of the user and a line number in it
# A line: in the record a SourceLine, as which `typed` reads it, in facts a location that reports show.
At = TypeVar("At")
# dtype and shape; None in a shape is an unknown dimension, None as the shape an unknown rank.
TensorType = tuple[str, tuple[int | None, ...] | None]
Setting = bool | int | float | str  # A value of an option of tf.data
Number = Annotated[Count, LOOSE]  # An integer that the user passed to fit, perhaps of numpy
Size = Annotated[int, LOOSE, Meta(ge=1, le=MOST)]  # An integer that may not be zero, perhaps of numpy


class Attributes(Record):
    """The attributes of an operation that facts use; each operation has only some of them."""

    strides: tuple[int, ...] = ()
    data_format: str = "NHWC"
    equation: str = ""
    transpose_a: bool = False
    adj_x: bool = False
    ratio: int = 1  # of DecodeJpeg, which divides the size
    scalar: float | None = None  # the value of a constant that is one number


class AnyOperation(Record, Generic[At]):
    """One operation of a graph."""

    name: str
    type: str
    inputs: tuple[TensorType, ...] = ()
    outputs: tuple[TensorType, ...] = ()
    attrs: Attributes = Attributes()
    layer: str = ""
    at: At | None = None
    by: At | None = None  # the user's line that calls the function of `at`
    around: tuple[At, ...] = ()  # the lines that call the function of `by`, and those that call theirs
    direct: bool = False  # the line calls no Keras layer that made the operation
    computes: str = ""  # a digest of type and attributes; "": equal inputs may give other results
    ports: tuple[int, ...] = ()  # which result of each of `sources`; () are the first ones


class RecordedOperation(AnyOperation[SourceLine]):
    """An operation in the record; `sources` are the positions of the operations that produce its inputs."""

    sources: tuple[int | None, ...] = field(default=(), name="from")
    origin: tuple[str, str] | None = None  # the part of Keras that made it: ("metric", "AUC")


class Zeros(Record):
    """What some rows of a matrix hold: the share of zeros, 0 to 1, and the most other values in a row."""

    share: float
    fullest: Count = 0
    diagonal: bool = False  # all of these are on the diagonal of a square matrix
    name: str = ""  # of its placeholder in the graph


class ConstantKernel(Record):
    """A constant kernel of a depthwise convolution; `separable`: each channel is a column times a row."""

    name: str  # of its placeholder or constant in the graph
    separable: bool = False


class RecordedGraph(Record):
    """The operations of one traced tf.function, and the argument types that it was traced for."""

    operations: Annotated[tuple[RecordedOperation, ...], WHOLE]
    name: str = ""
    kind: str = ""  # "dataset": a function of tf.data's
    given: tuple[str, ...] = ()  # what it was traced for, one text an argument
    zeros: tuple[Zeros, ...] | None = None  # of captured matrices; None: not recorded
    kernels: tuple[ConstantKernel, ...] = ()  # constant ones of depthwise convolutions
    captured: tuple[str, ...] = ()  # the placeholders of tensors that are the same in every call
    outer: str | None = None  # the name of the graph in which it was traced; None: of none


class LayerConfig(Record):
    """The settings of a Keras layer that facts use."""

    axis: int | tuple[int, ...] = -1


class RecurrentArguments(Record):
    """The arguments of an LSTM or GRU that decide whether cuDNN computes it; None where it has no such argument."""

    recurrent_dropout: float | int | None = None
    unroll: bool | None = None
    use_bias: bool | None = None
    reset_after: bool | None = None
    use_cudnn: bool | str | None = None
    activation: str | None = None
    recurrent_activation: str | None = None


class AnyLayer(Record, Generic[At]):
    """A Keras layer and the line that creates it."""

    name: str
    kind: str = field(name="class")
    module: str = ""
    config: LayerConfig = LayerConfig()
    compute_dtype: str = ""
    trainable: bool | None = None  # None: not recorded
    at: At | None = None
    recurrent: RecurrentArguments | None = None  # None: no LSTM or GRU, or not recorded
    masks: bool = False  # it makes a mask of padded positions


RecordedLayer = AnyLayer[SourceLine]


class AnyMetric(Record, Generic[At]):
    """A Keras metric and the line that creates it."""

    name: str
    classes: tuple[str, ...] = ()  # its own, and those that it inherits from
    at: At | None = None


class RecordedFunction(Record):
    """The user's function that a dataset applies."""

    name: str = ""
    at: SourceLine | None = None
    python: bool = False
    types: frozenset[str] | None = None
    stateful: frozenset[str] | None = None


class DatasetParameters(Record):
    """The arguments of a pipeline stage; None if not passed or not recorded."""

    batch_size: Annotated[int, Meta(ge=1)] | None = None
    buffer_size: int | None = None
    count: int | None = None
    drop_remainder: bool | None = None
    num_parallel_calls: int | None = None  # -1 is AUTOTUNE
    reshuffle_each_iteration: bool | None = None
    compression_type: str = ""  # "GZIP", "ZLIB"; "" is none or not recorded


# File systems across a network, by the type of their mount (proc_pid_mountinfo(5)). What hands a folder of the host
# to a container or a virtual machine (9p, virtiofs, overlay) is none: what lies beneath is not known.
NETWORKS = {
    "nfs": "NFS", "nfs4": "NFS", "cifs": "SMB", "smb3": "SMB", "lustre": "Lustre", "ceph": "CephFS",
    "fuse.ceph": "CephFS", "fuse.ceph-fuse": "CephFS", "glusterfs": "GlusterFS", "fuse.glusterfs": "GlusterFS",
    "beegfs": "BeeGFS", "gpfs": "GPFS", "afs": "AFS", "wekafs": "WekaFS", "fuse.juicefs": "JuiceFS",
    "fuse.gcsfuse": "Cloud Storage FUSE", "fuse.mountpoint-s3": "Mountpoint for S3", "fuse.s3fs": "s3fs",
    "fuse.goofys": "goofys", "fuse.blobfuse": "BlobFuse", "fuse.blobfuse2": "BlobFuse",
    "fuse.rclone": "rclone", "fuse.sshfs": "SSHFS",
}  # fmt: skip


class FileList(Record):
    """The paths that a dataset yields or reads."""

    count: Count | None = None
    scheme: str = ""  # "gs", "s3": the file system across a network
    nbytes: Count | None = field(default=None, name="bytes")  # of one of them
    image: tuple[int, ...] = ()  # height and width in pixels, the median of a few; () is unknown or none
    file_system: str = ""  # of local paths: the type of the mount, "ext4"; "" is unknown

    @property
    def network(self) -> str:
        """What holds the files across a network: "gs://", "NFS"; "" is none, or unknown."""
        return f"{self.scheme}://" if self.scheme else NETWORKS.get(self.file_system, "")


class AnyDataset(Record, Generic[At]):
    """A stage of a tf.data pipeline, as its dataset object describes it."""

    id: int
    kind: str = field(name="class")  # "_MapDataset"
    trace_name: str = ""  # "MapDataset:4", the name of its iterators in the trace
    inputs: tuple[int, ...] = ()
    parameters: DatasetParameters = DatasetParameters()
    options: Mapping[str, Setting] | None = None  # of tf.data that were set; None: not recorded
    files: FileList | None = None  # the paths that it yields or reads
    tensors: Count | None = None  # of an element, also those that its text has no room for
    cardinality: int | None = None  # elements; -1 infinite, None unknown
    at: At | None = None
    made_by: str = ""  # the function that this line calls: "map", "image_dataset_from_directory"


class RecordedDataset(AnyDataset[SourceLine]):
    """A stage in the record."""

    function: RecordedFunction | None = None
    element_spec: str = ""  # as text, at most 500 characters


class DebugAid(Record):
    """An aid for debugging that is on."""

    aid: str  # "check_numerics", "functions_eagerly", "data_debug_mode", "op_determinism"
    at: SourceLine | None = None
    ms: Amount = 0.0  # of Python in the checks of the whole window, of operations that Python runs


class MissingLibrary(Record):
    """A library that TensorFlow needs for a GPU and cannot load, and the loader's message."""

    name: str
    why: str = ""


class KernelCache(Record):
    """CUDA's folder of compiled kernels."""

    disabled: bool = False
    nbytes: Count = field(default=0, name="bytes")
    limit: str | None = None  # CUDA_CACHE_MAXSIZE, in bytes
    written: Count = 0  # files since TensorFlow was imported
    seconds: Amount = 0.0  # from then to the last of them


class GpuAccess(Record):
    """What TensorFlow knows of NVIDIA GPUs, and what keeps it from them where it has registered none."""

    registered: Count = 0
    cuda: bool | None = None  # the build has CUDA
    targets: tuple[str, ...] = ()  # that the build has kernels for: "sm_80", "compute_90"
    capabilities: tuple[str, ...] = ()  # of the GPUs: "9.0"
    files: Count | None = None  # device files of GPUs
    readable: bool | None = None  # the process may open one of them
    shown: str | None = None  # CUDA_VISIBLE_DEVICES as the process has it
    package: str = ""  # of a build without CUDA: "tensorflow-cpu 2.21.0"
    driver: str = ""  # its error, or the loader's message
    missing: tuple[MissingLibrary, ...] = ()
    cache: KernelCache | None = None


class RunSettings(Record):
    """The settings of the run; None is unknown."""

    policy: str | None = None
    optimizer: str | None = None
    loss_scale: bool | None = None
    jit_compile: bool | str | None = None  # True, False or "auto"
    run_eagerly: bool | None = None
    steps_per_execution: int | str | None = None
    batch_size: Size | None = None
    fit_at: SourceLine | None = None
    batches_at: SourceLine | None = None  # defines how a PyDataset makes a batch
    epochs: Number | None = None
    steps_per_epoch: Number | None = None
    strategy: str | None = None
    replicas: Size | None = None
    devices: tuple[str, ...] | None = None
    inter_op_threads: Number | None = None  # 0: the program sets none
    intra_op_threads: Number | None = None  # same
    strategy_at: SourceLine | None = None  # made the strategy
    replica_devices: tuple[str, ...] | None = None  # physical, of each replica of this process
    intra_op_at: SourceLine | None = None  # set the threads
    intra_op_variable: str | None = None  # TF_NUM_INTRAOP_THREADS as the process has it
    affinity: Count | None = None  # the processors that the process may run on
    debugging: tuple[DebugAid, ...] | None = None
    backend: str | None = None  # of Keras: "tensorflow", "jax", "torch"
    gpus: GpuAccess | None = None


class SeenPlace(Record):
    """A line that stack samples show, with their number and their times; "" and () are unknown or none."""

    seen: Count
    at: SourceLine | None = None
    callback: str = ""
    looped: Count | None = None  # the line of the loop around the training call that is under way
    makes: bool | None = None  # what that call is given; of older recordings, see `LoopMakers`
    inside: bool = False  # within a training call
    caller: SourceLine | None = None  # the user's line that called the function of ``at``
    calls: str = ""  # the function that ``at`` calls
    runs: str = ""  # the innermost function
    entry: str = ""  # the function of TensorFlow or Keras that called the user's Python for input
    when_us: tuple[Count, ...] = ()  # microseconds since ``began_unix_ns``


class FedArgument(Record):
    """An array among the arguments of the training function."""

    shape: tuple[int, ...] = ()
    new_object: bool = field(default=False, name="anew")  # the next call gets another object
    place: str = ""  # "0", "mask"; within a structure "0.1": the second of the first argument
    kind: str = ""  # "numpy", "pandas", "tensor"; "python": a list
    dtype: str = ""  # as NumPy writes it: "float64"
    same: bool | None = None  # the next call gets the same values; None is not compared, as of tensors
    fed_as: str = ""  # the type of the placeholder of Session.run that it is fed to


class FedCall(Record):
    """The call of the training function or of Session.run, and its arguments."""

    at: SourceLine | None = None
    arguments: tuple[FedArgument, ...] = ()
    function: str = ""  # the name of its calls in the trace; "" is unknown


class PythonRecord(Record):
    """What Python did in and between the training calls."""

    began_unix_ns: Count | None = None
    places: tuple[SeenPlace, ...] = ()
    others: tuple[SeenPlace, ...] | None = None  # of all threads but the trainer's; None: it alone was sampled
    fed: FedCall | None = None
    feeds: FedCall | None = None  # of Session.run


class RecordedSequences(Record):
    """An input of the training whose second dimension may be time."""

    shape: tuple[int, ...]
    lengths: tuple[
        tuple[int, ...], ...
    ]  # of each row of each batch seen: up to the last position that is not `pad`
    dtype: str = ""
    begins: float = 0.0  # the share of rows whose first position is not `pad`
    gaps: float = 0.0  # the share of `pad` before the ends
    batches: bool = False  # the lists are whole batches, else one list is a sample of all data
    leading: bool = False  # the rows were read from their end
    steps: tuple[int, ...] = ()  # positions of the rows of each batch; none in recordings of earlier versions
    pad: int = 0
    mask: bool = False  # all values but `pad` are the same


class ProgramRecord(Record):
    """All that `program.json.gz` holds; `layers` is None if the agent wrote no list."""

    graphs: Annotated[tuple[RecordedGraph, ...], WHOLE] = ()
    layers: Annotated[tuple[RecordedLayer, ...] | None, WHOLE] = None
    metrics: Annotated[tuple[AnyMetric[SourceLine], ...], WHOLE] = ()
    datasets: Annotated[tuple[RecordedDataset, ...], WHOLE] = ()
    feeds: int | None = None
    input_kind: str = ""
    run: RunSettings = RunSettings()
    sequences: tuple[RecordedSequences, ...] | None = None
    python: PythonRecord | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)  # hashes of each file's lines, joined

    def line(self, path: str, number: int) -> str:
        """Return the hash of a line, without the spaces around it; "" where it is not known."""
        digits = self.lines.get(path, "")
        return digits[DIGITS * (number - 1) : DIGITS * number] if number > 0 else ""

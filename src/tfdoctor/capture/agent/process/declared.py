"""What the agent sees of TensorFlow and Keras, and what it replaces there: for the type checker alone.

No module imports this when it runs. The protocols of classes and modules (`IteratorClass`, `ProfilerModule`)
declare each function that the agent replaces; the others declare what it reads of the objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# An object of TensorFlow, Keras or NumPy whose type is not declared here: the border of what is checked.
Foreign: TypeAlias = Any

# What is replaced


class ScopeClass(Protocol):
    """Keras's `name_scope`: entering one names the operations of a layer."""

    __enter__: Callable[[Foreign], object]


class CallbackClass(Protocol):
    """`CheckNumericsCallback`: looks at each operation that Python runs or builds."""

    callback: Callable[..., object]


class NumericsModule(Protocol):
    """`tensorflow.python.debug.lib.check_numerics_callback`."""

    CheckNumericsCallback: CallbackClass
    enable_check_numerics: Callable[..., object]
    disable_check_numerics: Callable[..., object]


class EagerRunModule(Protocol):
    """`tensorflow.python.eager.polymorphic_function.eager_function_run`."""

    run_functions_eagerly: Callable[..., object]


class DebugDataModule(Protocol):
    """`tensorflow.python.data.ops.debug_mode`."""

    enable_debug_mode: Callable[..., object]


class DeterminismModule(Protocol):
    """`tensorflow.python.framework.config`, from TensorFlow 2.8 on."""

    enable_op_determinism: Callable[..., object]
    disable_op_determinism: Callable[..., object]


class ConfigModule(Protocol):
    """`tensorflow.python.framework.config`."""

    set_intra_op_parallelism_threads: Callable[..., object]


class ProfilerModule(Protocol):
    """`tensorflow.python.profiler.profiler_v2`: one profiler a process, which is `_profiler`."""

    start: Callable[..., object]
    stop: Callable[..., object]
    _profiler: object | None
    _pywrap_profiler: Foreign


# What is read


class DType(Protocol):
    """A type of elements."""

    name: str


class TensorShape(Protocol):
    """A `TensorShape`, whose rank may be unknown."""

    rank: int | None

    def as_list(self) -> list[int | None]:
        """Return the sizes; None is unknown."""

    def num_elements(self) -> int | None:
        """Return the number of elements, if it is known."""

    def __getitem__(self, at: int) -> int: ...


class GraphOperation(Protocol):
    """A node of a graph."""

    name: str
    type: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    control_inputs: Sequence[GraphOperation]
    traceback: Traceback | None
    op_def: Foreign
    node_def: Foreign

    def get_attr(self, name: str) -> object:
        """Return the value of an attribute."""


class Tensor(Protocol):
    """A value of a graph, or an eager one."""

    dtype: DType
    shape: TensorShape
    op: GraphOperation

    def numpy(self) -> Foreign:
        """Return the value of an eager tensor: an array, a number or bytes."""

    def __getitem__(self, at: int) -> Tensor: ...


class Traceback(Protocol):
    """Where an operation was made."""

    def __iter__(self) -> Iterator[TracedFrame]: ...


class TracedFrame(Protocol):
    """One frame of it."""

    filename: str
    lineno: int
    name: str


class Graph(Protocol):
    """A graph of operations."""

    name: str

    def get_operations(self) -> Sequence[GraphOperation]:
        """Return all operations, in the order of their making."""

    def get_name_scope(self) -> str:
        """Return the name scope that new operations get."""

    def as_graph_element(self, fetch: object) -> object:
        """Return the operation or tensor that a fetch names."""

    def as_graph_def(self) -> Foreign:
        """Return the graph as a protocol buffer."""


class ConcreteFunction(Protocol):
    """One trace of a tf.function."""

    graph: Graph


class KerasLayer(Protocol):
    """A layer of Keras 2 or 3."""

    name: str

    def get_config(self) -> Mapping[str, object]:
        """Return the settings of the layer."""


class KerasMetric(Protocol):
    """A metric of Keras."""

    name: str


class Model(KerasLayer, Protocol):
    """A model of Keras 2 or 3."""

    steps_per_execution: int
    train_function: Callable[..., object]
    test_function: Callable[..., object]

    def _flatten_layers(self) -> Sequence[KerasLayer]: ...


class Variable(Protocol):
    """A weight of the model, of either Keras or of tf.Module; `shape` is None if unknown."""

    name: str
    shape: Sequence[int] | None
    dtype: object


class TfDataset(Protocol):
    """A stage of a tf.data pipeline."""

    element_spec: object

    def cardinality(self) -> Tensor:
        """Return the number of elements, or a negative code."""

    def options(self) -> object:
        """Return the options that hold up to this stage."""

    def _inputs(self) -> Sequence[TfDataset]: ...
    def _functions(self) -> Sequence[DatasetFunction]: ...


class DatasetFunction(Protocol):
    """The user's function in a stage, and what it was traced to."""

    function: ConcreteFunction
    _func: Foreign


class TraceMarker(Protocol):
    """The profiler's marker of a span; the class makes one of a name and some numbers."""

    def __enter__(self) -> object: ...
    def __exit__(self, kind: object, error: object, trace: object) -> object: ...


class Context(Protocol):
    """The parts of the module `tensorflow.python.eager.context` that the agent calls."""

    def executing_eagerly(self) -> bool:
        """Say whether no graph is being traced."""


class Ops(Protocol):
    """The parts of the module `tensorflow.python.framework.ops` that the agent calls."""

    def get_default_graph(self) -> Graph:
        """Return the graph that is being traced."""


# What the agent is given and writes


class TrialPlan(TypedDict):
    """When a run of a trial has enough."""

    seconds: float  # of training after the warm-up
    steps: int  # of them, at least
    fewest: int  # calls of them without which there is no figure
    most_seconds: float  # of training in all
    warmup: int  # steps
    compare_at: int  # the step before which the weights are compared


class WithoutPlan(TypedDict):
    """The part of the program that a variant of a trial takes out."""

    part: str  # of `without.kinds`
    name: str  # the class of a callback
    at: Sequence[object] | None  # the file and the line of a call, or of the loop that is fed
    length: int | None  # batches of a pass over the data, as recorded


class VariantPlan(TypedDict):
    """What a variant of a trial sets."""

    settings: Mapping[str, int]  # by the agent, in the program
    environment: Mapping[str, str]  # by variables, which are set already
    without: WithoutPlan | None


class AgentPlan(TypedDict, total=False):
    """What tfdoctor asks of the agent."""

    processes: str  # the folder below which each process makes its own
    out: str  # the folder of this process
    steps: int
    warmup: int
    seconds: float | None
    stop_after: bool
    trace: bool  # False: no window opens
    watch_s: float
    trial: TrialPlan | None  # times steps and traces none
    variant: VariantPlan  # of a trial
    changed: Mapping[str, str]  # file: the file with the text to read in its place

"""What the agent sees of TensorFlow and Keras, and what it is given: for the type checker alone.

No module imports this when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Objects, classes and modules of TensorFlow, Keras and NumPy: the border of what is checked. The names say what is
# meant; what these have is up to the versions, and only tests with them tell.
Foreign: TypeAlias = Any

ProfilerModule: TypeAlias = Foreign  # `tensorflow.python.profiler.profiler_v2`

Graph: TypeAlias = Foreign
GraphOperation: TypeAlias = Foreign  # a node of a graph
Tensor: TypeAlias = Foreign  # a value of a graph, or an eager one
Traceback: TypeAlias = Foreign  # where an operation was made
TracedFrame: TypeAlias = Foreign  # one frame of it
ConcreteFunction: TypeAlias = Foreign
KerasLayer: TypeAlias = Foreign
KerasMetric: TypeAlias = Foreign
TfDataset: TypeAlias = Foreign  # a stage of a tf.data pipeline
DatasetFunction: TypeAlias = Foreign  # the user's function in a stage, and what it was traced to


class Model(Protocol):
    """A model of Keras 2 or 3."""

    name: str
    steps_per_execution: int
    train_function: Callable[..., object]

    def _flatten_layers(self) -> Sequence[KerasLayer]: ...


class TraceMarker(Protocol):
    """The profiler's marker of a span; the class makes one of a name and some numbers."""

    def __enter__(self) -> object: ...
    def __exit__(self, kind: object, error: object, trace: object) -> object: ...


# What the agent is given and writes


class TrialPlan(TypedDict):
    """When a run of a trial has enough."""

    seconds: float  # of training after the warm-up
    steps: int  # of them, at least
    fewest: int  # calls of them without which there is no figure
    most_seconds: float  # of training in all
    compare_at: int  # the step before which the weights are compared: reading them ends the warm-up
    limit_s: float  # of the whole run


class WithoutPlan(TypedDict):
    """The part of the program that a variant of a trial takes out."""

    part: str  # a value of `tfdoctor.terms.kinds.Part`
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
    trial: TrialPlan | None  # times steps and traces none
    variant: VariantPlan  # of a trial
    changed: Mapping[str, str]  # file: the file with the text to read in its place

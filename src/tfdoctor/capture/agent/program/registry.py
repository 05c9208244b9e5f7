"""What the run builds, kept by weak references until it is written: graphs, layers, datasets."""

from __future__ import annotations

import functools
import weakref

from ..process import tensorflow_api
from ..process.frames import hide
from ..process.journal import guarded
from ..process.stack import called_here, defined_at, here, way_here
from .chosen import Choices
from .debugging import DebugAids
from .numbering import Numbering
from .padding import SequenceLengths
from .rates import ZeroRates
from .unused_gradients import UnusedGradients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import TypedDict, TypeVar

    from ..process.declared import Foreign, Graph, KerasLayer, KerasMetric, Model, ScopeClass, TfDataset
    from ..process.imports import Hook, Hooks
    from ..process.journal import Journal
    from ..process.stack import Line, Way
    from .layers import Entry

    T = TypeVar("T")

    class FitFacts(TypedDict, total=False):
        """What Keras's fit was given."""

        adapter: str
        batch_size: object
        at: Line | None
        batches_at: Line | None
        epochs: int
        steps_per_epoch: int | None


GRAPHS = "tensorflow.python.framework.func_graph"
# Where Layer lives in Keras 3, in tf_keras, and in Keras 2 from 2.13 on and before.
LAYERS = (
    "keras.src.layers.layer",
    "tf_keras.src.engine.base_layer",
    "keras.src.engine.base_layer",
    "keras.engine.base_layer",
)
SCOPES = "keras.src.backend.tensorflow.core"
OPTIMIZERS = "keras.src.optimizers.base_optimizer"
# Where Metric lives in Keras 3, in tf_keras, and in Keras 2 from 2.13 on and before.
METRICS = (
    "keras.src.metrics.metric",
    "tf_keras.src.metrics.base_metric",
    "keras.src.metrics.base_metric",
    "keras.metrics.base_metric",
)
DATASETS = "tensorflow.python.data.ops.dataset_ops"
STRATEGIES = "tensorflow.python.distribute.distribute_lib"

MOST = 20_000  # A script may make a dataset or a function every step: the dead are dropped from here on


class Registry:
    """The things a script made, each with the line that made it."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.layers: list[Entry] = []
        self.metrics: list[tuple[weakref.ref[KerasMetric], Line | None]] = []
        self.datasets: list[weakref.ref[TfDataset]] = []
        self.numbering = Numbering()
        self.lengths = SequenceLengths(log)
        self.aids = DebugAids(log)
        self.choices = Choices(log)
        self.zero_rates = ZeroRates(log)
        self.unused_gradients = UnusedGradients(log)
        # Of each dataset: its line, the function called there, and all lines on the way to its making.
        self.lines: weakref.WeakKeyDictionary[TfDataset, Line | None] = weakref.WeakKeyDictionary()
        self.makers: weakref.WeakKeyDictionary[TfDataset, str] = weakref.WeakKeyDictionary()
        self.ways: weakref.WeakKeyDictionary[TfDataset, Way] = weakref.WeakKeyDictionary()
        # Of each graph: the layer's name of each name scope.
        self.scopes: weakref.WeakKeyDictionary[Graph, dict[str, str]] = weakref.WeakKeyDictionary()
        self.unseen: weakref.WeakSet[Graph] = weakref.WeakSet()  # traced before we were there
        self.again()

    def again(self) -> None:
        """Note that what is there was made before this recording."""
        self.graphs: list[weakref.ref[Graph]] = []
        self.optimizers: list[weakref.ref[object]] = []
        self.feeds: Callable[[], TfDataset | None] = _nothing  # what feeds the training loop
        self.held: TfDataset | None = None  # lives until the end of fit, where the window may close
        self.model: Callable[[], Model | None] = _nothing
        self.strategy: Callable[[], Foreign] = _nothing  # of a loop over a distributed dataset
        self.trainer: Callable[[], object] = _nothing  # the tf.function that takes the gradients
        self.fit: FitFacts = {}
        self.lengths.again()
        self.unused_gradients.again()
        self.written = False  # nothing more is wanted

    def _remember(self, things: list[weakref.ref[T]], thing: T) -> bool:
        """Keep a weak reference until the program is written; say whether that is to come."""
        if self.written:
            return False
        if len(things) >= MOST:  # made once a step and long dead
            things[:] = [reference for reference in things if reference() is not None]
        things.append(weakref.ref(thing))
        return True

    @guarded("graph")
    def graph_made(self, graph: Graph) -> None:
        """A function is about to be traced, or a session runs a graph."""
        self._remember(self.graphs, graph)

    def alive(self) -> list[Graph]:
        """Return the graphs that are alive, each once: a session's is met with each fetch that trains."""
        graphs = (reference() for reference in self.graphs)
        return list({id(graph): graph for graph in graphs if graph is not None}.values())

    @guarded("optimizer")
    def optimizer_made(self, optimizer: object, rate: object) -> None:
        """An optimizer, for loops that have no model to ask; ``rate`` is the learning rate that it was given."""
        self._remember(self.optimizers, optimizer)
        self.zero_rates.made(optimizer, rate)

    @guarded("dataset")
    def dataset_made(self, dataset: TfDataset) -> None:
        """One stage of a pipeline."""
        if self._remember(self.datasets, dataset):
            self.lines[dataset] = here()
            self.makers[dataset] = called_here()
            self.ways[dataset] = way_here()
            self.numbering.note(dataset)

    @guarded("layer")
    def layer_made(self, layer: KerasLayer) -> None:
        """A layer; lines of all are kept, for a later recording may use them."""
        self.layers.append((weakref.ref(layer), here()))

    @guarded("metric")
    def metric_made(self, metric: KerasMetric) -> None:
        """A metric; lines of all are kept, as of layers."""
        self.metrics.append((weakref.ref(metric), here()))

    @guarded("name scope")
    def scope_entered(self, graph: Graph, layer: str) -> None:
        """A layer got a name scope of a graph: TensorFlow numbers them as they come."""
        if graph not in self.scopes:
            self.scopes[graph] = {}
        self.scopes[graph][graph.get_name_scope()] = layer

    def fitted(self, model: Model, adapter: object, given: Iterable[Foreign], batch_size: object) -> None:
        """Keras's fit is about to begin; `given` are the datasets that may feed it."""
        self.model = weakref.ref(model)
        self.held = next((data for data in given if data in self.lines), None)
        self.feeds = weakref.ref(self.held) if self.held is not None else _nothing
        self.fit = {
            "adapter": type(adapter).__name__,
            "batch_size": batch_size,
            "at": here(),
            "batches_at": _maker(adapter),
        }
        self.lengths.given(adapter)

    def release(self) -> None:
        """The fit is over, and with it what Keras made for it."""
        self.held = None

    def looped(self, iterator: object) -> None:
        """A custom loop over this iterator trains."""
        dataset = dataset_of(iterator)
        if dataset is not None:
            self.feeds = weakref.ref(dataset)
        strategy = getattr(iterator, "_strategy", None)
        if strategy is not None:
            self.strategy = weakref.ref(strategy)

    def trains(self, function: object) -> None:
        """A gradient was taken while this tf.function was traced."""
        self.trainer = weakref.ref(function)

    def dataset_key(self, iterator: object) -> Hashable:
        """Return what stays the same when the loop makes its next iterator."""
        dataset = dataset_of(iterator)
        way = self.ways.get(dataset) if dataset is not None else None
        return (type(dataset).__name__, *way) if way else id(dataset or type(iterator))

    def cardinality(self, iterator: object) -> int:
        """Return how many batches an epoch has; negative when that is not known."""
        dataset = dataset_of(iterator)
        return int(dataset.cardinality().numpy()) if dataset is not None else -2


def _maker(adapter: object) -> Line | None:
    """Return the user's line that defines how a PyDataset, or a Sequence of Keras 2, makes a batch."""
    sets = (getattr(adapter, name, None) for name in ("py_dataset", "_keras_sequence"))
    made = next((one for one in sets if one is not None), None)
    return defined_at(getattr(type(made), "__getitem__", None))


def _nothing() -> None:
    """Return None, as a reference does whose object is gone."""


def dataset_of(iterator: object) -> TfDataset | None:
    """Return the dataset an eager iterator goes over, or None."""
    dataset: TfDataset | None = getattr(iterator, "_dataset", None)
    if dataset is None:
        workers = getattr(iterator, "_iterators", None) or [None]
        dataset = getattr(workers[0], "_dataset", None)
    return dataset


def hooks(registry: Registry) -> Hooks:
    """Return the hooks that notice what is being built."""
    hook: dict[str, list[Hook]] = {
        GRAPHS: [lambda module: _after_init(module.FuncGraph, registry.graph_made)],
        DATASETS: [lambda module: _after_init(module.DatasetV2, registry.dataset_made)],
        OPTIMIZERS: [lambda module: _after_optimizer(module.BaseOptimizer, registry)],
        STRATEGIES: [lambda module: _after_init(module.StrategyBase, registry.choices.strategy_made)],
        SCOPES: [lambda module: _after_enter(module.name_scope, registry)],
    }
    for name in METRICS:
        hook[name] = [lambda module: _after_init(module.Metric, registry.metric_made)]
    for name in LAYERS:
        hook[name] = [lambda module: _after_new(module.Layer, registry)]
    return hook


def _after_init(kind: Foreign, made: Callable[[Foreign], object]) -> None:
    """Note each new object of a class, once it is made."""
    original = kind.__init__

    @functools.wraps(original)
    def __init__(self: object, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs)
        made(self)

    kind.__init__ = hide(__init__)


def _after_optimizer(kind: Foreign, registry: Registry) -> None:
    """Note each new optimizer with the learning rate that it was given."""
    original, own_rate = kind.__init__, kind.learning_rate

    @functools.wraps(original)
    def __init__(self: object, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs)
        # An optimizer around others has their rates, and gives its base one that nothing uses.
        has_rate = type(self).learning_rate is own_rate  # type: ignore[attr-defined] # Keras' property
        given = args[0] if args else kwargs.get("learning_rate")
        registry.optimizer_made(self, given if has_rate else None)

    kind.__init__ = hide(__init__)


def _after_new(kind: Foreign, registry: Registry) -> None:
    """Note each new layer with the line that makes it; `__new__` leaves no frame on the stack."""
    original = kind.__new__

    @functools.wraps(original)
    def __new__(cls: type, *args: object, **kwargs: object) -> object:
        layer = original(cls, *args, **kwargs)
        registry.layer_made(layer)
        return layer

    kind.__new__ = staticmethod(hide(__new__))


def _after_enter(scope: ScopeClass, registry: Registry) -> None:
    """Note which name scope of which graph a layer gets."""
    original, eager = scope.__enter__, tensorflow_api.context().executing_eagerly
    default_graph = tensorflow_api.default_graph()

    @functools.wraps(original)
    def __enter__(self: Foreign) -> object:
        result = original(self)
        if self.caller is not None and not registry.written and not eager():
            registry.scope_entered(default_graph(), self.caller.name)
        return result

    scope.__enter__ = hide(__enter__)

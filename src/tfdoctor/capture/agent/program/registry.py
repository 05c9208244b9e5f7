"""What the run builds, kept by weak references until it is written: graphs, layers, datasets."""

from __future__ import annotations

import functools
import sys
import weakref

from ..process import tensorflow_api
from ..process.frames import hide
from ..process.journal import guarded, quietly
from ..process.kept import time
from ..process.stack import called_here, defined_at, here, way_here
from .choices import CHECKS, DATA_MODE, DETERMINISM, Choices
from .datasets import Numbering
from .gradients import UnusedGradients
from .sequences import SequenceLengths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from ..process.declared import Foreign, Graph, KerasLayer, KerasMetric, Model, TfDataset
    from ..process.imports import Hooks
    from ..process.journal import Journal
    from ..process.stack import Line, Way
    from .layers import Entry

    T = TypeVar("T")
    Told = Callable[[Sequence[Any], Mapping[str, Any], Any], object]  # the arguments of a call, and its result


GRAPHS = "tensorflow.python.framework.func_graph"
DATASETS = "tensorflow.python.data.ops.dataset_ops"
STRATEGIES = "tensorflow.python.distribute.distribute_lib"
CONFIG = "tensorflow.python.framework.config"
NUMERICS = "tensorflow.python.debug.lib.check_numerics_callback"
EAGER_RUN = "tensorflow.python.eager.polymorphic_function.eager_function_run"
DEBUG_DATA = "tensorflow.python.data.ops.debug_mode"
SCOPES = "keras.src.backend.tensorflow.core"
OPTIMIZERS = "keras.src.optimizers.base_optimizer"
# Where Layer lives in Keras 3, in tf_keras, and in Keras 2 from 2.13 on and before.
LAYERS = (
    "keras.src.layers.layer",
    "tf_keras.src.engine.base_layer",
    "keras.src.engine.base_layer",
    "keras.engine.base_layer",
)
# Where Metric lives in Keras 3, in tf_keras, and in Keras 2 from 2.13 on and before.
METRICS = (
    "keras.src.metrics.metric",
    "tf_keras.src.metrics.base_metric",
    "keras.src.metrics.base_metric",
    "keras.metrics.base_metric",
)

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
        self.choices = Choices(log)
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
        self.fit: dict[str, Any] = {}  # what Keras's fit was given
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

    def optimizer_made(self, args: Sequence[Foreign], kwargs: Mapping[str, object]) -> None:
        """An optimizer, for loops that have no model to ask, and the learning rate that it was given."""
        optimizer, *given = args
        self._remember(self.optimizers, optimizer)
        # An optimizer around others has their rates, and gives its base one that nothing uses.
        own_rate = sys.modules[OPTIMIZERS].BaseOptimizer.learning_rate
        rate = given[0] if given else kwargs.get("learning_rate")
        self.choices.optimizer_made(optimizer, rate if type(optimizer).learning_rate is own_rate else None)

    def dataset_made(self, dataset: TfDataset) -> None:
        """One stage of a pipeline."""
        if self._remember(self.datasets, dataset):
            self.lines[dataset] = here()
            self.makers[dataset] = called_here()
            self.ways[dataset] = way_here()
            self.numbering.note(dataset)

    def layer_made(self, layer: KerasLayer) -> None:
        """A layer; lines of all are kept, for a later recording may use them."""
        self.layers.append((weakref.ref(layer), here()))

    def metric_made(self, metric: KerasMetric) -> None:
        """A metric; lines of all are kept, as of layers."""
        self.metrics.append((weakref.ref(metric), here()))

    def scope_entered(self, scope: Foreign) -> None:
        """A layer got a name scope of a graph: TensorFlow numbers them as they come."""
        if scope.caller is None or self.written or tensorflow_api.context().executing_eagerly():
            return
        graph = tensorflow_api.default_graph()()
        if graph not in self.scopes:
            self.scopes[graph] = {}
        self.scopes[graph][graph.get_name_scope()] = scope.caller.name

    def fitted(self, model: Model, adapter: object, given: Iterable[Foreign], batch_size: object) -> None:
        """Keras's fit is about to begin; `given` are the datasets that may feed it."""
        self.model = weakref.ref(model)
        self.held = next((data for data in given if data in self.lines), None)
        self.feeds = weakref.ref(self.held) if self.held is not None else _nothing
        # How a PyDataset, or a Sequence of Keras 2, makes a batch:
        sets = (getattr(adapter, name, None) for name in ("py_dataset", "_keras_sequence"))
        made = next((one for one in sets if one is not None), None)
        self.fit = {
            "adapter": type(adapter).__name__,
            "batch_size": batch_size,
            "at": here(),
            "batches_at": defined_at(getattr(type(made), "__getitem__", None)),
        }
        if not self.written:
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
    """Return the hooks that tell the registry of calls, by module."""
    choices = registry.choices
    # The module, the class ("" of the module's functions), the function, and what is told of its calls.
    rows: list[tuple[str, str, str, Told]] = [
        (GRAPHS, "FuncGraph", "__init__", lambda args, *_: registry.graph_made(args[0])),
        (DATASETS, "DatasetV2", "__init__", lambda args, *_: registry.dataset_made(args[0])),
        (OPTIMIZERS, "BaseOptimizer", "__init__", lambda args, named, _: registry.optimizer_made(args, named)),
        (STRATEGIES, "StrategyBase", "__init__", lambda args, *_: choices.strategy_made(args[0])),
        (SCOPES, "name_scope", "__enter__", lambda args, *_: registry.scope_entered(args[0])),
        (CONFIG, "", "set_intra_op_parallelism_threads", lambda *_: choices.threads_set()),
        (CONFIG, "", "enable_op_determinism", lambda *_: choices.switched(DETERMINISM, on=True)),
        (CONFIG, "", "disable_op_determinism", lambda *_: choices.switched(DETERMINISM, on=False)),
        (NUMERICS, "", "enable_check_numerics", lambda *_: choices.switched(CHECKS, on=True)),
        (NUMERICS, "", "disable_check_numerics", lambda *_: choices.switched(CHECKS, on=False)),
        (EAGER_RUN, "", "run_functions_eagerly", lambda args, named, _: choices.eagerly(*args, **named)),
        (DEBUG_DATA, "", "enable_debug_mode", lambda *_: choices.switched(DATA_MODE, on=True)),
        *((name, "Layer", "__new__", lambda *call: registry.layer_made(call[2])) for name in LAYERS),
        *((name, "Metric", "__init__", lambda args, *_: registry.metric_made(args[0])) for name in METRICS),
    ]
    found: dict[str, list[Callable[[Any], object]]] = {}
    for module, kind, function, told in rows:
        hook = functools.partial(_tell, kind=kind, name=function, told=told, log=registry.log)
        found.setdefault(module, []).append(hook)
    found[NUMERICS].append(lambda module: _time_checks(module.CheckNumericsCallback, choices))
    return found


def _tell(module: Foreign, *, kind: str, name: str, told: Told, log: Journal) -> None:
    """Tell of each call of a function of a module or a class, once it has returned."""
    owner = getattr(module, kind) if kind else module
    original, told = getattr(owner, name), quietly(f"{kind}.{name}", log)(told)

    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> object:
        result = original(*args, **kwargs)
        told(args, kwargs, result)
        return result

    own: Foreign = call
    own.__code__ = own.__code__.replace(co_name=name)
    wrapper = hide(call)
    # `__new__` leaves no frame on the stack.
    setattr(owner, name, staticmethod(wrapper) if name == "__new__" else wrapper)


def _time_checks(kind: Foreign, choices: Choices) -> None:
    """Time the checks of single operations, each of which makes the text of its message beforehand."""
    original = kind.callback

    @functools.wraps(original)
    def callback(self: object, *args: object, **kwargs: object) -> object:
        if not choices.timing:
            return original(self, *args, **kwargs)
        began = time.perf_counter_ns()
        try:
            return original(self, *args, **kwargs)
        finally:
            choices.checking_ns += time.perf_counter_ns() - began

    kind.callback = hide(callback)

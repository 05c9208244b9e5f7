"""What the run builds, kept by weak references until it is written: graphs, layers, datasets."""

import functools
import sys
import weakref

from . import program
from .frames import hide
from .journal import quietly
from .numbering import Numbering
from .stack import here, way_here

GRAPHS = "tensorflow.python.framework.func_graph"
LAYERS = (
    "keras.src.layers.layer",
    "tf_keras.src.engine.base_layer",
    "keras.src.engine.base_layer",
    "keras.engine.base_layer",
)
"""Where Layer lives in Keras 3, in tf_keras, and in Keras 2 from 2.13 on and before."""
SCOPES = "keras.src.backend.tensorflow.core"
OPTIMIZERS = "keras.src.optimizers.base_optimizer"
DATASETS = "tensorflow.python.data.ops.dataset_ops"

CONTEXT = "tensorflow.python.eager.context"
"""Without it the script has no TensorFlow; importing one at its end would be a crash of ours."""

MOST = 20_000
"""A script may make a dataset or a function every step: the dead are dropped from here on."""


class Registry:
    """The things a script made, each with the line that made it."""

    def __init__(self, log):
        self.log = log
        self.graphs, self.layers, self.datasets, self.optimizers = [], [], [], []
        self.numbering = Numbering()
        self.earlier = None  # what there was when a recording began within the process
        self.lines = weakref.WeakKeyDictionary()  # dataset: its line
        self.ways = weakref.WeakKeyDictionary()  # dataset: all lines on the way to its making
        self.scopes = weakref.WeakKeyDictionary()  # graph: {name scope: layer's name}
        self.feeds = lambda: None  # the dataset that feeds the training loop
        self.held = None  # lives until the end of fit, where the window may close
        self.model = lambda: None
        self.strategy = lambda: None  # of a loop over a distributed dataset
        self.trainer = lambda: None  # the tf.function that takes the gradients
        self.fit = {}
        self.python = dict  # describes where Python was between the calls: set by the window
        self.written = False  # nothing more is wanted
        self.described = False

    # What the hooks tell

    def _remember(self, things, thing):
        """Keep a weak reference until the program is written; say whether that is to come."""
        if self.written:
            return False
        if len(things) >= MOST:  # made once a step and long dead
            things[:] = [reference for reference in things if reference() is not None]
        things.append(weakref.ref(thing))
        return True

    def graph_made(self, graph):
        """A function is about to be traced."""
        self._remember(self.graphs, graph)

    def optimizer_made(self, optimizer):
        """An optimizer, for loops that have no model to ask."""
        self._remember(self.optimizers, optimizer)

    def dataset_made(self, dataset):
        """One stage of a pipeline."""
        if self._remember(self.datasets, dataset):
            self.lines[dataset] = here()
            self.ways[dataset] = way_here()
            self.numbering.note(dataset)

    def fitted(self, model, adapter, given, batch_size):
        """Keras's fit is about to begin; `given` are the datasets it may be fed by."""
        self.model = weakref.ref(model)
        self.held = next((data for data in given if data in self.lines), None)
        self.feeds = weakref.ref(self.held) if self.held is not None else lambda: None
        self.fit = {
            "adapter": type(adapter).__name__,
            "batch_size": batch_size,
            "at": here(),
        }

    def release(self):
        """The fit is over, and with it what Keras made for it."""
        self.held = None

    def looped(self, iterator):
        """A custom loop over this iterator trains."""
        dataset = dataset_of(iterator)
        if dataset is not None:
            self.feeds = weakref.ref(dataset)
        strategy = getattr(iterator, "_strategy", None)
        if strategy is not None:
            self.strategy = weakref.ref(strategy)

    def trains(self, function):
        """A gradient was taken while this tf.function was traced."""
        self.trainer = weakref.ref(function)

    def dataset_key(self, iterator):
        """Return what stays the same when the loop makes its next iterator."""
        dataset = dataset_of(iterator)
        way = self.ways.get(dataset) if dataset is not None else None
        return (type(dataset).__name__, *way) if way else id(dataset or type(iterator))

    def cardinality(self, iterator):
        """Return how many batches an epoch has; negative when that is not known."""
        dataset = dataset_of(iterator)
        return int(dataset.cardinality().numpy()) if dataset is not None else -2

    def describe(self, *, last):
        """Write the program as it is now: after each window that is kept."""
        if self.written or not self.log.ours() or CONTEXT not in sys.modules:
            return
        self.described = True
        self.written = last
        if self.earlier is not None:
            self.earlier.complete()
        quietly("program", self.log)(program.write)(self)

    def write(self):
        """The run is over: describe it, unless its traced window was, while all of it was alive."""
        if not self.described:
            self.describe(last=True)

    def again(self):
        """Another recording begins: what there is, is now of earlier."""
        self.graphs, self.optimizers = [], []
        self.written = self.described = False
        self.feeds = self.model = self.strategy = self.trainer = lambda: None
        self.held, self.fit = None, {}


def dataset_of(iterator):
    """Return the dataset an eager iterator goes over, or None."""
    dataset = getattr(iterator, "_dataset", None)
    if dataset is None:
        workers = getattr(iterator, "_iterators", None) or [None]
        dataset = getattr(workers[0], "_dataset", None)
    return dataset


def hooks(window):
    """Return the hooks that notice what is being built."""
    registry = window.registry

    def graph(module):
        _after_init(module.FuncGraph, "graph", registry, registry.graph_made)

    def dataset(module):
        _after_init(module.DatasetV2, "dataset", registry, registry.dataset_made)

    def optimizer(module):
        _after_init(module.BaseOptimizer, "optimizer", registry, registry.optimizer_made)

    def layer(module):
        _after_new(module.Layer, registry.log, registry.layers)

    def scope(module):
        _after_enter(module.name_scope, registry)

    return {
        GRAPHS: [graph],
        DATASETS: [dataset],
        OPTIMIZERS: [optimizer],
        **{name: [layer] for name in LAYERS},
        SCOPES: [scope],
    }


def _after_init(kind, where, registry, made):
    """Note each new object of a class, once it is made."""
    original, note = kind.__init__, quietly(where, registry.log)(made)

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        note(self)

    kind.__init__ = hide(__init__)


def _after_new(kind, log, found):
    """Note each new layer with the line that makes it; `__new__` leaves no frame on the stack."""
    original = kind.__new__

    @quietly("layer", log)
    def note(layer):
        found.append((weakref.ref(layer), here()))

    @functools.wraps(original)
    def __new__(cls, *args, **kwargs):
        layer = original(cls, *args, **kwargs)
        note(layer)
        return layer

    kind.__new__ = staticmethod(hide(__new__))


def _after_enter(scope, registry):
    """Note which name scope of which graph a layer gets: TensorFlow numbers them as they come."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    original, eager = scope.__enter__, context.executing_eagerly

    @quietly("name scope", registry.log)
    def note(caller):
        graph = ops.get_default_graph()
        if graph not in registry.scopes:
            registry.scopes[graph] = {}
        registry.scopes[graph][graph.get_name_scope()] = caller.name

    @functools.wraps(original)
    def __enter__(self):
        result = original(self)
        if self.caller is not None and not registry.written and not eager():
            note(self.caller)
        return result

    scope.__enter__ = hide(__enter__)

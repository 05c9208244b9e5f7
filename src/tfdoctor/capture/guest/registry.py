"""What the run builds, kept by weak references until it is written: graphs, layers, datasets."""

import functools
import weakref

from .journal import quietly
from .stack import here

GRAPHS = "tensorflow.python.framework.func_graph"
LAYERS = "keras.src.layers.layer"
SCOPES = "keras.src.backend.tensorflow.core"
DATASETS = "tensorflow.python.data.ops.dataset_ops"


class Registry:
    """The things a script made, each with the line that made it."""

    def __init__(self, log):
        self.log = log
        self.graphs, self.layers, self.datasets = [], [], []
        self.lines = weakref.WeakKeyDictionary()  # dataset: its line
        self.scopes = weakref.WeakKeyDictionary()  # graph: {name scope: layer's name}
        self.feeds = lambda: None  # the dataset that feeds the training loop
        self.model = lambda: None
        self.fit = {}
        self.written = False

    # What the hooks tell

    def fitted(self, model, epochs, local):
        """Keras's fit is about to begin."""
        adapter = epochs.data_adapter
        self.model = weakref.ref(model)
        self.feeds = weakref.ref(epochs._distributed_dataset)
        self.fit = {
            "adapter": type(adapter).__name__,
            "batch_size": adapter.batch_size,
            "at": here(),
        }

    def looped(self, iterator):
        """A custom loop over this iterator trains."""
        dataset = dataset_of(iterator)
        if dataset is not None:
            self.feeds = weakref.ref(dataset)

    def dataset_key(self, iterator):
        """Return what stays the same when the loop makes its next iterator."""
        dataset = dataset_of(iterator)
        line = self.lines.get(dataset) if dataset is not None else None
        return (type(dataset).__name__, *line) if line else id(dataset or type(iterator))

    def cardinality(self, iterator):
        """Return how many batches an epoch has; negative when that is not known."""
        dataset = dataset_of(iterator)
        return int(dataset.cardinality().numpy()) if dataset is not None else -2

    def write(self, window):
        """Write the program once: after the window, or at the end of a run without one."""
        if self.written or not self.log.ours():
            return
        self.written = True
        from .program import write

        quietly("program", self.log)(write)(self, window)


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

    def patch_graphs(module):
        _after_init(module.FuncGraph, "graph", registry.log, registry.graphs)

    def patch_datasets(module):
        _after_init(module.DatasetV2, "dataset", registry.log, registry.datasets, registry.lines)

    def patch_layers(module):
        _after_new(module.Layer, registry.log, registry.layers)

    def patch_scopes(module):
        _after_enter(module.name_scope, registry)

    return {
        GRAPHS: [patch_graphs],
        DATASETS: [patch_datasets],
        LAYERS: [patch_layers],
        SCOPES: [patch_scopes],
    }


def _after_init(kind, where, log, found, lines=None):
    """Note each new object of a class, once it is made."""
    original = kind.__init__

    @quietly(where, log)
    def note(thing):
        found.append(weakref.ref(thing))
        if lines is not None:
            lines[thing] = here()

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        note(self)

    kind.__init__ = __init__


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

    kind.__new__ = staticmethod(__new__)


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
        if not eager() and self.caller is not None:
            note(self.caller)
        return result

    scope.__enter__ = __enter__

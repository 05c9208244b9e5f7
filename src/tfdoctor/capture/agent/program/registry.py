"""What the run builds, kept by weak references until it is written: graphs, layers, datasets."""

from __future__ import annotations

import weakref

from ..process import tensorflow_api
from ..process.journal import guarded, quietly
from ..process.stack import called_here, defined_at, here, way_here
from .choices import CHECKS, DATA_MODE, DETERMINISM, EAGERLY, Choices
from .datasets import UNKNOWN, Numbering
from .given import Given
from .gradients import UnusedGradients

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from types import FrameType
    from typing import Any, TypeVar

    from ..process.declared import Foreign, Graph, KerasMetric, Model, TfDataset
    from ..process.journal import Journal
    from ..process.stack import Line
    from ..stream import Args, Held, Kwargs, Stream
    from .datasets import Made
    from .layers import Entry

    T = TypeVar("T")


MOST = 20_000  # A script may make a dataset or a function every step: the dead are dropped from here on


class Registry:
    """The things a script made, each with the line that made it."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.layers: list[Entry] = []
        self.metrics: list[tuple[weakref.ref[KerasMetric], Line | None]] = []
        self.datasets: list[weakref.ref[TfDataset]] = []
        self.numbering = Numbering()
        self.given = Given(log)
        self.choices = Choices(log)
        self.unused_gradients = UnusedGradients(log)
        # Of each dataset: its line, the function called there, and all lines on the way to its making.
        self.made: weakref.WeakKeyDictionary[TfDataset, Made] = weakref.WeakKeyDictionary()
        # Of each graph: the layer's name of each name scope.
        self.scopes: weakref.WeakKeyDictionary[Graph, dict[str, str]] = weakref.WeakKeyDictionary()
        self.unseen: weakref.WeakSet[Graph] = weakref.WeakSet()  # traced before we were there
        self.again()

    def again(self) -> None:
        """Note that what is there was made before this recording."""
        self.graphs: list[weakref.ref[Graph]] = []
        self.optimizers: list[weakref.ref[object]] = []  # for loops that have no model to ask
        self.feeds: Callable[[], TfDataset | None] = lambda: None  # what feeds the training loop
        self.held: TfDataset | None = None  # lives until the end of fit, where the window may close
        self.model: Callable[[], Model | None] = lambda: None
        self.strategy: Callable[[], Foreign] = lambda: None  # of a loop over a distributed dataset
        self.trainer: Callable[[], object] = lambda: None  # the tf.function that takes the gradients
        self.fit: dict[str, Any] = {}  # what Keras's fit was given
        self.given.again()
        self.unused_gradients.again()
        self.written = False  # nothing more is wanted

    def remember(self, things: list[weakref.ref[T]], thing: T) -> bool:
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
        self.remember(self.graphs, graph)

    def dataset_made(self, dataset: TfDataset) -> None:
        """One stage of a pipeline."""
        if self.remember(self.datasets, dataset):
            self.made[dataset] = here(), called_here(), way_here()
            self.numbering.note(dataset)

    def scope_entered(self, scope: Foreign) -> None:
        """A layer got a name scope of a graph: TensorFlow numbers them as they come."""
        if scope.caller is None or self.written or tensorflow_api.context().executing_eagerly():
            return
        graph = tensorflow_api.of_tensorflow("framework.ops").get_default_graph()
        if graph not in self.scopes:
            self.scopes[graph] = {}
        self.scopes[graph][graph.get_name_scope()] = scope.caller.name

    def fitted(self, model: Model, adapter: object, given: Iterable[Foreign], batch_size: object) -> None:
        """Keras's fit is about to begin; `given` are the datasets that may feed it."""
        self.model = weakref.ref(model)
        self.held = next((data for data in given if data in self.made), None)
        self.feeds = (lambda: None) if self.held is None else weakref.ref(self.held)
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
            self.given.fit(adapter)

    def looped(self, iterator: object) -> None:
        """A custom loop over this iterator trains."""
        dataset = dataset_of(iterator)
        if dataset is not None:
            self.feeds = weakref.ref(dataset)
        strategy = getattr(iterator, "_strategy", None)
        if strategy is not None:
            self.strategy = weakref.ref(strategy)

    def dataset_key(self, iterator: object) -> Hashable:
        """Return what stays the same when the loop makes its next iterator."""
        dataset = dataset_of(iterator)
        _, _, way = self.made.get(dataset, UNKNOWN) if dataset is not None else UNKNOWN
        return (type(dataset).__name__, *way) if way else id(dataset or type(iterator))

    def cardinality(self, iterator: object) -> int:
        """Return how many batches an epoch has; negative when that is not known."""
        dataset = dataset_of(iterator)
        return int(dataset.cardinality().numpy()) if dataset is not None else -2


def dataset_of(iterator: object) -> TfDataset | None:
    """Return the dataset an eager iterator goes over, or None."""
    dataset: TfDataset | None = getattr(iterator, "_dataset", None)
    if dataset is None:
        workers = getattr(iterator, "_iterators", None) or [None]
        dataset = getattr(workers[0], "_dataset", None)
    return dataset


def listen(stream: Stream, registry: Registry) -> None:
    """Have the registry hear of what is made and of what is chosen, once it is."""
    choices = registry.choices

    def after(event: str, told: Callable[..., object]) -> None:
        careful = quietly(event.removesuffix(" made"), registry.log)(told)

        def leave(call: tuple[Args, Kwargs], result: object, error: BaseException | None) -> None:
            if error is None:
                careful(*call, result)

        def enter(held: Held, args: Args, kwargs: Kwargs, _: FrameType) -> None:
            held.append((leave, (args, kwargs)))

        stream.on(event, lambda _: enter)

    after("graph made", lambda args, *_: registry.graph_made(args[0]))
    after("dataset made", lambda args, *_: registry.dataset_made(args[0]))
    # Lines of all layers and metrics are kept: a later recording may use them.
    after("layer made", lambda *call: registry.layers.append((weakref.ref(call[2]), here())))
    after("metric made", lambda args, *_: registry.metrics.append((weakref.ref(args[0]), here())))
    after("optimizer made", lambda args, *_: registry.remember(registry.optimizers, args[0]))
    after("strategy made", lambda args, *_: choices.strategies.update({args[0]: here()}))
    after("name scope", lambda args, *_: registry.scope_entered(args[0]))
    after("threads set", lambda *_: setattr(choices, "threads", here()))
    after("eager functions", lambda args, kwargs, _: choices.switched(EAGERLY, on=(*args, *kwargs.values())[0]))
    after("debug mode", lambda *_: choices.switched(DATA_MODE, on=True))
    for aid, event in ((CHECKS, "checks"), (DETERMINISM, "determinism")):
        after(f"{event} on", lambda *_, aid=aid: choices.switched(aid, on=True))
        after(f"{event} off", lambda *_, aid=aid: choices.switched(aid, on=False))
    stream.on("check", lambda _: choices.check)

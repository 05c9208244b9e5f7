"""What the training is given, in its first batches and calls: which arrays, and how long their sequences are."""

from __future__ import annotations

import itertools
import sys
import weakref

from ..process.journal import guarded, quietly
from ..process.objects import leaves
from ..process.stack import user_file, user_frame
from ..process.tensorflow_api import of_tensorflow, on_host
from . import sequences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import CodeType
    from typing import Any

    from ..process.declared import Foreign, Graph, TfDataset
    from ..process.journal import Journal
    from .sequences import Entry, Inputs

MOST_LEAVES = 64  # Arrays of a nested structure to look at: one of thousands would take longer than the call
DEEPEST = 4  # Levels of a nested structure to look into
COMPARED = 4096  # Elements of an array that are compared, evenly spread: 10 to 20 microseconds, however large it is
BATCHES = 4  # Batches, and calls, whose sequences are looked at, before the window opens
SIZES = 8  # Batches of a loop whose examples are counted in a trial, before its steps are timed


class Given:
    """The sequences in first batches and calls, and the arrays of two calls just before the window, or in it."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.prepared: object = None  # the loop whose window may open next
        self.source: object = None  # whose calls are of interest
        self.compares = False  # the arrays of its next call are of interest
        self.sizes: list[int] | None = None  # of a trial: takes the number of examples of a batch
        self._forget()
        self.again()

    def again(self) -> None:
        """Forget what the recording before has measured."""
        self.left = self.calls_left = BATCHES if self.sizes is None else 0
        self.asks = self.calls_left > 0  # to be told of calls
        self.seen: Inputs = {}
        self.called: Inputs = {}
        self.arrays: list[Entry] = []

    def _forget(self) -> None:
        self.code: CodeType | None = None  # of the user's function that calls
        # The first of the two calls: its line, and the function's name in the trace, "" where Keras calls it.
        self.first_call: dict[str, Any] | None = None
        self.begun = False  # a window has opened at a step
        self.session = False  # the call is one of Session.run
        # References to the arrays, with some of their values, until the second call:
        self.first: Sequence[tuple[Callable[[], object], bytes | None]] | None = None

    @property
    def noted(self) -> dict[str, Any] | None:
        """The first call of a function, where it was followed by a window."""
        return self.first_call if self.begun and not self.session else None

    @property
    def feeds(self) -> dict[str, Any] | None:
        """The first call of Session.run, where it was followed by a window."""
        return self.first_call if self.begun and self.session else None

    def prepare(self, source: object) -> None:
        """A window of this loop may open two calls later: these are of interest."""
        self._forget()
        self.prepared = self.source = source
        self.compares = self.asks = True

    def begin(self, source: object) -> None:
        """A window opens: its first two calls are of interest, unless those before it were noted."""
        if self.prepared is not source:
            self.prepare(source)
        self.prepared, self.begun = None, True

    # Calls

    def call(
        self, args: Sequence[object], kwargs: Mapping[str, object], function: object = None, *, waits: bool
    ) -> None:
        """A call that trains is given this; `waits` says that no window is open."""
        if self.compares:
            self._compare(args, kwargs, function)
        self._called(args, kwargs, waits=waits)

    def fed(self, source: object, graph: Graph, feeds: object, *, waits: bool) -> None:
        """A call of Session.run that trains is fed this."""
        if self.compares and self.source is source:
            self._compare_feeds(graph, feeds if isinstance(feeds, dict) else {})
        self._called(feeds, waits=waits)

    @guarded("sequence lengths")
    def _called(self, *given: object, waits: bool) -> None:
        if self.calls_left and waits:
            self.calls_left -= 1
            sequences.add(self.called, given)
        self.asks = self.compares or self.calls_left > 0

    @guarded("arguments")
    def _compare(self, args: Sequence[object], kwargs: Mapping[str, object], function: object = None) -> None:
        named = [*enumerate(args), *kwargs.items()]
        found = (each for place, value in named for each in _arrays(value, str(place)))
        given = list(itertools.islice(found, MOST_LEAVES))
        values = [(_reference(value), _values(value)) for _, value in given]
        if self.first is None:
            self.first, frame = values, user_frame(sys._getframe(1))
            if frame is not None:
                self.code = frame.f_code
                self.first_call = {
                    "at": (user_file(frame.f_code.co_filename), frame.f_lineno),
                    "function": str(getattr(function, "_name", "")),
                    "arguments": [_described(place, value) for place, value in given],
                }
            return
        self.compares = False
        if self.first_call is not None and len(values) == len(self.first):
            for argument, before, now in zip(self.first_call["arguments"], self.first, values):  # noqa: B905
                argument["anew"] = now[0]() is not before[0]()  # another object
                if now[1] is not None:
                    argument["same"] = now[1] == before[1]  # the values, as far as they are compared
        self.first = None

    @guarded("arguments")
    def _compare_feeds(self, graph: Graph, feeds: Mapping[object, object]) -> None:
        """Note arrays by the name of their placeholder, and what is no array."""
        placeholders: list[tuple[Foreign, object]] = [
            (graph.as_graph_element(key), value)
            for key, value in feeds.items()
            if isinstance(key, str) or hasattr(key, "value_index")  # else a structure of tensors
        ]
        self.session = True
        self._compare((), {tensor.op.name: value for tensor, value in placeholders})
        if self.first_call is not None and self.first is not None:
            types = {tensor.op.name: tensor.dtype.name for tensor, _ in placeholders}
            for argument in self.first_call["arguments"]:
                argument["fed_as"] = types.get(argument["place"], "")
            self.first_call["arguments"] += [
                {"place": tensor.op.name, "kind": "python"}
                for tensor, value in placeholders
                if isinstance(value, (list, tuple))
            ]

    # Batches

    def ask_size(self, into: list[int], *, more: bool) -> None:
        """Add the number of examples of the batch that comes next, where there is time for `more`; a trial asks."""
        self.sizes, self.left = into, int(more and len(into) < SIZES)
        self.calls_left, self.asks = 0, False

    def wants(self, specs: Iterable[Foreign]) -> bool:
        """Say whether batches of these types are worth to be taken before fit takes them."""
        if self.sizes is not None:
            return all(type(spec).__name__ == "TensorSpec" for spec in specs)
        return sequences.any_in(specs)

    @guarded("sequence lengths")
    def batch(self, batch: object) -> None:
        """Look at a batch of a loop over a dataset, or of one that fit was given."""
        self.left -= 1
        if self.sizes is None:
            sequences.add(self.seen, batch)
            return
        shapes: Iterable[Foreign] = (getattr(value, "shape", None) or () for value in leaves(batch))
        size = next((shape[0] for shape in shapes if len(shape)), None)
        self.sizes += [] if size is None else [int(size)]

    def passed(self, iterator: Foreign, calls: int, k: int) -> object:
        """Return what to give to the compiled function of fit: an iterator over a batch that was seen, or its own.

        A copy of the dataset would run the user's generators and draw random numbers a second time. So the batch
        that comes next is taken from the fit's own iterator, and the function gets one over that batch alone: it
        trains on the same values in the same order. That is made of raw operations, so that no dataset appears
        that the user did not make.

        Raises:
            Exception: what making the batch raises, as it would inside the compiled function.
        """
        if not self._is_of_interest(iterator, calls, k):
            return iterator
        ready = self._prepared(iterator)
        if ready is None:
            return iterator
        single, end = ready
        try:
            batch = iterator._next_internal()
        except end:  # the data has ended
            return iterator
        self.batch(batch)
        return quietly("batches of fit", self.log)(single)(batch) or iterator

    @guarded("batches of fit")
    def _is_of_interest(self, iterator: Foreign, calls: int, k: int) -> bool:
        """Say whether to take the next batch: one call is one step, which is not the first, for that is traced.

        Its tensors have to lie in the host's memory, and to be of interest.
        """
        if k != 1 or calls <= 1:
            return False
        tensorflow: Foreign = sys.modules["tensorflow"]
        specs = tensorflow.nest.flatten(getattr(iterator, "element_spec", None))
        plain = bool(specs) and all(isinstance(spec, tensorflow.TensorSpec) for spec in specs)
        device = getattr(getattr(iterator, "_iterator_resource", None), "device", "")
        near = device.rpartition("device:")[2].startswith("CPU")
        return near and plain and self.wants(specs)

    @guarded("batches of fit")
    def _prepared(self, source: Foreign) -> tuple[Callable[[object], object], type[Exception]]:
        """Prepare all that may fail before the batch is taken; return what makes an iterator over it."""
        ops, structure = of_tensorflow("ops.gen_dataset_ops"), of_tensorflow("data.util.structure")
        kind = of_tensorflow("data.ops.iterator_ops").OwnedIterator
        spec = source.element_spec
        shapes = structure.get_flat_tensor_shapes(spec)
        with on_host():
            resource = ops.anonymous_iterator_v3(
                output_types=structure.get_flat_tensor_types(spec), output_shapes=shapes
            )

        def single(batch: object) -> object:
            with on_host():
                tensors = structure.to_tensor_list(spec, batch)
                dataset = ops.tensor_dataset(components=tensors, output_shapes=shapes)
                ops.make_iterator(dataset, resource)
            return kind(components=[resource], element_spec=spec)

        return single, of_tensorflow("framework.errors").OutOfRangeError

    @guarded("sequence lengths")
    def fit(self, adapter: object) -> None:
        """Look at the arrays that Keras's fit was given."""
        arrays = (getattr(array, "array", array) for array in leaves(getattr(adapter, "_inputs", None)))
        self.arrays = list(sequences.sampled(arrays))

    def describe(self, dataset: TfDataset | None) -> list[Entry]:
        """Return the sequences of calls, else of batches, of fit's arrays, or of those that a dataset slices."""
        found = list((self.called or self.seen).values())
        return found or self.arrays or ([] if dataset is None else sequences.of_slices(dataset))


def _arrays(value: object, place: str, depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield the arrays of a nested structure, in TensorFlow's order: a dictionary's by its sorted keys."""
    if hasattr(value, "dtype") or _package(value) == "pandas":
        if len(getattr(value, "shape", ())) > 0:
            yield place, value
    elif depth < DEEPEST and isinstance(value, (list, tuple, dict)) and len(value) <= MOST_LEAVES:
        keys = sorted(value, key=str) if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from _arrays(value[key], f"{place}.{key}", depth + 1)


def _reference(value: object) -> Callable[[], object]:
    """Return what finds an array again, and does not keep it alive where that is possible."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def _values(value: Foreign) -> bytes | None:
    """Return some of the values that the host holds, to be compared; None of a tensor's."""
    if _package(value) == "pandas":
        value = value.values
    if _package(value) != "numpy":
        return None
    step = -(-value.size // COMPARED) or 1
    some: bytes = value.flat[::step].tobytes()
    return some


def _package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _described(place: str, value: Foreign) -> dict[str, Any]:
    """Return what is noted of an array; its place is "0", "mask", or "0.1": the second part of the first one."""
    package = _package(value)
    kind = package if package in {"numpy", "pandas"} else "tensor"
    dtype = value.dtype if hasattr(value, "dtype") else value.values.dtype
    shape = [int(n) for n in value.shape]
    return {"place": place, "kind": kind, "dtype": str(dtype), "shape": shape}

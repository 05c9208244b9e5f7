"""Batches that Keras's fit takes inside its compiled function: each is taken first, seen, and passed on.

A copy of the dataset would run the user's generators and draw random numbers a second time. So the batch
that comes next is taken from the fit's own iterator, and the compiled function gets an iterator over that batch
alone: it trains on the same values in the same order.
"""

from __future__ import annotations

from ..process import tensorflow_api
from ..process.journal import guarded
from .tracing import WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import Foreign
    from ..program.sequences import SequenceLengths
    from .window import TraceWindow


class PassedBatches:
    """Takes a few batches of a fit before its traced window."""

    def __init__(self, window: TraceWindow, lengths: SequenceLengths) -> None:
        self.window, self.lengths, self.log = window, lengths, window.log

    @guarded("batches of fit")
    def wanted(self, iterator: Foreign, calls: int, k: int) -> bool:
        """Say whether to take the next batch: one call is one step, which is not the first, for that is traced.

        Its tensors have to lie in the host's memory, and to be of interest.
        """
        waiting = self.lengths.left > 0 and self.window.state is WAITING
        if not waiting or k != 1 or calls <= 1:
            return False
        specs = tensorflow_api.flat_specs(getattr(iterator, "element_spec", None))
        device = getattr(getattr(iterator, "_iterator_resource", None), "device", "")
        on_host = device.rpartition("device:")[2].startswith("CPU")
        return on_host and bool(specs) and self.lengths.wants(specs)

    def passed(self, iterator: Foreign, calls: int, k: int) -> object:
        """Return what to give to the compiled function: an iterator over a batch that was seen, or the given one.

        Raises:
            Exception: what making the batch raises, as it would inside the compiled function.
        """
        return self.next(iterator) if self.wanted(iterator, calls, k) else iterator

    def next(self, iterator: Foreign) -> object:
        """Return an iterator over the next batch alone; the given one where the data has ended.

        Raises:
            Exception: what making the batch raises, as it would inside the compiled function.
        """
        single = self._single(iterator)
        if single is None or not single.take():
            return iterator
        self.lengths.batch(single.batch)
        return self._iterator(single) or iterator

    @guarded("batches of fit")
    def _single(self, iterator: Foreign) -> SingleBatch:
        return SingleBatch(iterator)

    @guarded("batches of fit")
    def _iterator(self, single: SingleBatch) -> object:
        return single.iterator()


class SingleBatch:
    """The next batch of an iterator, in an iterator of its own.

    That is made of raw operations, so that no dataset appears that the user did not make.
    """

    def __init__(self, source: Foreign) -> None:
        """Prepare all that may fail before the batch is taken."""
        self.source, self.batch = source, None
        self.ops, self.kind, self.structure, self.end = tensorflow_api.iterator_parts()
        spec = source.element_spec
        self.shapes = self.structure.get_flat_tensor_shapes(spec)
        with tensorflow_api.on_host():
            self.resource = self.ops.anonymous_iterator_v3(
                output_types=self.structure.get_flat_tensor_types(spec), output_shapes=self.shapes
            )

    def take(self) -> bool:
        """Take the batch; False if the data has ended."""
        try:
            self.batch = self.source._next_internal()
        except self.end:
            return False
        return True

    def iterator(self) -> object:
        """Return an iterator over the batch."""
        spec = self.source.element_spec
        with tensorflow_api.on_host():
            tensors = self.structure.to_tensor_list(spec, self.batch)
            dataset = self.ops.tensor_dataset(components=tensors, output_shapes=self.shapes)
            self.ops.make_iterator(dataset, self.resource)
        result: object = self.kind(components=[self.resource], element_spec=spec)
        return result

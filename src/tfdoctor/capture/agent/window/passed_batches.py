"""Batches that Keras's fit takes inside its compiled function: each is taken first, seen, and passed on.

A copy of the dataset would run the user's generators and draw random numbers a second time. So the batch
that comes next is taken from the fit's own iterator, and the compiled function gets an iterator over that batch
alone: it trains on the same values in the same order. That iterator is made of raw operations, so that no dataset
appears that the user did not make.
"""

from __future__ import annotations

from ..process import tensorflow_api
from ..process.journal import guarded
from .window import WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..process.declared import Foreign
    from ..program.given import Given
    from .window import TraceWindow


class PassedBatches:
    """Takes a few batches of a fit before its traced window."""

    def __init__(self, window: TraceWindow, given: Given) -> None:
        self.window, self.given, self.log = window, given, window.log

    def passed(self, iterator: Foreign, calls: int, k: int) -> object:
        """Return what to give to the compiled function: an iterator over a batch that was seen, or the given one.

        Raises:
            Exception: what making the batch raises, as it would inside the compiled function.
        """
        if not self._wanted(iterator, calls, k):
            return iterator
        ready = self._prepared(iterator)
        if ready is None:
            return iterator
        single, end = ready
        try:
            batch = iterator._next_internal()
        except end:  # the data has ended
            return iterator
        self.given.batch(batch)
        return self._over(single, batch) or iterator

    @guarded("batches of fit")
    def _wanted(self, iterator: Foreign, calls: int, k: int) -> bool:
        """Say whether to take the next batch: one call is one step, which is not the first, for that is traced.

        Its tensors have to lie in the host's memory, and to be of interest.
        """
        waiting = self.given.left > 0 and self.window.state is WAITING
        if not waiting or k != 1 or calls <= 1:
            return False
        specs = tensorflow_api.flat_specs(getattr(iterator, "element_spec", None))
        device = getattr(getattr(iterator, "_iterator_resource", None), "device", "")
        on_host = device.rpartition("device:")[2].startswith("CPU")
        return on_host and bool(specs) and self.given.wants(specs)

    @guarded("batches of fit")
    def _prepared(self, source: Foreign) -> tuple[Callable[[object], object], type[Exception]]:
        """Prepare all that may fail before the batch is taken; return what makes an iterator over it."""
        ops, kind, structure, end = tensorflow_api.iterator_parts()
        spec = source.element_spec
        shapes = structure.get_flat_tensor_shapes(spec)
        with tensorflow_api.on_host():
            resource = ops.anonymous_iterator_v3(
                output_types=structure.get_flat_tensor_types(spec), output_shapes=shapes
            )

        def single(batch: object) -> object:
            with tensorflow_api.on_host():
                tensors = structure.to_tensor_list(spec, batch)
                dataset = ops.tensor_dataset(components=tensors, output_shapes=shapes)
                ops.make_iterator(dataset, resource)
            return kind(components=[resource], element_spec=spec)

        return single, end

    @guarded("batches of fit")
    def _over(self, single: Callable[[object], object], batch: object) -> object:
        return single(batch)

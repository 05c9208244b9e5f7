"""How long the sequences are that the training is given: the padding at one end, in a few rows of each input."""

from __future__ import annotations

from ..process.journal import guarded
from ..process.nested import leaves
from .row_lengths import described, may_be_sequences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..process.declared import Foreign, TfDataset
    from ..process.journal import Journal
    from .row_lengths import Sequences

    Inputs = dict[tuple[int, bool], Sequences]  # by the input's position and its side


BATCHES = 4  # Batches that are looked at, before the window opens


class SequenceLengths:
    """The lengths of the sequences in the first batches of a loop, or in the arrays that it goes over."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.again()

    def again(self) -> None:
        """Forget what the recording before has measured."""
        self.left = BATCHES
        self.calls_left = BATCHES
        self.seen: Inputs = {}
        self.called: Inputs = {}
        self.arrays: list[Sequences] = []

    def wants(self, specs: Iterable[Foreign]) -> bool:
        """Say whether batches of these types are worth to be taken before fit takes them."""
        return may_be_sequences(specs)

    @guarded("sequence lengths")
    def batch(self, batch: object) -> None:
        """Look at a batch of a loop over a dataset, or of one that fit was given."""
        self.left -= 1
        _add(self.seen, batch)

    @guarded("sequence lengths")
    def call(self, *given: object) -> None:
        """Look at what a training call is given, whatever made it."""
        self.calls_left -= 1
        _add(self.called, given)

    @guarded("sequence lengths")
    def given(self, adapter: object) -> None:
        """Look at the arrays that Keras's fit was given."""
        arrays = getattr(adapter, "_inputs", None)
        self.arrays = _all(leaves(getattr(array, "array", array)) for array in leaves(arrays))

    def describe(self, dataset: TfDataset | None) -> list[Sequences]:
        """Return what was seen: of calls, else of batches, of fit's arrays, or of those that a dataset slices."""
        found = self.called or self.seen
        return list(found.values()) or self.arrays or _of_slices(dataset)


def _add(inputs: Inputs, batch: object) -> None:
    """Add the inputs of a batch to those seen before."""
    for at, value in enumerate(leaves(batch)):
        pads = {side: inputs[at, side]["pad"] for side in (False, True) if (at, side) in inputs}
        for entry in described(value, whole=True, pads=pads):
            known = inputs.setdefault((at, entry["leading"]), entry)
            if known is not entry:
                known["lengths"] += entry["lengths"]
                known["steps"] += entry["steps"]
                known["begins"] = min(known["begins"], entry["begins"])
                known["gaps"] = max(known["gaps"], entry["gaps"])
                known["mask"] = known["mask"] and entry["mask"]


def _all(groups: Iterable[Iterable[object]]) -> list[Sequences]:
    return [entry for group in groups for value in group for entry in described(value, whole=False)]


def _of_slices(dataset: TfDataset | None) -> list[Sequences]:
    """Look at the arrays far upstream, where the batches still have their time dimension."""
    if dataset is None:
        return []
    specs: list[Foreign] = leaves(dataset.element_spec)
    shapes = [tuple(spec.shape.as_list()[1:]) for spec in specs if getattr(spec, "shape", None)]
    entries = _all(leaves(tensors) for tensors in _sliced(dataset))
    return [entry for entry in entries if tuple(entry["shape"][1:]) in shapes]


def _sliced(dataset: TfDataset) -> Iterator[Sequence[object]]:
    """Yield the tensors that the datasets upstream were made from."""
    waiting = [dataset]
    while waiting:
        source = waiting.pop()
        yield getattr(source, "_tensors", None) or ()
        waiting += source._inputs() if hasattr(source, "_inputs") else []

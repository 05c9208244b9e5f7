"""What tf.data calls a dataset in traces: its kernel's type and its number in the process.

Tested: TensorFlow numbers the datasets that a process makes, in order, from 0 ("MapDataset:4"); a
name that the user gave replaces that. Rewriting a pipeline keeps the names. Datasets that functions
make while the data flows (flat_map, interleave) are numbered as well, unseen by Python: once such
exist, the count is read back from a small dataset of our own, serialized with its name.
"""

from __future__ import annotations

import weakref

from ..process import tensorflow_api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import TfDataset

# Classes that make exactly one kernel, and the type of that kernel.
TYPES = {
    "CacheDataset": "CacheDatasetV2",
    "_BatchDataset": "BatchDatasetV2",
    "_ConcatenateDataset": "ConcatenateDataset",
    "_FilterDataset": "FilterDataset",
    "_MapDataset": "MapDataset",
    "_OptionsDataset": "OptionsDataset",
    "_PaddedBatchDataset": "PaddedBatchDatasetV2",
    "_ParallelBatchDataset": "ParallelBatchDataset",
    "_ParallelMapDataset": "ParallelMapDatasetV2",
    "_PrefetchDataset": "PrefetchDataset",
    "_RangeDataset": "RangeDataset",
    "_RepeatDataset": "RepeatDataset",
    "_ShardDataset": "ShardDataset",
    "_ShuffleDataset": "ShuffleDatasetV3",
    "_SkipDataset": "SkipDataset",
    "_TakeDataset": "TakeDataset",
    "_TensorDataset": "TensorDataset",
    "_TensorSliceDataset": "TensorSliceDataset",
    "_ZipDataset": "ZipDataset",
}

# Classes that make one kernel, whose functions make more while the data flows.
MAKERS = {
    "_FlatMapDataset": "FlatMapDataset",
    "_InterleaveDataset": "InterleaveDataset",
    "_ParallelInterleaveDataset": "ParallelInterleaveDatasetV4",
}


class Numbering:
    """The numbers of the datasets made so far."""

    def __init__(self) -> None:
        self.following = 0
        self.settled = True  # every dataset so far was made where we see it
        self.numbers: weakref.WeakKeyDictionary[TfDataset, int] = weakref.WeakKeyDictionary()

    def note(self, dataset: TfDataset) -> None:
        """A dataset has just been made."""
        if not tensorflow_api.context().executing_eagerly():
            self.settled = False  # a function that will make datasets whenever it runs
            return
        kind = type(dataset).__name__
        if kind not in TYPES and kind not in MAKERS:
            self.settled = False
        if self.settled:
            number, self.following = self.following, self.following + 1
        else:
            number = self._counted() - 1
        if kind in MAKERS:
            self.settled = False
        if number >= 0:
            self.numbers[dataset] = number

    def name(self, dataset: TfDataset) -> str | None:
        """Return the dataset's name in traces, or None when it is not certain."""
        given = getattr(getattr(dataset, "_metadata", None), "name", b"")
        if given:
            return given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)
        kind, number = type(dataset).__name__, self.numbers.get(dataset)
        type_name = TYPES.get(kind) or MAKERS.get(kind)
        return None if number is None or type_name is None else f"{type_name}:{number}"

    def _counted(self) -> int:
        """Return the number that TensorFlow gives next; negative when others count meanwhile."""
        first = tensorflow_api.probe_dataset_number()
        second = tensorflow_api.probe_dataset_number()
        return first if second == first + 1 else -1

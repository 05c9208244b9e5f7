"""What tf.data calls a dataset in traces: its kernel's type and its number in the process.

Tested: TensorFlow numbers the datasets that a process makes, in order, from 0 ("MapDataset:4"); a
name that the user gave replaces that. Rewriting a pipeline keeps the names. Datasets that functions
make while the data flows (flat_map, interleave) are numbered as well, unseen by Python: once such
exist, the count is read back from a small dataset of our own, serialized with its name.
"""

import weakref

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
"""Classes that make exactly one kernel, and the type of that kernel."""

MAKERS = {
    "_FlatMapDataset": "FlatMapDataset",
    "_InterleaveDataset": "InterleaveDataset",
    "_ParallelInterleaveDataset": "ParallelInterleaveDatasetV4",
}
"""Classes that make one kernel, whose functions make more while the data flows."""


class Numbering:
    """The numbers of the datasets made so far."""

    def __init__(self):
        self.following = 0
        self.settled = True  # every dataset so far was made where we see it
        self.numbers = weakref.WeakKeyDictionary()

    def note(self, dataset):
        """A dataset has just been made."""
        from tensorflow.python.eager import context

        if not context.executing_eagerly():
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

    def name(self, dataset):
        """Return the dataset's name in traces, or None when it is not certain."""
        given = getattr(getattr(dataset, "_metadata", None), "name", b"")
        if given:
            return given.decode("utf-8", "replace") if isinstance(given, bytes) else given
        kind, number = type(dataset).__name__, self.numbers.get(dataset)
        type_name = TYPES.get(kind) or MAKERS.get(kind)
        return None if number is None or type_name is None else f"{type_name}:{number}"

    def _counted(self):
        """Return the number that TensorFlow gives next; negative when others count meanwhile."""
        first, second = _probe(), _probe()
        return first if second == first + 1 else -1


def _probe():
    """Return the number of a dataset made for the purpose."""
    from tensorflow.core.framework import dataset_metadata_pb2, graph_pb2
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import gen_dataset_ops

    with ops.device("/CPU:0"):
        made = gen_dataset_ops.range_dataset(
            start=0, stop=1, step=1, output_types=[dtypes.int64], output_shapes=[[]]
        )
        text = gen_dataset_ops.dataset_to_graph_v2(made).numpy()
    for node in graph_pb2.GraphDef.FromString(text).node:
        if node.op == "RangeDataset":
            metadata = dataset_metadata_pb2.Metadata.FromString(node.attr["metadata"].s)
            return int(metadata.name.rpartition(b":")[2])
    raise LookupError("no name in a serialized dataset")

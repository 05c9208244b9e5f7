"""How many batches one pass over the data has, by the recorded datasets."""

import re
from collections.abc import Sequence

from tfdoctor.facts.run.program import Dataset

FOREVER = -1  # tf.data's cardinality of an infinite dataset
# Kinds that yield at most as many elements as they take.
NON_EXPANDING = frozenset(
    ("Map", "ParallelMap", "Shuffle", "Prefetch", "Cache", "Options", "Filter", "Take", "Shard", "Skip")
)  # fmt: skip


def kind_of(dataset: Dataset) -> str:
    """Return what a dataset does, whatever TensorFlow's version calls its class: "ParallelMap"."""
    return re.sub(r"^_|Dataset(V\d)?$", "", dataset.kind)


def line_of(chain: Sequence[Dataset], end: Dataset | None = None) -> tuple[Dataset, ...]:
    """Return the datasets from the trainer, or ``end``, to the source, or to where several sources meet."""
    by_id = {dataset.id: dataset for dataset in chain}
    line = [end] if end is not None else list(chain[:1])
    while line and len(line[-1].inputs) == 1 and line[-1].inputs[0] in by_id:
        line.append(by_id[line[-1].inputs[0]])
    return tuple(line)


def batches_of(line: Sequence[Dataset]) -> float | None:
    """Return the batches of one pass over what is repeated, or over all where nothing is; None is unknown."""
    repeats = [at for at, stage in enumerate(line) if kind_of(stage) == "Repeat"]
    begin, size = (repeats[-1] + 1 if repeats else 0), 1.0
    for at, stage in enumerate(line):
        if at >= begin and stage.cardinality not in {None, FOREVER}:
            return max(1.0, (stage.cardinality or 0) / size)
        if kind_of(stage).endswith("Batch"):
            size *= stage.parameters.batch_size or 1
        elif kind_of(stage) not in NON_EXPANDING | {"Repeat"}:
            return None
    return None

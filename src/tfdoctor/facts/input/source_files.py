"""The files that the training pipeline reads: their number, and whether they are remote."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Dataset, FileList, Program

# Datasets that open a file for each element that they take.
OPENER = re.compile(r"_?(?:FlatMap|(?:Parallel)?Interleave)Dataset")
PATHS = "TensorSpec(shape=(), dtype=tf.string, name=None)"  # The elements of a list of paths
# File systems that hand a folder on: what lies beneath is not known.
HANDED_IN = frozenset({"9p", "virtiofs", "overlay", "fuse"})
FOREVER = -1  # tf.data's cardinality of an infinite dataset


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of one list of paths; None is unknown."""

    count: int | None = None
    network: str = ""  # "gs://", "NFS": what holds them across a network; "" is local or unknown
    local: bool = False  # known to be on a file system of this machine

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Find the list of files that the feeding pipeline begins with.

        Raises:
            Unavailable: the pipeline does not begin with one list of files, or that was not recorded.
        """
        listed = {(one.files.count, one.files.network, _local(one.files)) for one in program.feeding if one.files}
        openers = (dataset for dataset in program.feeding if OPENER.fullmatch(dataset.kind))
        opened = {_opened(dataset, program) for dataset in openers}
        counts = listed or {(count, "", False) for count in opened - {None}}
        if len(counts) != 1:
            raise Unavailable("the files that the pipeline reads were not recorded")
        return cls(*counts.pop())

    @property
    def remote(self) -> bool:
        """Whether the files lie across a network, by their paths and mounts."""
        return bool(self.network)


def _local(files: FileList) -> bool:
    """Say whether the mount is known, and is none of a network or of a folder handed in."""
    return bool(files.file_system) and not files.network and files.file_system not in HANDED_IN


def _opened(opener: Dataset, program: Program) -> int | None:
    """Return the number of paths that an opener takes, without repetitions; None is unknown."""
    by_id = {dataset.id: dataset for dataset in program.feeding}
    source = opener
    while len(source.inputs) == 1 and source.inputs[0] in by_id:
        source = by_id[source.inputs[0]]
        if source.element == PATHS and source.cardinality not in {None, FOREVER}:
            return source.cardinality
    return None

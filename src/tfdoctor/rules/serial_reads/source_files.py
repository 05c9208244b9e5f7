"""The files that the training pipeline reads: their number, and whether they are remote."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Dataset, Program

OPENER = re.compile(r"_?(?:FlatMap|(?:Parallel)?Interleave)Dataset")
"""Datasets that open a file for each element that they take."""

PATHS = "TensorSpec(shape=(), dtype=tf.string, name=None)"
"""The elements of a list of paths."""

FOREVER = -1
"""tf.data's cardinality of an infinite dataset."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Files of one list of paths; None is unknown."""

    count: int | None = None
    scheme: str = ""  # "gs", "s3": a remote file system; "" is local or unknown

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Find the list of files that the feeding pipeline begins with.

        Raises:
            Unavailable: the pipeline does not begin with one list of files, or that was not recorded.
        """
        files = (dataset.files for dataset in program.feeding if dataset.files)
        listed = {(one.count, one.scheme) for one in files}
        openers = (dataset for dataset in program.feeding if OPENER.fullmatch(dataset.kind))
        opened = {_opened(dataset, program) for dataset in openers}
        counts = listed or {(count, "") for count in opened - {None}}
        if len(counts) != 1:
            raise Unavailable("the files that the pipeline reads were not recorded")
        ((count, scheme),) = counts
        return cls(count, scheme)

    @property
    def remote(self) -> bool:
        """Whether the files are remote, by their paths."""
        return bool(self.scheme)


def _opened(opener: Dataset, program: Program) -> int | None:
    """Return the number of paths that an opener takes, without repetitions; None is unknown."""
    by_id = {dataset.id: dataset for dataset in program.feeding}
    source = opener
    while len(source.inputs) == 1 and source.inputs[0] in by_id:
        source = by_id[source.inputs[0]]
        if source.element == PATHS and source.cardinality not in {None, FOREVER}:
            return source.cardinality
    return None

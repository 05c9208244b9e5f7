"""Which dimensions of the batches that feed the run may vary."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import LONGEST_SPEC, TENSOR
from tfdoctor.facts.run.program import Program
from tfdoctor.terms.verdict import Location

_SPEC = re.compile(r"\b\w+Spec\(")


@dataclass(frozen=True, slots=True)
class OpenShapes:
    """The open dimensions of a batch: its ``size``, the first dimension, and ``lengths``, any other.

    ``at`` is the line of the only ``batch()`` without ``drop_remainder``; None without a single one. ``rows`` is
    the recorded size of a batch.
    """

    size: bool = False
    lengths: bool = False
    at: Location | None = None
    rows: int | None = None

    @classmethod
    def measure(cls, program: Program) -> Self:
        """Read the element_spec of the dataset that the training loop takes.

        Raises:
            Unavailable: no dataset feeds the run, or its batches are not plain tensors.
        """
        if not program.feeding:
            raise Unavailable("no recorded tf.data pipeline feeds the training loop")
        spec = program.feeding[0].element
        shapes = [tensor[1] for tensor in TENSOR.finditer(spec)]
        if not shapes or len(shapes) != len(_SPEC.findall(spec)) or len(spec) >= LONGEST_SPEC:
            raise Unavailable("the shapes of the batches were not recorded")
        dimensions = [shape.replace(" ", "").split(",") for shape in shapes]
        partial = [
            dataset.at
            for dataset in program.feeding
            if dataset.kind.strip("_") in ("BatchDataset", "ParallelBatchDataset")
            and dataset.parameters.drop_remainder is False
        ]
        return cls(
            any(first == "None" for first, *_ in dimensions),
            any("None" in rest for _, *rest in dimensions),
            partial[0] if len(partial) == 1 else None,
            program.batch_size,
        )

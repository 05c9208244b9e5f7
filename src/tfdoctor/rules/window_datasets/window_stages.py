"""Windows that the pipeline makes as datasets of their own, and joins again."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.dataset_properties import TENSOR, DatasetProperties, spec_bytes
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime, feeds
from tfdoctor.facts.input.map_functions import BETWEEN, NOT_VECTORIZABLE
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset

JOINS = re.compile(r"FlatMap|(?:Parallel)?Interleave")  # Kinds of datasets that join datasets


@dataclass(frozen=True, slots=True)
class WindowJoin:
    """A stage that joins windows, and the stages that make and use them.

    ``inner`` are the stages that make the windows and pass on their elements. ``maps`` are those between the
    windows and the next batch, which also take whole batches. ``nbytes`` are those of one window; None is unknown.
    ``batch`` is the size of the next batch, 0 where none follows.
    """

    join: StageTime
    inner: tuple[StageTime, ...] = ()
    maps: tuple[StageTime, ...] = ()
    nbytes: float | None = None
    batch: int = 0

    @property
    def work_ms(self) -> float:
        """The work of all stages that make and join the windows, in ms per step."""
        return self.join.work_ms + sum(stage.work_ms for stage in self.inner)

    @property
    def window_ms(self) -> float:
        """What making one window takes, in ms, summed over threads."""
        return self.work_ms / self.join.calls if self.join.calls else 0.0


@dataclass(frozen=True, slots=True)
class WindowJoins:
    """All stages of the pipeline that join windows."""

    joins: tuple[WindowJoin, ...] = ()

    @classmethod
    def measure(cls, pipeline: InputPipeline, properties: DatasetProperties) -> Self:
        """Find the joins among the feeding datasets, and their stages in the trace."""
        joins = []
        for dataset in properties.chain:
            windows = next((d for d in properties.sources(dataset) if kind_of(d) == "Window"), None)
            join = next((s for s in pipeline.stages if s.dataset == dataset and s.calls), None)
            if not windows or not join or not JOINS.fullmatch(kind_of(dataset)):
                continue
            within = [stage for stage in pipeline.stages if feeds(stage.path, join.path)]
            series = f"{join.path}::Window"  # what is above it does not exist for the windows only
            inner = tuple(one for one in within if not one.path.startswith(f"{series}::"))
            ids, batch = _after(dataset, properties)
            mapped = tuple(one for one in pipeline.stages if one.dataset and one.dataset.id in ids)
            # the bytes of a window, by how many elements were taken from it
            element = spec_bytes(" ".join(found[0] for found in TENSOR.finditer(windows.element)))
            taken = max((s.calls for s in within if s.kind == "Window" and s.path != series), default=0.0)
            size = element * taken / join.calls if element and taken else None
            joins.append(WindowJoin(join, inner, mapped, size, batch))
        return cls(tuple(joins))


def _after(join: Dataset, properties: DatasetProperties) -> tuple[set[int], int]:
    """Return the maps between the windows and the next batch that also take batches, and the batch's size."""
    maps: set[int] = set()
    at = join.id
    while current := next((one for one in properties.chain if at in one.inputs), None):
        at, kind = current.id, kind_of(current)
        if kind in {"Batch", "ParallelBatch"}:
            return maps, current.parameters.batch_size or 0
        if kind in {"Map", "ParallelMap"}:
            single = any(NOT_VECTORIZABLE.fullmatch(name) for name in current.types or ("If",))
            if not single and not current.python:
                maps.add(current.id)
        elif kind not in BETWEEN:
            break
    return set(), 0

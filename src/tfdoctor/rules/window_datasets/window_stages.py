"""Windows that the pipeline makes as datasets of their own, and joins again."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.dataset_properties import TENSOR, DatasetProperties, spec_bytes
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.map_functions import BETWEEN, NOT_VECTORIZABLE
from tfdoctor.facts.input.pipeline_stages import StageTime, feeds
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset

JOINS = re.compile(r"FlatMap|(?:Parallel)?Interleave")
"""Kinds of datasets that join datasets."""


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
    def window_ms(self) -> float:
        """What making one window takes, in ms, summed over threads."""
        work = self.join.work_ms + sum(stage.work_ms for stage in self.inner)
        return work / self.join.calls if self.join.calls else 0.0


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
            stage = next((s for s in pipeline.stages if s.dataset == dataset and s.calls), None)
            if windows and stage and JOINS.fullmatch(kind_of(dataset)):
                maps, batch = _after(dataset, properties)
                ids = {mapped.id for mapped in maps}
                mapped = tuple(s for s in pipeline.stages if s.dataset and s.dataset.id in ids)
                nbytes = _window_bytes(windows, stage, pipeline)
                joins.append(WindowJoin(stage, _inner(stage, pipeline), mapped, nbytes, batch))
        return cls(tuple(joins))


def _inner(join: StageTime, pipeline: InputPipeline) -> tuple[StageTime, ...]:
    """Return the stages that exist for the windows only: all up to the series itself."""
    within = (stage for stage in pipeline.stages if feeds(stage.path, join.path))
    return tuple(one for one in within if not one.path.startswith(f"{join.path}::Window::"))


def _window_bytes(windows: Dataset, join: StageTime, pipeline: InputPipeline) -> float | None:
    """Return the bytes of a window, by how many elements were taken from it; None is unknown."""
    element = spec_bytes(" ".join(found[0] for found in TENSOR.finditer(windows.element)))
    within = (s for s in pipeline.stages if s.kind == "Window" and feeds(s.path, join.path))
    taken = max((s.calls for s in within if s.path != f"{join.path}::Window"), default=0.0)
    return element * taken / join.calls if element and taken else None


def _after(join: Dataset, properties: DatasetProperties) -> tuple[list[Dataset], int]:
    """Return the maps between the windows and the next batch that also take batches, and the batch's size."""
    maps: list[Dataset] = []
    current: Dataset | None = join
    while current is not None:
        current = next((d for d in properties.chain if current.id in d.inputs), None)
        kind = kind_of(current) if current else ""
        if current and kind in {"Batch", "ParallelBatch"}:
            return maps, current.parameters.batch_size or 0
        if current and kind in {"Map", "ParallelMap"}:
            single = any(NOT_VECTORIZABLE.fullmatch(name) for name in current.types or ("If",))
            if not single and not current.python:
                maps.append(current)
        elif kind not in BETWEEN:
            break
    return [], 0

"""Windows that the pipeline makes as datasets of their own, and joins again."""

import re
from collections.abc import Iterator
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
        return cls(tuple(_joins(pipeline, properties)))


def _joins(pipeline: InputPipeline, properties: DatasetProperties) -> Iterator[WindowJoin]:
    for dataset in properties.chain:
        windows = next((d for d in properties.sources(dataset) if kind_of(d) == "Window"), None)
        stage = next((s for s in pipeline.stages if s.dataset == dataset and s.calls), None)
        if windows is None or stage is None or not JOINS.fullmatch(kind_of(dataset)):
            continue
        maps, batch = _after(dataset, properties)
        ids = {mapped.id for mapped in maps}
        yield WindowJoin(
            stage,
            tuple(_inner(stage, pipeline)),
            tuple(s for s in pipeline.stages if s.dataset and s.dataset.id in ids),
            _window_bytes(windows, stage, pipeline),
            batch,
        )


def _inner(join: StageTime, pipeline: InputPipeline) -> Iterator[StageTime]:
    """Yield the stages that exist for the windows only: all up to the series itself."""
    for stage in pipeline.stages:
        if feeds(stage.path, join.path) and not stage.path.startswith(f"{join.path}::Window::"):
            yield stage


def _window_bytes(windows: Dataset, join: StageTime, pipeline: InputPipeline) -> float | None:
    """Return the bytes of a window, by how many elements were taken from it; None is unknown."""
    element = spec_bytes(" ".join(map(_tensor, TENSOR.finditer(windows.element))))
    taken = max(
        (
            stage.calls
            for stage in pipeline.stages
            if stage.kind == "Window"
            and feeds(stage.path, join.path)
            and stage.path != f"{join.path}::Window"
        ),
        default=0.0,
    )
    return element * taken / join.calls if element and taken else None


def _tensor(found: re.Match[str]) -> str:
    return found[0]


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

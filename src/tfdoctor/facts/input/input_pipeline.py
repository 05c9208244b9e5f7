"""How the input pipeline makes its batches: its stages, their times, and the segment that limits it.

A pipeline is divided into *segments* where tf.data passes elements from one thread to another (Prefetch,
ParallelMap, MapAndBatch, ...). Segments work in parallel, so the pipeline is as fast as its slowest
segment; within a segment the stages work one after the other, so its time is their sum. The time that a
consumer waits for elements is not work.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.input.iterators import NUMBERED, Iterators
from tfdoctor.facts.input.pipeline_stages import INJECTED, ROOTS, PipelineSegment, StageTime, feeds, segments_of
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.terms.verdict import Location

NEGLIGIBLE_MS = 0.2
"""Passing on a batch costs tf.data 50 to 150 microseconds, prefetched or not (measured)."""

GENERATOR = "Generator"
"""The stage of Dataset.from_generator and of Keras' generators: all its work is Python."""

DEVICE_PREFETCH = "device_prefetch"
"""The name of the stage by which a device takes its batches of several (data/ops/multi_device_iterator_ops.py)."""


@dataclass(frozen=True, slots=True)
class InputPipeline:
    """The stages of the training pipeline, consumers first, and its segments."""

    stages: tuple[StageTime, ...]
    segments: tuple[PipelineSegment, ...]
    python_kind: str = ""  # the Python object that feeds the run, when it is not tf.data
    idle: tuple[Dataset, ...] = ()  # with a function that did not run in the traced steps

    @classmethod
    def measure(cls, iterators: Iterators, steps: Steps, program: Program | None) -> Self:
        """Measure every stage and divide the pipeline into segments.

        Raises:
            Unavailable: no tf.data iterator ran.
        """
        program, batches = program or Program(), max(1, iterators.batches)
        per_step = batches / sum(step.calls for step in steps.steady_steps)
        datasets = _written(program)
        made = [_stage(node, batches, per_step, datasets) for node in iterators.nodes.values()]
        stages = _placed(_handed(made), program.batches_at)
        ran = {name for stage in stages for name in NUMBERED.findall(stage.name)}
        functions = [one for one in program.feeding if one.function_at and one.trace_name]
        idle = tuple(dataset for dataset in functions if dataset.trace_name not in ran)
        return cls(stages, tuple(segments_of(stages)), program.input_kind, idle)

    @classmethod
    def of(cls, *stages: StageTime, python_kind: str = "") -> Self:
        """Build a pipeline from its stages, for examples and tests."""
        return cls(stages, tuple(segments_of(stages)), python_kind)

    @property
    def why_idle(self) -> str:
        """Why the cost of functions that did not run is unknown; "" when all of them ran."""
        if not self.idle:
            return ""
        names = ", ".join(dataset.function for dataset in self.idle)
        return (
            f"{names} did not run in the traced steps because the output was already buffered or cached, so the "
            "cost is unknown"
        )

    @property
    def work_ms(self) -> float:
        """The time that the pipeline needs for a step's batches: that of the slowest segment."""
        return max((segment.ms for segment in self.segments), default=0.0)

    @property
    def serial_ms(self) -> float:
        """The work that happens while the trainer waits, in ms per step."""
        return sum(segment.ms for segment in self.segments if not segment.overlapped)

    def python_beside(self, step_ms: float) -> float:
        """Return the share of a step, 0 to 1, during which the pipeline runs Python in parallel.

        It holds the interpreter's lock then, so the training loop's Python waits, which the trace does not show.
        """
        overlapped = {path for segment in self.segments if segment.overlapped for path in segment.stages}
        python = sum(stage.python_ms for stage in self.stages if stage.path in overlapped)
        return min(1.0, python / step_ms) if step_ms else 0.0

    @property
    def slowest(self) -> PipelineSegment | None:
        """The segment that limits the pipeline."""
        return max(self.segments, key=lambda segment: segment.ms, default=None)

    @property
    def limiting(self) -> tuple[StageTime, ...]:
        """The stages of the slowest segment."""
        paths = self.slowest.stages if self.slowest else {}
        return tuple(stage for stage in self.stages if stage.path in paths)

    @property
    def critical(self) -> StageTime | None:
        """The stage with the most work in the slowest segment; None when nothing works."""
        segment = self.slowest
        if segment is None or not segment.ms:
            return None
        path = max(segment.stages, key=lambda path: segment.stages[path])
        return next(stage for stage in self.stages if stage.path == path)

    @property
    def prefetches(self) -> bool:
        """Whether a stage makes batches ahead of the trainer, and none between them has work of its own."""
        working = [stage for stage in self.stages if not (stage.asynchronous or stage.is_root)]
        return any(
            stage.asynchronous
            and sum(one.work_ms for one in working if feeds(stage.path, one.path)) <= NEGLIGIBLE_MS
            for stage in self.stages
        )


def _written(program: Program) -> Mapping[str, Dataset]:
    """Return the user's datasets by tf.data's name for them; the training loop's take precedence."""
    names = Counter(dataset.trace_name for dataset in program.datasets)
    known = [dataset for dataset in program.datasets if names[dataset.trace_name] == 1]
    feeding = [dataset for dataset in program.feeding if dataset.trace_name]
    return {dataset.trace_name: dataset for dataset in (*known, *feeding)}


def _stage(node: Node, batches: int, per_step: float, datasets: Mapping[str, Dataset]) -> StageTime:
    made = node.calls if 0.5 <= node.calls / batches <= 1.5 else batches  # noqa: PLR2004 - one a batch
    scale = per_step / made / PS_PER_MS
    work, wall = (
        (node.function_ps, node.function_wall_ps) if node.asynchronous else (node.self_ps, node.self_wall_ps)
    )
    return StageTime(
        path=node.path,
        kind=node.kind,
        name=node.name,
        work_ms=max(0.0, work * scale),
        wall_ms=max(0.0, wall * scale),
        calls=node.calls / batches * per_step,
        python_ms=max(0.0, work if node.kind == GENERATOR else node.python_ps) * scale,
        reading_ms=node.reading_ps * scale,
        reads=node.reads / made * per_step,
        image_ms=node.image_ps * scale,
        operations={name: time * scale for name, time in node.operations.items()},
        asynchronous=node.asynchronous,
        parallelism=node.parallelism,
        dataset=None if node.path in ROOTS else _dataset(node.name, datasets),
    )


def _handed(stages: Sequence[StageTime]) -> Iterator[StageTime]:
    """Yield the stages; one that only hands a device its batches waits for them, in C++, and does not work."""
    names = {stage.path: stage.name for stage in stages}
    for stage in stages:
        consumer = names.get(stage.path.rpartition("::")[0], "")
        if stage.kind == GENERATOR and DEVICE_PREFETCH in consumer:
            yield replace(stage, work_ms=0.0, wall_ms=0.0, python_ms=0.0)
        else:
            yield stage


def _placed(stages: Iterable[StageTime], batches_at: Location | None) -> tuple[StageTime, ...]:
    """Give a stage that tf.data made inside another, such as a generator's, the line of its consumer.

    Keras makes the generator of a PyDataset in fit; what it runs is at ``batches_at``.
    """
    placed: list[StageTime] = []
    for stage in stages:
        if stage.dataset is None and not stage.injected and not stage.is_root:
            above = [one.dataset for one in placed if feeds(stage.path, one.path) and one.dataset]
            at = (batches_at if stage.kind == GENERATOR else None) or (above[-1].at if above else None)
            inner = Dataset(id=above[-1].id, kind="", at=at) if above else None
            stage = replace(stage, dataset=inner)  # noqa: PLW2901 - the same stage
        placed.append(stage)
    return tuple(placed)


def _dataset(name: str, datasets: Mapping[str, Dataset]) -> Dataset | None:
    """Find the user's dataset; of stages that tf.data fused, the one with a function."""
    if name.startswith(INJECTED):
        return None
    matching = [datasets[one] for one in NUMBERED.findall(name) if one in datasets]
    return max(matching, key=lambda dataset: bool(dataset.function), default=None)

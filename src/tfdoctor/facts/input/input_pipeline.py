"""How the input pipeline makes its batches: its stages, their times, and the segment that limits it.

A pipeline is divided into *segments* where tf.data passes elements from one thread to another (Prefetch,
ParallelMap, MapAndBatch, ...). Segments work in parallel, so the pipeline is as fast as its slowest
segment; within a segment the stages work one after the other, so its time is their sum. The time that a
consumer waits for elements is not work.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.input.iterators import NUMBERED, Iterators
from tfdoctor.facts.input.pipeline_stages import INJECTED, ROOTS, PipelineSegment, StageTime, feeds, segments_of
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.terms.verdict import Location

NEGLIGIBLE_MS = 0.2  # Passing on a batch costs tf.data 50 to 150 microseconds, prefetched or not (measured)
GENERATOR = "Generator"  # The stage of Dataset.from_generator and of Keras' generators: all its work is Python
# The name of the stage by which a device takes its batches of several (data/ops/multi_device_iterator_ops.py).
DEVICE_PREFETCH = "device_prefetch"


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
        # The user's datasets by tf.data's name for them; the training loop's take precedence.
        names = Counter(dataset.trace_name for dataset in program.datasets)
        known = [dataset for dataset in program.datasets if names[dataset.trace_name] == 1]
        fed = [dataset for dataset in program.feeding if dataset.trace_name]
        datasets = {dataset.trace_name: dataset for dataset in (*known, *fed)}
        made = [_stage(node, batches, per_step, datasets) for node in iterators.nodes.values()]
        stages = tuple(_placed(made, program.batches_at))
        ran = {name for stage in stages for name in NUMBERED.findall(stage.name)}
        idle = tuple(one for one in fed if one.function_at and one.trace_name not in ran)
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


def _stage(node: Node, batches: int, per_step: float, datasets: Mapping[str, Dataset]) -> StageTime:
    made = node.calls if 0.5 <= node.calls / batches <= 1.5 else batches  # noqa: PLR2004 - one a batch
    scale = per_step / made / PS_PER_MS
    work, wall = (
        (node.function_ps, node.function_wall_ps) if node.asynchronous else (node.self_ps, node.self_wall_ps)
    )
    users = () if node.path in ROOTS or node.name.startswith(INJECTED) else NUMBERED.findall(node.name)
    matching = [datasets[one] for one in users if one in datasets]
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
        dataset=max(matching, key=lambda one: bool(one.function), default=None),  # of what tf.data fused
    )


def _placed(stages: Iterable[StageTime], batches_at: Location | None) -> Iterator[StageTime]:
    """Yield the stages; one that tf.data made inside another, such as a generator's, with the line of its consumer.

    Keras makes the generator of a PyDataset in fit; what it runs is at ``batches_at``. One that only hands a device
    its batches waits for them, in C++, and does not work.
    """
    before: list[StageTime] = []
    for one in stages:
        stage, consumer = one, next((s.name for s in before if s.path == one.path.rpartition("::")[0]), "")
        if stage.kind == GENERATOR and DEVICE_PREFETCH in consumer:
            stage = replace(stage, work_ms=0.0, wall_ms=0.0, python_ms=0.0)
        if stage.dataset is None and not stage.injected and not stage.is_root:
            above = [s.dataset for s in before if feeds(stage.path, s.path) and s.dataset]
            at = (batches_at if stage.kind == GENERATOR else None) or (above[-1].at if above else None)
            stage = replace(stage, dataset=Dataset(id=above[-1].id, kind="", at=at) if above else None)
        before.append(stage)
        yield stage

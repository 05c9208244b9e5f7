"""How the input pipeline makes its batches: its stages, their times, and the segment that limits it.

A pipeline is divided into *segments* where tf.data passes elements from one thread to another (Prefetch,
ParallelMap, MapAndBatch, ...). Segments work in parallel, so the pipeline is as fast as its slowest
segment; within a segment the stages work one after the other, so its time is their sum. The time that a
consumer waits for elements is not work.
"""

from tfdoctor.facts.input.dataset_properties import FunctionGraphs
from tfdoctor.facts.input.iterators import IMAGES, NUMBERED, PYTHON, READING, Iterators, Node
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import Dataset, Program
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps

ROOTS = ("Root", "Model")  # tf.data's own root of the pipeline, which has its first stage's name (Model before 2.6)
INJECTED = "inject/"  # The prefix of the names of stages that tf.data adds by itself
NEGLIGIBLE_MS = 0.2  # Passing on a batch costs tf.data 50 to 150 microseconds, prefetched or not (measured)
GENERATOR = "Generator"  # The stage of Dataset.from_generator and of Keras' generators: all its work is Python
# The name of the stage by which a device takes its batches of several (data/ops/multi_device_iterator_ops.py).
DEVICE_PREFETCH = "device_prefetch"


class StageTime(Record, kw_only=True):
    """One stage of the pipeline. Times are ms per training step."""

    path: str
    kind: str  # "Map", "ParallelMapV2", "MapAndBatch"
    name: str = ""  # tf.data's
    work_ms: float = 0.0  # own work, summed over threads
    wall_ms: float = 0.0  # own work, in which parallel threads count once
    calls: float = 1.0
    python_ms: float = 0.0  # inside the Python interpreter
    reading_ms: float = 0.0  # inside ReadFile, which reads a whole file
    reads: float = 0.0  # of whole files, per training step
    image_ms: float = 0.0  # decoding and resizing images
    operations: Mapping[str, float] = field(default_factory=dict)  # of its function, by name
    asynchronous: bool = False
    dataset: Dataset | None = None
    slowest: tuple[str, Location] | None = None  # type and line of the operation that takes most of its function

    @property
    def is_root(self) -> bool:
        """Whether it is tf.data's own root of the pipeline."""
        return self.path in ROOTS

    @property
    def injected(self) -> bool:
        """Whether tf.data added it by itself."""
        return self.name.startswith(INJECTED)

    @property
    def title(self) -> str:
        """The stage in the user's terms: "Map(decode)"."""
        return f"{self.kind}({self.dataset.function})" if self.dataset and self.dataset.function_at else self.kind

    @property
    def function(self) -> str:
        """What code calls the function that it runs: its name, else "function"."""
        name = self.dataset.function if self.dataset else ""
        return name if name.isidentifier() else "function"

    @property
    def concurrency(self) -> float:
        """The mean number of threads at work in the stage while it works."""
        return self.work_ms / self.wall_ms if self.wall_ms else 1.0

    @property
    def at(self) -> Location | None:
        """The user's line that made it."""
        return self.dataset.at if self.dataset else None

    def scaled(self, scales: float, bound: Bound = Bound.EXPECTED, *, spreads: bool = False) -> Effect:
        """Return the effect that its work takes so many times as long, or is spread over threads."""
        work = ms(self.work_ms)
        return Effect(Stage.INPUT, scales, self.path, work, bound=bound, spreads=spreads)


class PipelineSegment(Record):
    """Stages that work one after the other on one thread, or one stage's function on several threads."""

    stages: Mapping[str, float]  # ms per training step of each, by path
    overlapped: bool  # not the trainer's own segment, which works while the trainer waits

    @property
    def ms(self) -> float:
        """How long the segment takes for one training step's batches."""
        return sum(self.stages.values())


def feeds(path: str, consumer: str) -> bool:
    """Whether a stage is upstream of another: "Zip[1]::Map" is upstream of "Zip"."""
    return path.startswith((f"{consumer}::", f"{consumer}["))


def stage_table(stages: Iterable[StageTime], label: str, time_ms: Callable[[StageTime], float]) -> Table:
    """Return the table of stages with a time of each, in ms per training step, and what its label says of it."""
    stages = tuple(stages)
    inner = [("its slowest operation at", lambda stage: stage.slowest and stage.slowest[1])]
    return Table.of(
        stages,
        ("stage", lambda stage: stage.title),
        ("your line", lambda stage: stage.at or ("added by tf.data" if stage.injected else None)),
        (label, lambda stage: ms(time_ms(stage))),
        ("busy threads", lambda stage: count(stage.concurrency)),
        ("calls per step", lambda stage: count(stage.calls)),
        *(inner if any(stage.slowest for stage in stages) else ()),
    )


class InputPipeline(Record):
    """The stages of the training pipeline, consumers first, and its segments."""

    stages: tuple[StageTime, ...]
    segments: tuple[PipelineSegment, ...]
    python_kind: str = ""  # the Python object that feeds the run, when it is not tf.data
    idle: tuple[Dataset, ...] = ()  # with a function that did not run in the traced steps

    @classmethod
    def measure(
        cls, iterators: Iterators, steps: Steps, program: Program | None, graphs: FunctionGraphs | None
    ) -> Self:
        """Measure every stage, one that tf.data made inside another (such as a generator's) at its consumer's line.

        Keras makes the generator of a PyDataset in fit; what it runs is at ``batches_at``.

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
        stages: list[StageTime] = []
        for node in iterators.nodes.values():
            stage = _stage(node, batches, per_step, datasets)
            consumer = next((one.name for one in stages if one.path == stage.path.rpartition("::")[0]), "")
            if stage.kind == GENERATOR and DEVICE_PREFETCH in consumer:  # it waits for these batches, in C++
                stage = replace(stage, work_ms=0.0, wall_ms=0.0, python_ms=0.0)
            above = [one.dataset for one in stages if feeds(stage.path, one.path) and one.dataset]
            if stage.dataset is None and above and not stage.injected and not stage.is_root:
                at = (program.batches_at if stage.kind == GENERATOR else None) or above[-1].at
                stage = replace(stage, dataset=Dataset(id=above[-1].id, kind="", at=at))
            slowest = graphs.slowest(stage.dataset, stage.operations) if graphs and stage.operations else None
            stage = replace(stage, slowest=slowest)
            stages.append(stage)
        ran = {name for stage in stages for name in NUMBERED.findall(stage.name)}
        idle = tuple(one for one in fed if one.function_at and one.trace_name not in ran)
        return cls.of(*stages, python_kind=program.input_kind, idle=idle)

    @classmethod
    def of(cls, *stages: StageTime, python_kind: str = "", idle: tuple[Dataset, ...] = ()) -> Self:
        """Divide stages into segments: those of each thread, and each asynchronous stage's function."""
        ahead = [stage for stage in stages if stage.asynchronous]
        by_owner: dict[str, dict[str, float]] = {}
        for stage in stages:
            # The nearest asynchronous consumer, on whose thread it runs; "" is the trainer.
            consumers = (one.path for one in ahead if feeds(stage.path, one.path))
            members = by_owner.setdefault(max(consumers, key=len, default=""), {})
            if not stage.asynchronous:
                members[stage.path] = stage.wall_ms
        segments = [PipelineSegment(own, overlapped=bool(owner)) for owner, own in by_owner.items() if own]
        working = (stage for stage in ahead if stage.wall_ms)
        segments += [PipelineSegment({one.path: one.wall_ms}, overlapped=True) for one in working]
        return cls(stages, tuple(segments), python_kind, idle)

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
        return max(self.limiting, key=lambda stage: segment.stages[stage.path])

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
    calls = len(node.called)
    made = calls if 0.5 <= calls / batches <= 1.5 else batches  # noqa: PLR2004 - one a batch
    scale = per_step / made / PS_PER_MS
    # Parallel threads count once in the second: of a function, or of an interleave, which has several readers.
    ran = node.function if node.asynchronous else node.called
    every = sum(end - start for start, end in ran)
    work = every if node.asynchronous else node.self_ps
    wall = work * Intervals.union(ran).total / every if every else 0.0
    users = () if node.path in ROOTS or node.name.startswith(INJECTED) else NUMBERED.findall(node.name)
    matching = [datasets[one] for one in users if one in datasets]
    named = by_key((name, time) for (name, _), (time, _) in node.operations.items() if name)
    reading_ps, reads = node.of(READING)
    return StageTime(
        path=node.path,
        kind=node.kind,
        name=node.name,
        work_ms=max(0.0, work * scale),
        wall_ms=max(0.0, wall * scale),
        calls=calls / batches * per_step,
        python_ms=max(0.0, work if node.kind == GENERATOR else node.of(PYTHON)[0]) * scale,
        reading_ms=reading_ps * scale,
        reads=reads / made * per_step,
        image_ms=node.of(IMAGES)[0] * scale,
        operations={name: sum(times) * scale for name, times in named.items()},
        asynchronous=node.asynchronous,
        dataset=max(matching, key=lambda one: bool(one.function), default=None),  # of what tf.data fused
    )

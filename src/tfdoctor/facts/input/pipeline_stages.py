"""The stages of the input pipeline, and the segments that work in parallel."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tfdoctor.facts.run.program import Dataset
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Effect, Location, Stage, Table

ROOTS = ("Root", "Model")  # tf.data's own root of the pipeline, which has its first stage's name (Model before 2.6)
# The beginnings of the names of stages that work on threads of their own.
WORK_AHEAD = ("Prefetch", "Parallel", "MapAndBatch")
INJECTED = "inject/"  # The prefix of the names of stages that tf.data adds by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
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
    operations: Mapping[str, float] = field(default_factory=dict, hash=False)  # of its function, by name
    asynchronous: bool = False
    dataset: Dataset | None = None

    @classmethod
    def of(cls, path: str, work_ms: float = 0.0, threads: float = 1.0, **more: Any) -> Self:  # noqa: ANN401 - its fields
        """Build a stage that does its work on threads, for examples and tests; its kind ends its path."""
        kind = path.rpartition("::")[2]
        parts: dict[str, Any] = {"path": path, "kind": kind, "work_ms": work_ms}
        parts |= {"wall_ms": work_ms / threads, "asynchronous": kind.startswith(WORK_AHEAD)}
        return cls(**(parts | more))

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


@dataclass(frozen=True, slots=True)
class PipelineSegment:
    """Stages that work one after the other on one thread, or one stage's function on several threads.

    ``stages`` has the ms per training step of each stage, by path. The trainer's own segment is not
    ``overlapped``: it works while the trainer waits.
    """

    stages: Mapping[str, float]
    overlapped: bool

    @property
    def ms(self) -> float:
        """How long the segment takes for one training step's batches."""
        return sum(self.stages.values())


def segments_of(stages: tuple[StageTime, ...]) -> list[PipelineSegment]:
    """Divide stages into segments: those of each thread, and each asynchronous stage's function."""
    ahead = [stage for stage in stages if stage.asynchronous]
    by_owner: dict[str, dict[str, float]] = {}
    for stage in stages:
        # The nearest asynchronous consumer, on whose thread it runs; "" is the trainer.
        consumers = (one.path for one in ahead if feeds(stage.path, one.path))
        members = by_owner.setdefault(max(consumers, key=len, default=""), {})
        if not stage.asynchronous:
            members[stage.path] = stage.wall_ms
    segments = [PipelineSegment(members, overlapped=bool(owner)) for owner, members in by_owner.items() if members]
    working = (stage for stage in ahead if stage.wall_ms)
    segments += [PipelineSegment({one.path: one.wall_ms}, overlapped=True) for one in working]
    return segments


def feeds(path: str, consumer: str) -> bool:
    """Whether a stage is upstream of another: "Zip[1]::Map" is upstream of "Zip"."""
    return path.startswith((f"{consumer}::", f"{consumer}["))


def stage_table(stages: Iterable[StageTime], label: str, time_ms: Callable[[StageTime], float]) -> Table:
    """Return the table of stages with a time of each, in ms per training step, and what its label says of it."""
    return Table.of(
        stages,
        ("stage", lambda stage: stage.title),
        ("your line", lambda stage: stage.at or ("added by tf.data" if stage.injected else None)),
        (label, lambda stage: ms(time_ms(stage))),
        ("busy threads", lambda stage: count(stage.concurrency)),
        ("calls per step", lambda stage: count(stage.calls)),
    )

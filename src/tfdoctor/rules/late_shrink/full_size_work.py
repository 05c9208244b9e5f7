"""Work of the maps on images that the next operations shrink or crop, and what it would take after that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.decoded_images import RESIZERS
from tfdoctor.facts.input.function_graphs import FunctionGraphs
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.machine.cpu_contention import CpuContention
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.recording.program import RecordedOperation
from tfdoctor.rules.late_shrink.image_path import BRANCHES, CROPS, Path
from tfdoctor.rules.late_shrink.joined_maps import JoinedMaps, MapNode, Size
from tfdoctor.terms.verdict import Location


@dataclass(frozen=True, slots=True)
class FullSizeOperation:
    """An operation that would have fewer pixels after the shrinking; ms per training step, over all threads."""

    stage: StageTime
    name: str
    type: str
    ms: float
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class LateShrinking:
    """An operation that makes images smaller, and the work before it, in the order of the data."""

    type: str
    large: tuple[int, int]  # height and width in pixels
    small: tuple[int, int]
    work: tuple[FullSizeOperation, ...]
    at: Location | None = None

    @property
    def kept(self) -> float:
        """The share of the pixels that is left, 0 to 1."""
        return self.small[0] * self.small[1] / (self.large[0] * self.large[1])

    @property
    def crops(self) -> bool:
        """Whether it cuts a part out, and does not scale the whole."""
        return self.type in CROPS

    @property
    def spared_ms(self) -> float:
        """The time that the work takes less on the pixels that are left, in ms per step over all threads."""
        return sum(one.ms for one in self.work) * (1.0 - self.kept)

    @property
    def by_stage(self) -> Mapping[str, tuple[StageTime, float]]:
        """The stages at work, by path, and the ms per step that each is spared."""
        found: dict[str, tuple[StageTime, float]] = {}
        for one in self.work:
            before = found.get(one.stage.path, (one.stage, 0.0))[1]
            found[one.stage.path] = (one.stage, before + one.ms * (1.0 - self.kept))
        return found


@dataclass(frozen=True, slots=True)
class FullSizeWork:
    """The late shrinkings of the feeding pipeline whose work the trace shows, and what a step waits for.

    ``awaited`` are the paths of the stages that limit the input; ``contention`` is None where it is unknown
    whether the input takes cores from the model.
    """

    shrinkings: tuple[LateShrinking, ...] = ()
    awaited: frozenset[str] = frozenset()
    contention: CpuContention | None = None
    step_ms: float = 0.0

    @classmethod
    def measure(
        cls,
        pipeline: InputPipeline,
        properties: DatasetProperties,
        graphs: FunctionGraphs,
        breakdown: Breakdown,
        contention: CpuContention,
        cores: Cores | None,
    ) -> Self:
        """Follow the images back from each operation that makes them smaller.

        Raises:
            Unavailable: the trace does not show the operations of the maps' functions.
        """
        stages = {one.dataset.id: one for one in pipeline.stages if one.dataset and one.operations}
        if not stages:
            raise Unavailable("the trace does not show the operations of the pipeline's functions")
        found = _shrinkings(properties, stages, graphs)
        waited = pipeline.limiting if breakdown.waits_for_input else ()
        return cls(
            tuple(one for one in found if one is not None and one.work),
            frozenset(stage.path for stage in waited),
            contention if cores is not None and cores.certain else None,
            breakdown.step_ms,
        )

    def matters(self, late: LateShrinking, share: float, taken: float) -> bool:
        """Whether it is this share of what a step waits for, or takes this share of the step from the model."""
        for path, (stage, spared) in late.by_stage.items():
            if path in self.awaited and spared >= share * stage.work_ms:
                return True
        crowd = self.contention
        return crowd is not None and crowd.crowds_out(late.spared_ms, self.step_ms, taken)


def _shrinkings(
    properties: DatasetProperties, stages: Mapping[int, StageTime], graphs: FunctionGraphs
) -> Iterator[LateShrinking | None]:
    joined = JoinedMaps.of(properties.line(), graphs)
    stored = {data.files.image for data in properties.chain if data.files and data.files.image}
    image = next(iter(stored))[:2] if len(stored) == 1 else (None, None)
    for at, node in enumerate(joined.nodes):
        if _shrinks(node):
            yield _late(joined, at, stages, graphs, (image[0], image[1]))


def _shrinks(node: MapNode) -> bool:
    kind = node.operation.type
    return bool(RESIZERS.fullmatch(kind) or kind in CROPS) and bool(node.taken and node.size)


def _late(
    joined: JoinedMaps, at: int, stages: Mapping[int, StageTime], graphs: FunctionGraphs, stored: Size
) -> LateShrinking | None:
    """Return what comes before a shrinking and could follow it; None where a size is unknown or nothing shrinks."""
    node = joined.nodes[at]
    path = Path.of(joined, at)
    large, small = _known(node.taken, path, stored), _known(node.size, None, (None, None))
    if large is None or small is None or large[0] * large[1] <= small[0] * small[1]:
        return None
    work = (
        FullSizeOperation(stage, operation.name, operation.type, spent, graphs.at(operation))
        for one in path.moved
        if (stage := stages.get(joined.nodes[one].dataset.id)) is not None
        and (spent := _spent(operation := joined.nodes[one].operation, stage))
    )
    return LateShrinking(node.operation.type, large, small, tuple(work), graphs.at(node.operation))


def _known(size: Size | None, path: Path | None, stored: Size) -> tuple[int, int] | None:
    """Return a size without open dimensions: that of the stored images where a decoder begins the path."""
    if size == (None, None) and path is not None and path.decodes:
        size = stored
    return (size[0], size[1]) if size and size[0] and size[1] else None


def _spent(operation: RecordedOperation, stage: StageTime) -> float:
    """Return an operation's ms per step: under its name, as part of a branch, or under one that TensorFlow gave it.

    The graph optimizer calls what it puts in the place of `name` "ArithmeticOptimizer/AddOpsRewrite_name".
    """
    name, branch = operation.name, operation.type in BRANCHES
    return sum(
        spent
        for ran, spent in stage.operations.items()
        if ran == name
        or (branch and ran.startswith(f"{name}/"))
        or ("Optimizer/" in ran and ran.endswith(f"_{name}"))
    )

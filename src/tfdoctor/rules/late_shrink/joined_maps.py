"""The functions of successive maps as one graph, so that an image can be followed from map to map."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.map_functions import FunctionGraphs
from tfdoctor.facts.run.operation_types import SHAPES
from tfdoctor.facts.run.program import Dataset, kind_of
from tfdoctor.recording.program import RecordedOperation, TensorType

# Kinds of datasets between two maps that pass on the elements, alone or stacked.
PASSING = frozenset(
    ("Shuffle", "Prefetch", "Options", "Repeat", "Take", "Skip", "Shard", "Cache", "Batch", "ParallelBatch")
)  # fmt: skip

MAPS = frozenset(("Map", "ParallelMap"))

Size = tuple[int | None, int | None]  # Height and width in pixels; None is open


@dataclass(frozen=True, slots=True)
class MapNode:
    """An operation of a map's function; ``sources`` are positions among all nodes."""

    dataset: Dataset
    operation: RecordedOperation
    sources: tuple[int, ...] = ()

    @property
    def size(self) -> Size | None:
        """Height and width of the image, or images, that it gives; None where it gives none."""
        return size_of(self.operation.outputs[0]) if self.operation.outputs else None

    @property
    def taken(self) -> Size | None:
        """Height and width of the image that it takes first."""
        return size_of(self.operation.inputs[0]) if self.operation.inputs else None


@dataclass(frozen=True, slots=True)
class JoinedMaps:
    """The nodes of successive maps, each behind those that it takes results of."""

    nodes: tuple[MapNode, ...] = ()

    @classmethod
    def of(cls, line: Sequence[Dataset], graphs: FunctionGraphs) -> Self:
        """Join the maps of a line of datasets, the trainer's first, where the next takes the results of one."""
        nodes: list[MapNode] = []
        given: list[int] = []  # results of the map before, where elements pass as they are
        for dataset in reversed(line):
            graph = graphs.of(dataset)
            if kind_of(dataset) not in MAPS or graph is None:
                given = given if kind_of(dataset) in PASSING else []
                continue
            # Tensors that it captures are placeholders too, behind its arguments.
            arguments = [at for at, one in enumerate(graph.operations) if one.type == "Placeholder"]
            taken = [graph.operations[at].outputs[:1] for at in arguments[: len(given)]]
            made = [nodes[at].operation.outputs[:1] for at in given]
            fit = len(taken) == len(made) and all(map(_alike, taken, made))
            joined = dict(zip(arguments, given, strict=False)) if fit else {}
            first = len(nodes)
            for at, operation in enumerate(graph.operations):
                own = tuple(first + source for source in operation.sources if source is not None)
                nodes.append(MapNode(dataset, operation, (joined[at],) if at in joined else own))
            used = {source for node in nodes[first:] for source in node.sources}
            results = (at for at in range(first, len(nodes)) if nodes[at].operation.type == "Identity")
            given = [at for at in results if at not in used]  # TensorFlow makes an Identity of each
        return cls(tuple(nodes))

    def before(self, starts: Iterable[int], without: int | None = None) -> set[int]:
        """Return the nodes whose values reach some nodes, with these, on ways that avoid a node."""
        reached: set[int] = set()
        waiting = [start for start in starts if start != without]
        while waiting:
            at = waiting.pop()
            if at not in reached:
                reached.add(at)
                if self.nodes[at].operation.type not in SHAPES:
                    waiting.extend(one for one in self.nodes[at].sources if one != without)
        return reached

    @property
    def ends(self) -> set[int]:
        """The nodes whose results no other takes: those of the last map, and assertions."""
        used = {source for node in self.nodes for source in node.sources}
        return {at for at, node in enumerate(self.nodes) if at not in used and node.operation.type != "Placeholder"}


def size_of(tensor: TensorType) -> Size | None:
    """Return the height and width of a tensor of images, alone or stacked; None of another tensor."""
    shape = tensor[1]
    images = shape is not None and len(shape) in {3, 4} and shape[-1] in {1, 3, 4}
    return (shape[-3], shape[-2]) if shape and images else None


def _alike(taken: tuple[TensorType, ...], made: tuple[TensorType, ...]) -> bool:
    return bool(taken and made) and taken[0][0] == made[0][0] and size_of(taken[0]) == size_of(made[0])

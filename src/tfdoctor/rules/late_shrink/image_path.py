"""The operations on an image, from where it could be made smaller to where it is."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.decoded_images import DECODERS
from tfdoctor.facts.run.operation_types import RANDOM
from tfdoctor.rules.late_shrink.joined_maps import JoinedMaps, MapNode

CROPS = frozenset(("Slice", "StridedSlice"))
"""Operations that cut a part of an image out."""

PIXELWISE = frozenset(
    ("Abs", "Add", "AddN", "AddV2", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "Cast",
     "CheckNumerics", "ClipByValue", "Div", "DivNoNan", "EnsureShape", "Equal", "Exp", "ExpandDims", "Floor",
     "Greater", "GreaterEqual", "HSVToRGB", "Identity", "Less", "LessEqual", "Log", "Log1p", "LogicalAnd",
     "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mul", "Neg", "Placeholder", "Pow", "RGBToHSV",
     "RealDiv", "Relu", "Round", "Rsqrt", "Select", "SelectV2", "Sigmoid", "Sqrt", "Square",
     "SquaredDifference", "Squeeze", "Sub", "Tanh")
)  # fmt: skip
"""Operations whose result at a pixel needs that pixel alone, and perhaps a mean: they may follow a shrinking."""

MIRRORS = frozenset(("ReverseV2", "Transpose", "If", "StatelessIf", "ImageProjectiveTransformV3"))
"""Operations that move pixels: they may follow a resize of the whole image, and a crop at a random place."""

SCALARS = frozenset(
    ("Const", "NoOp", "Shape", "Rank", "Size", "StridedSlice", "Pack", "Range", "ConcatV2", "Merge", "Switch",
     "RandomUniform", "RandomUniformInt", "StatelessRandomUniformV2", "StatelessRandomGetKeyCounter",
     "StatelessRandomGetAlg", "StatelessRandomUniformIntV2")
)  # fmt: skip
"""Operations on the numbers beside the images within a branch, as tf.image makes them."""

BRANCHES = frozenset(("If", "StatelessIf"))

INTEGER = re.compile(r"u?int\d+")
"""Types of a picture's numbers as stored: a resize makes them float, and a conversion after it would not scale."""


@dataclass(frozen=True, slots=True)
class Path:
    """The nodes that work on an image before a shrinking and could follow it; ``decodes``: a decoder is first."""

    moved: tuple[int, ...]
    decodes: bool

    @classmethod
    def of(cls, joined: JoinedMaps, at: int) -> Self:
        """Walk back from a shrinking, while nothing but it gets to see the image at full size."""
        node = joined.nodes[at]
        if not node.sources:
            return cls((), decodes=False)
        image, *others = node.sources
        chosen, before = joined.before(others), joined.before([image])
        seen = chosen | joined.before(joined.ends, without=at)
        drawn = any(RANDOM.search(joined.nodes[one].operation.type) for one in chosen)
        rules = _Order(joined, crops=node.operation.type in CROPS, drawn=drawn)
        begin = rules.begin(image, before, seen)
        later = before - seen - joined.before([begin])
        moved = (one for one in sorted(later) if rules.counts(one, node, begin))
        return cls(tuple(moved), bool(DECODERS.fullmatch(joined.nodes[begin].operation.type)))


@dataclass(frozen=True, slots=True)
class _Order:
    """Which operations may follow a shrinking of a kind: a crop, ``drawn`` at random or not, or a resize."""

    joined: JoinedMaps
    crops: bool
    drawn: bool

    def begin(self, image: int, before: Iterable[int], seen: set[int]) -> int:
        """Return the first node whose image could be made smaller instead of this one."""
        begins: dict[int, int] = {}
        for one in sorted(before):
            node = self.joined.nodes[one]
            begins[one] = one
            if one not in seen and self._may_follow(node):
                earlier = {begins[source] for source in self._images(node)}
                begins[one] = earlier.pop() if len(earlier) == 1 else one
        return begins[image]

    def counts(self, one: int, shrinking: MapNode, begin: int) -> bool:
        """Whether a node works on the full image, and is no part of the line that makes its numbers float."""
        node, first = self.joined.nodes[one], self.joined.nodes[begin]
        full = shrinking.taken in {node.size, node.taken}
        return full and not (_converts(first) and node.operation.at == first.operation.at)

    def _images(self, node: MapNode) -> list[int]:
        return [one for one in node.sources if self.joined.nodes[one].size == node.size]

    def _may_follow(self, node: MapNode) -> bool:
        if node.size is None or (not self.crops and _converts(node)):
            return False
        kind = node.operation.type
        mirrors = kind in MIRRORS and (self.drawn or not self.crops)
        if kind not in PIXELWISE and not (mirrors and self._known(node)):
            return False
        others = set(node.sources) - set(self._images(node))
        # A crop has another mean than the whole image.
        whole = any(self.joined.nodes[one].size for one in self.joined.before(others))
        return not (self.crops and whole)

    def _known(self, node: MapNode) -> bool:
        """Whether the operations within a branch, which are recorded as types alone, may follow too."""
        if node.operation.type not in BRANCHES:
            return True
        own = {one.operation.type for one in self.joined.nodes if one.dataset is node.dataset}
        return (node.dataset.types or {"unknown"}) - own <= PIXELWISE | MIRRORS | SCALARS


def _converts(node: MapNode) -> bool:
    """Whether a node makes floats of the integers of a stored image."""
    operation = node.operation
    taken = operation.inputs[0][0] if operation.inputs else ""
    return operation.type == "Cast" and bool(INTEGER.fullmatch(taken))

"""The shapes of a tensor that the traces of a function were given."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

SEVERAL = 2
"""Different shapes from which on the shape is what changes."""

SHAPED = re.compile(r"TensorSpec\(shape=\((\w+(?:, \w+)*),?\)(?:, dtype=(tf\.\w+))?")
"""A tensor's shape; the groups are its dimensions and its type."""


@dataclass(frozen=True, slots=True)
class GivenShapes:
    """The shapes, each as its dimensions, and the tensor's type, "" if unknown."""

    shapes: tuple[tuple[str, ...], ...]
    dtype: str = ""

    @classmethod
    def of(cls, changed: Sequence[str]) -> Self | None:
        """Read them from the arguments of the traces; None where it is not the shape that changes."""
        found = [match for value in changed if (match := SHAPED.match(value))]
        shapes = tuple(tuple(match[1].split(", ")) for match in found)
        if len(found) < len(changed) or len(set(shapes)) < SEVERAL:
            return None
        return cls(shapes, found[0][2] or "")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The values of the first dimension behind the batch size that differs; () where none does."""
        behind = zip(*(shape[1:] for shape in self.shapes), strict=False)
        differing = next((values for values in behind if len(set(values)) > 1), ())
        return tuple(int(value) for value in differing if value.isdecimal())

    @property
    def rows(self) -> str:
        """The size of the largest batch, as code."""
        return str(max((int(shape[0]) for shape in self.shapes if shape[0].isdecimal()), default="batch_size"))

    @property
    def signature(self) -> str:
        """A signature for all of them, as code."""
        dimensions = [values[0] if len(set(values)) == 1 else "None" for values in zip(*self.shapes, strict=False)]
        same = len({len(shape) for shape in self.shapes}) == 1
        shape = f"[{', '.join(dimensions)}]" if same else "None"
        return f"tf.TensorSpec({', '.join(filter(None, (shape, self.dtype)))})"

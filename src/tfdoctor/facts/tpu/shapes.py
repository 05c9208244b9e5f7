"""Arrays in HLO text, such as "bf16[32,144]{1,0:T(8,128)(2,1)S(5)}"."""

from tfdoctor.facts.kit import *

# A type and sizes, and for a laid-out array the order of its dimensions, its tiles and memory space.
ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,<=]*)\](?:\{([\d,]*)(?::([^{}]*))?\})?")
TILE = re.compile(r"T((?:\([\d,*]+\))+)")
SPACE = re.compile(r"S\((\d+)\)")
BITS = re.compile(r"(?:pred|[a-z]+?)(\d+)")  # The width in a type's name: bf16, f32, s8, u4, f8e4m3fn


class Array(Record):
    """An array and its layout."""

    dtype: str
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...] = ()
    tile: tuple[int, ...] = ()  # the first one: (8, 128), the last of it for the minor dimension
    space: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of its elements, without padding; predicates take a byte each."""
        digits = BITS.match(self.dtype)
        return ceil(prod(self.dims) * (int(digits[1]) if digits else 8) / 8)

    @property
    def width(self) -> int | None:
        """The size of the dimension that varies fastest, which lies in the lanes; None for a scalar."""
        if not self.dims:
            return None
        at = self.minor_to_major[0] if self.minor_to_major else len(self.dims) - 1
        return self.dims[at] if at < len(self.dims) else None


def arrays(text: str) -> tuple[Array, ...]:
    """Return the arrays in an instruction's text: its results, then its operands."""
    found = []
    for dtype, sizes, order, layout in ARRAY.findall(text):
        tile, space = TILE.search(layout), SPACE.search(layout)
        first = tile[1].partition(")")[0].lstrip("(") if tile else ""
        padded = tuple(int(size) for size in first.split(",") if size.isdigit())
        dims, minor_to_major = (
            tuple(int(number.strip("<=")) for number in part.split(",") if number.strip("<="))
            for part in (sizes, order)
        )
        found.append(Array(dtype, dims, minor_to_major, padded, int(space[1]) if space else 0))
    return tuple(found)

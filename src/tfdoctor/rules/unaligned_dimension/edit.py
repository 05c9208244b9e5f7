"""The edit that gives the layers of a line another width, where the file shows the number."""

import re

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.widths import width

_WIDTHS = re.compile(r"^(\d+)  ->  (\d+)")


def layer_width(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Write the second width of the rule's example for the first."""
    found = _WIDTHS.match(example)
    if found is None:
        raise Declined("the finding does not name the width")
    return width(module, line, (int(found[1]), int(found[2])), ())


EDITS: dict[str, Kind] = {"layer-width": layer_width}

"""The edit that gives the layers of a line another width, where the file shows the number."""

from tfdoctor.edits.kit import *
from tfdoctor.edits.sizes import width


def layer_width(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Write the second width of the rule's example for the first."""
    before, after = map(int, in_example(r"\A(\d+)  ->  (\d+)", example, "the width").groups())
    return width(module, line, (before, after))


EDITS = {"layer-width": layer_width}

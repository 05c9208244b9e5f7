"""The cases of layout-change: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.layout_change import Conversion, Layouts, check


def example(*, back: bool = True) -> Verdict:
    """The model transposes to channels last for a convolution, and back."""
    conversions = []
    for layer, to_last in [("permute", True), *([("permute_1", False)] if back else [])]:
        name, at = f"model/{layer}/transpose", Location("train.py", 8)
        graph = Operation(name=name, type="Transpose", layer=layer)
        row = OperationTime(name=name, type="Transpose", ms=2.0, layer=layer, at=at, operation=graph)
        conversions.append(Conversion(graph, to_last, (row,)))
    rows = [row for conversion in conversions for row in conversion.rows]
    operations = Operations.training(30.0 + 2.0 * len(rows), *rows)
    return check(Layouts(tuple(conversions)), operations, Hardware(DeviceKind.CPU, "example"))


sick = example


def healthy() -> Verdict:
    """The model converts its input once."""
    return example(back=False)

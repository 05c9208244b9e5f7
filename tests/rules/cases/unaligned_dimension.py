"""The cases of unaligned-dimension: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.run.hardware import Tile
from tfdoctor.rules.precision.unaligned_dimension import AlignedTimes, check


def conv(channels: int = 33) -> OperationTime:
    """Build a convolution to so many channels."""
    name = "model/conv2d/convolution"
    tensors = (("float32", (32, 32, 32, 32)), ("float32", (3, 3, 32, channels)))
    return OperationTime(
        name=name,
        type="Conv2D",
        ms=14.5,
        layer="conv2d",
        at=Location("train.py", 9),
        operation=Operation(name=name, type="Conv2D", inputs=tensors),
    )


CPU = Hardware(DeviceKind.CPU, "example", tile=Tile(16, "an example"))


def example(*rows: OperationTime, hardware: Hardware = CPU, aligned: AlignedTimes | None = None) -> Verdict:
    """A convolution has 33 channels where the hardware pads to 16."""
    return check(Operations(rows or (conv(),)), hardware, aligned)


sick = example


def healthy() -> Verdict:
    """The convolution has 32 channels."""
    return example(conv(32))

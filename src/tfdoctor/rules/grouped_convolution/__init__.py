from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.layer_times import LayerTime, by_layer
from tfdoctor.rules.grouped_convolution.grouped import GroupedConvolution, GroupedConvolutions
from tfdoctor.terms.units import flop_rate

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(
        DeviceKind.CPU,
        DeviceKind.TPU,
        verdict=NotApplicable(reason="grouped convolutions are compared on GPUs only"),
    ),
)
BY_HAND = "it changes the model, so its accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which grouped convolutions are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in slow grouped convolutions that justifies changing a model"
    )
    reached: float = share_limit(
        0.5,
        "Smallest share of the fastest regular convolution's FLOP rate from which a grouped one counts as fast "
        "enough: regular convolutions of different widths differ by as much",
    )


def check(
    grouped: GroupedConvolutions, operations: Operations, hardware: Hardware, limits: Limits = Limits()
) -> Verdict:
    """Compare the rate of each grouped convolution with that of the fastest regular one."""
    if not grouped.rows:
        return Healthy(summary="The step runs no grouped convolution")
    rate = grouped.regular_flop_s
    if not rate:
        why = "the step runs no regular convolution in the same precision to compare grouped ones with"
        return NotApplicable(reason=why)
    slow = [one for one in grouped.rows if one.flop_s < limits.reached * rate]
    rows = [one.row for one in slow or grouped.rows]
    part = operations.part(sum(row.ms for row in rows))
    reached = sum((row.flops or 0.0) * row.calls for row in rows) / (part.ms * 1e-3)
    measures: tuple[Evidence, ...] = (
        *part.measures("in these grouped convolutions", limits.share),
        Measure("FLOP rate of these grouped convolutions", flop_rate(reached)),
        Measure("FLOP rate of the fastest regular convolution", flop_rate(rate)),
        Measure("share of that rate", ratio(reached / rate), ratio(limits.reached)),
    )
    if not slow or part.share < limits.share:
        return Healthy(summary=f"Grouped convolutions take {part}", evidence=measures)
    peak = max(rate, hardware.peak_flop_s or 0.0)
    return Finding(
        summary=f"Grouped convolutions take {part}, at a low FLOP rate",
        evidence=(*measures, _table(slow)),
        remedies=(Remedy(ACTION, REGULAR, next((row.at for row in rows if row.at), None)),),
        effects=tuple(one.row.scaled(one.flop_s / peak, Bound.AT_MOST) for one in slow),
    )


ACTION = "Try regular convolutions or fewer groups, and compare the time and the accuracy"

REGULAR = "x = keras.layers.Conv2D(filters, 3, padding='same', groups=1)(x)  # or fewer filters"


def _table(slow: list[GroupedConvolution]) -> Table:
    groups = {one.row.layer or one.row.name: one.groups for one in slow}
    rates = {one.row.name: one for one in slow}

    def rate(layer: LayerTime) -> float:
        known = [rates[row.name].row for row in layer.rows]
        return sum((row.flops or 0.0) * row.calls for row in known) / (layer.ms * 1e-3)

    return Table.of(
        by_layer(one.row for one in slow),
        ("layer", lambda layer: layer.name),
        ("your line", lambda layer: layer.at),
        ("groups", lambda layer: count(groups[layer.name])),
        ("time per step", lambda layer: ms(layer.ms)),
        ("FLOP rate", lambda layer: flop_rate(rate(layer))),
    )


def convolution(layer: str, groups: int, time_ms: float) -> OperationTime:
    """Build a 3 x 3 convolution of 128 channels, for examples and tests."""
    images, kernel = (32, 56, 56, 128), (3, 3, 128 // groups, 128)
    graph = Operation(
        name=f"{layer}/convolution", type="Conv2D",
        inputs=(("float32", images), ("float32", kernel)), outputs=(("float32", images),),
    )  # fmt: skip
    return OperationTime(
        name=graph.name, type=graph.type, ms=time_ms, layer=layer, at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 56 * 56 * 128 * 9 * 128 / groups,
    )  # fmt: skip

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.operation_time import by_layer, flop_s
from tfdoctor.rules.grouped_convolution.grouped import GroupedConvolutions
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
    share: float = share_limit(0.05)
    reached: float = share_limit(0.5)


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
    slow = [row for row in grouped.rows if row.flop_s < limits.reached * rate]
    rows = slow or grouped.rows
    part, reached = operations.part(sum(row.ms for row in rows)), flop_s(rows) or 0.0
    more = (
        Measure("FLOP rate of these grouped convolutions", flop_rate(reached)),
        Measure("FLOP rate of the fastest regular convolution", flop_rate(rate)),
        Measure("share of that rate", ratio(reached / rate), ratio(limits.reached)),
    )
    summary, work = f"Grouped convolutions take {part}", "in these grouped convolutions"
    if not slow:
        return Healthy(summary=summary, evidence=(*part.measures(work, limits.share), *more))
    peak, at = max(rate, hardware.peak_flop_s or 0.0), next((row.at for row in rows if row.at), None)
    table = Table.of(
        by_layer(slow),
        ("layer", lambda layer: layer.name),
        ("your line", lambda layer: layer.at),
        ("groups", lambda layer: count(grouped.groups[layer.name])),
        ("time per step", lambda layer: ms(layer.ms)),
        ("FLOP rate", lambda layer: flop_rate(flop_s(layer.rows) or 0.0)),
    )
    return spared(
        part,
        limits.share,
        work,
        [(row, row.flop_s / peak) for row in slow],
        healthy=summary,
        finding=f"{summary}, at a low FLOP rate",
        remedies=[Remedy(ACTION, REGULAR, at)],
        more=more,
        shown=[table],
        bound=Bound.AT_MOST,
    )


ACTION = "Try regular convolutions or fewer groups, and compare the time and the accuracy"

REGULAR = "x = keras.layers.Conv2D(filters, 3, padding='same', groups=1)(x)  # or fewer filters"

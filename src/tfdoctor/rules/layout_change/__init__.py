from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.layout_change.layouts import Layouts

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "the shapes and weights of all layers depend on the data format"


def check(layouts: Layouts, operations: Operations, hardware: Hardware) -> Verdict:
    """Remove the superfluous conversions, and those that the device does inside other operations."""
    # kernels inside a conversion of the model belong to it: it is counted already, or is the first one
    own = [row for conversion in layouts.conversions for row in conversion.rows]
    inside = [(row, time) for row, time in layouts.inside if row not in own]
    rows = [row for conversion in layouts.superfluous for row in conversion.rows]
    total_ms = sum(row.ms for row in rows) + sum(time for _, time in inside)
    if not total_ms:
        return _no_finding(layouts, operations)
    bound = Bound.EXPECTED if hardware.kind == DeviceKind.CPU else Bound.AT_MOST
    table: list[tuple[Cell, ...]] = [
        (one.operation.layer or one.operation.name, one.rows[0].at or "unknown",
         "to channels last" if one.to_last else "to channels first", ms(one.ms))
        for one in layouts.superfluous
    ]  # fmt: skip
    table += [
        (row.layer or row.name, row.at or "unknown", f"inside {row.type}", ms(time))
        for row, time in sorted(inside, key=lambda pair: -pair[1])
    ]
    remedies = []
    if rows:
        at = next((row.at for row in rows if row.at), None)
        remedies.append(Remedy("Use one data format in the whole model", CODE["one-format"], at))
    if inside and hardware.kind == DeviceKind.TPU:
        remedies.append(Remedy("Order dimensions as the next operation needs them", CODE["for-tpu"]))
    elif inside:
        action = "Run convolutions in 16-bit precision with channels-last data"
        remedies.append(Remedy(action, CODE["sixteen-bit"]))
    return Finding(
        summary=f"Changing the layout of tensors takes {milliseconds(total_ms)} per step",
        evidence=(
            *operations.part(total_ms).measures("in avoidable layout changes"),
            Table(("layer", "your line", "conversion", "time per step"), tuple(table)),
        ),
        remedies=tuple(remedies),
        effects=(
            *(row.scaled(0.0, bound) for row in rows),
            *(row.scaled(1.0 - time / row.ms, Bound.AT_MOST) for row, time in inside),
        ),
    )


def _no_finding(layouts: Layouts, operations: Operations) -> Verdict:
    if why := operations.why_unnamed or layouts.unknown:
        return NotApplicable(reason=why)
    if not layouts.conversions:
        return Healthy(summary="The step never changes the data format of images")
    spent = milliseconds(sum(conversion.ms for conversion in layouts.conversions))
    number = counted(len(layouts.conversions), "conversion").capitalize()
    return Healthy(summary=f"{number} of the data format, in one direction only: {spent} per step")

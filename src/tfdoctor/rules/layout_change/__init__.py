from tfdoctor.diagnosis.kit import *
from tfdoctor.rules.layout_change.layouts import Conversion, Layouts

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "the shapes and weights of all layers depend on the data format"

Inside = list[tuple[OperationTime, float]]
"""Operations that convert layouts, and how many ms per step each spends on it."""


def check(layouts: Layouts, operations: Operations, hardware: Hardware) -> Verdict:
    """Remove the superfluous conversions, and those that the device does inside other operations."""
    superfluous = [row for conversion in layouts.superfluous for row in conversion.rows]
    # kernels inside a conversion of the model belong to it: it is counted already, or is the first one
    own = [row for conversion in layouts.conversions for row in conversion.rows]
    inside = [(row, time) for row, time in layouts.inside if row not in own]
    total_ms = sum(row.ms for row in superfluous) + sum(time for _, time in inside)
    if total_ms:
        return _finding(layouts, inside, total_ms, operations, hardware)
    if operations.why_unnamed or layouts.unknown:
        return NotApplicable(reason=operations.why_unnamed or layouts.unknown)
    if layouts.conversions:
        spent = milliseconds(sum(conversion.ms for conversion in layouts.conversions))
        number = counted(len(layouts.conversions), "conversion").capitalize()
        return Healthy(summary=f"{number} of the data format, in one direction only: {spent} per step")
    return Healthy(summary="The step never changes the data format of images")


def _finding(
    layouts: Layouts, inside: Inside, total_ms: float, operations: Operations, hardware: Hardware
) -> Finding:
    bound = Bound.EXPECTED if hardware.kind == DeviceKind.CPU else Bound.AT_MOST
    rows = [row for conversion in layouts.superfluous for row in conversion.rows]
    return Finding(
        summary=f"Changing the layout of tensors takes {milliseconds(total_ms)} per step",
        evidence=(
            *operations.part(total_ms).measures("in avoidable layout changes"),
            _table(layouts.superfluous, inside),
        ),
        remedies=tuple(_remedies(rows, inside, hardware)),
        effects=(
            *(row.scaled(0.0, bound) for row in rows),
            *(row.scaled(1.0 - time / row.ms, Bound.AT_MOST) for row, time in inside),
        ),
    )


def _table(superfluous: tuple[Conversion, ...], inside: Inside) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (conversion.operation.layer or conversion.operation.name,
         conversion.rows[0].at or "unknown",
         "to channels last" if conversion.to_last else "to channels first", ms(conversion.ms))
        for conversion in superfluous
    ]  # fmt: skip
    rows += [
        (row.layer or row.name, row.at or "unknown", f"inside {row.type}", ms(time))
        for row, time in sorted(inside, key=lambda pair: -pair[1])
    ]
    return Table(("layer", "your line", "conversion", "time per step"), tuple(rows))


def _remedies(superfluous: list[OperationTime], inside: Inside, hardware: Hardware) -> Iterator[Remedy]:
    if superfluous:
        at = next((row.at for row in superfluous if row.at), None)
        yield Remedy("Use one data format in the whole model", CODE["one-format"], at)
    if inside and hardware.kind == DeviceKind.TPU:
        yield Remedy("Order dimensions as the next operation needs them", CODE["for-tpu"])
    elif inside:
        action = "Run convolutions in 16-bit precision with channels-last data"
        yield Remedy(action, CODE["sixteen-bit"])

from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class GroupedConvolutions(Record):
    """The grouped convolutions whose FLOPs are known, forward or gradients."""

    rows: tuple[OperationTime, ...]
    groups: Mapping[str, int] = field(default_factory=dict)  # by layer or name
    regular_flop_s: float | None = None  # the rate of the fastest regular one; None is unknown

    @classmethod
    def measure(cls, operations: Operations) -> Self:
        """Find them by their shapes: the kernel has fewer input channels than the images.

        Raises:
            Unavailable: the trace does not contain the shapes of the convolutions.
        """
        rows = [row for row in operations.matrix if row.type in CONVOLUTIONS]
        known = [(row, groups) for row in rows if (groups := groups_of(row))]
        if rows and not known:
            raise Unavailable("the shapes of the convolutions are unknown")
        if not rows and operations.why_unlisted:
            raise Unavailable(operations.why_unlisted)
        timed = [(row, groups) for row, groups in known if row.flops and row.ms]
        grouped = tuple(row for row, groups in timed if groups > 1)
        same = {row.precision for row in grouped}
        regular = (row for row, groups in timed if groups == 1 and row.precision in same)
        return cls(grouped, {row.layer or row.name: of for row, of in timed if of > 1}, fastest_flop_s(regular))


def groups_of(row: OperationTime) -> int | None:
    """Return into how many groups a convolution divides the channels; None where a size is unknown."""
    graph, kernel = row.operation, row.kernel
    if graph is None or graph.compiled or kernel is None or len(kernel) < 4:  # noqa: PLR2004 - with the groups' channels
        return None
    images = graph.outputs if row.type.rstrip("V2").endswith("Input") else graph.inputs
    shape = images[0][1] if images else None
    if not shape or not kernel[-2]:
        return None
    channels = shape[1] if graph.attrs.data_format.startswith("NC") else shape[-1]
    return channels // kernel[-2] if channels and channels % kernel[-2] == 0 else None


NONE_ALIKE = "the step runs no regular convolution in the same precision to compare grouped ones with"
PRECONDITIONS = (only_on(DeviceKind.GPU, "grouped convolutions are compared on GPUs only"),)


class Limits(RuleLimits):
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
        return NotApplicable(reason=NONE_ALIKE)
    slow = [row for row in grouped.rows if row.flop_s < limits.reached * rate]
    rows = slow or grouped.rows
    part, reached = operations.part(sum(row.ms for row in rows)), flop_s(rows) or 0.0
    more = (
        Measure("FLOP rate of these grouped convolutions", flop_rate(reached)),
        Measure("FLOP rate of the fastest regular convolution", flop_rate(rate)),
        Measure("share of that rate", ratio(reached / rate), ratio(limits.reached)),
    )
    summary, work = f"Grouped convolutions take {part}", "in these grouped convolutions"
    peak, at = max(rate, hardware.peak_flop_s or 0.0), next((row.at for row in rows if row.at), None)
    table = layer_table(
        slow,
        ("groups", lambda layer: count(grouped.groups[layer.name])),
        ("FLOP rate", lambda layer: flop_rate(flop_s(layer.rows) or 0.0)),
        types=False,
    )
    action = "Try regular convolutions or fewer groups, and compare the time and the accuracy"
    return spared(
        part,
        limits.share,
        work,
        [(row, row.flop_s / peak) for row in slow],
        healthy=summary,
        wrong=bool(slow) and part.share >= limits.share,
        finding=f"{summary}, at a low FLOP rate",
        remedies=[Remedy(action, CODE["regular"], at)],
        more=more,
        shown=[table],
    )

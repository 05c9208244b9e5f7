from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Positions of the kernel of the regular convolution that replaces a larger one: 3 x 3, as in the fused MBConv of
# EfficientNetV2 (https://arxiv.org/abs/2104.00298, section 3.2).
REPLACEMENT = 9
# The scope of gradients inside the body of a loop, before the name of the forward operation and ``_grad``.
IN_LOOP = "gradients/"
KERNEL = 1  # The position of the kernel among the inputs of a depthwise convolution


class FixedConvolution(Record, OperationRows):
    """A depthwise convolution with a constant kernel, and its gradient."""

    rows: tuple[OperationTime, ...]
    size: tuple[int, int] | None = None  # the kernel's height and width; None is unknown
    separable: bool = False  # the kernel is a column times a row in each channel, without strides
    at: Location | None = None

    @property
    def left(self) -> float:
        """The share of the arithmetic that two convolutions with a column and a row do; 1 where there are none."""
        if self.size is None or not self.separable:
            return 1.0
        height, width = self.size
        return min(1.0, (height + width) / (height * width))


class FixedKernels(Record):
    """The depthwise convolutions with constant kernels, those of most time first."""

    rows: tuple[FixedConvolution, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Follow the kernel of each convolution to what it is computed from."""
        groups: dict[str, list[OperationTime]] = defaultdict(list)
        for row in operations.rows:
            if not row.is_depthwise:
                continue
            name = in_body(row.built)
            before, scope, inner = name.rpartition(IN_LOOP)
            if scope and (not before or before.endswith("/")):
                name = inner.rpartition("/")[0].removesuffix("_grad")
            elif name.startswith(GRADIENT_SCOPE):
                name = name.removeprefix(GRADIENT_SCOPE).rpartition("/")[0]
            groups[name].append(row)  # a gradient with the convolution that it belongs to
        found = []
        for name, rows in groups.items():
            made = dataflow.program.by_name.get(name)
            if made is None or not any(map(dataflow.is_fixed, made.sources[KERNEL : KERNEL + 1])):
                continue
            kernel, tensors = dataflow.source(made, KERNEL), made.inputs[KERNEL : KERNEL + 1]
            sizes = [size for size in (tensors[0][1] or ())[:2] if size] if tensors else []
            separable = kernel is not None and kernel.separable and set(made.attrs.strides) <= {1}
            size = (sizes[0], sizes[1]) if len(sizes) > 1 else None
            found.append(FixedConvolution(tuple(rows), size, separable, dataflow.program.line_of(made)))
        return cls(tuple(sorted(found, key=lambda one: -one.ms)))


class Limits(RuleLimits):
    share: float = share_limit(0.005)
    on_cpu: float = share_limit(0.10)
    constant: float = share_limit(0.02)
    left: float = share_limit(0.5)


ACTION = "Try a regular convolution instead of depthwise plus pointwise in the early stages"
MEASURE = "Measure a regular convolution, or a smaller depthwise kernel, before changing the model"


def check(
    operations: Operations, hardware: Hardware, fixed: FixedKernels | None, limits: Limits = Limits()
) -> Verdict:
    """Compare the time of depthwise convolutions with the time to move their bytes, and constant kernels alone."""
    constant = fixed.rows if fixed else ()
    names = {row.name for one in constant for row in one.rows}
    rows = [row for row in operations.rows if row.is_depthwise and row.name not in names]
    if rows:
        layers = _layers(rows, operations, hardware, limits)
    else:
        constant_ms = sum(one.ms for one in constant)
        takes = f"Depthwise convolutions, all with constant kernels, take {milliseconds(constant_ms)} per step"
        healthy = takes if constant_ms else "The step runs no depthwise convolution"
        layers = nothing(healthy, operations.why_unlisted)
    found = [one for one in constant if one.left <= limits.left]
    part = operations.part(sum(one.ms for one in found))
    places = dict.fromkeys(one.at for one in found)
    table = Table.of(
        found,
        ("operation", lambda one: one.rows[0].type),
        ("your line", lambda one: one.at),
        ("kernel", lambda one: " x ".join(map(str, one.size or ()))),
        ("arithmetic left", lambda one: ratio(one.left)),
        ("time per step", lambda one: ms(one.ms)),
    )
    action = "Convolve with the column of the kernel, then with its row"
    takes = f"take {milliseconds(part.ms)} per step"
    separable = spared(
        part,
        limits.constant,
        "in convolutions with such kernels",
        [(row, one.left) for one in found for row in one.rows],
        finding=f"Convolutions with constant kernels that are a column times a row {takes}",
        remedies=[Remedy(action, CODE["twice"], at) for at in places],
        shown=[table],
        alike=len(places) - 1,
    )
    if not isinstance(separable, Finding):
        return layers
    return separable.joined(layers) if isinstance(layers, Finding) else separable


def _regular_flops(rows: Iterable[OperationTime]) -> float | None:
    """Return the FLOPs of convolutions of all channels with a kernel of at most 3 x 3; None if any is unknown."""
    total = 0.0
    for row in rows:
        kernel = row.kernel
        if not row.flops or kernel is None or len(kernel) < 3:  # noqa: PLR2004 - height, width, channels
            return None
        total += row.flops * row.calls * kernel[2] * min(1.0, REPLACEMENT / prod(kernel[:2]))
    return total


def _layers(rows: Sequence[OperationTime], operations: Operations, hardware: Hardware, limits: Limits) -> Verdict:
    """Judge the convolutions whose kernels may be trained, by what regular ones would need in their place."""
    on_cpu, part = hardware.kind == DeviceKind.CPU, operations.part(sum(row.ms for row in rows))
    rates = {
        "FLOP rate of the depthwise convolutions": flop_s(rows),
        "FLOP rate of the other convolutions and matmuls": flop_s(operations.matrix),
    }
    measures = [*part.measures("in depthwise convolutions"), *_measures(rates)]
    summary = f"Depthwise convolutions take {part}"
    if part.share < (limits.on_cpu if on_cpu else limits.share):
        short = f"Depthwise convolutions take {milliseconds(part.ms)} per step"
        return Healthy(summary=short, evidence=tuple(measures))
    precisions = {row.precision for row in rows}
    alike = (row for row in operations.matrix if row.type.startswith("Conv") and row.precision in precisions)
    fastest, flops = fastest_flop_s(alike), _regular_flops(rows)
    needed = flops / (part.ms * 1e-3) if flops and part.ms else None
    reached = max(fastest or 0.0, hardware.peak_flop_s or 0.0)
    pays = reached > needed if needed is not None and reached else None
    regular = _measures({
        "FLOP rate from which regular convolutions of at most 3 x 3 are faster": needed,
        "FLOP rate of the fastest regular convolution in this run": fastest,
        "peak FLOP rate of the hardware": hardware.peak_flop_s,
    })  # fmt: skip
    if pays is False:
        return Healthy(
            summary=f"{summary}; regular convolutions would take less time from "
            f"{quantity(flop_rate(needed or 0.0))} on, and reach at most {quantity(flop_rate(reached))} here",
            evidence=(*measures, *regular),
        )
    rate = hardware.bandwidth_bytes_s or operations.streaming_rate
    least_ms = {row.name: row.least_ms(rate, None) for row in rows}  # to move the operands once
    promises = pays is True or not on_cpu  # a regular convolution may be faster on this hardware
    spares = [row for row in rows if row.ms] if promises else []
    # of the longest one, of a forward one if that is known: gradients have the line of a layer
    at = next((row.at for row in sorted(rows, key=lambda row: is_backward(row.name)) if row.at), None)
    table = layer_table(
        rows,
        (
            "time to move the bytes once",
            lambda layer: ms(known_ms) if (known_ms := sum(least_ms[row.name] for row in layer.rows)) else None,
        ),
        types=False,
    )
    return Finding(
        summary=summary,
        evidence=(*measures, *(regular if on_cpu else ()), table),
        remedies=(Remedy(ACTION if promises else MEASURE, CODE["fused"], at),),
        effects=tuple(row.scaled(0.0 if row.ms > least_ms[row.name] else 1.0, Bound.AT_MOST) for row in spares),
    )


def _measures(rates: Mapping[str, float | None]) -> list[Measure]:
    return [Measure(label, flop_rate(rate)) for label, rate in rates.items() if rate]

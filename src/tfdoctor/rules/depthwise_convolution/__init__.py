from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.operation_time import LayerTime, by_layer, fastest_flop_s, flop_s
from tfdoctor.rules.depthwise_convolution.depthwise import line_of, regular_flops
from tfdoctor.rules.depthwise_convolution.fixed_kernels import FixedConvolution, FixedKernels
from tfdoctor.terms.humanize import quantity
from tfdoctor.terms.units import Quantity, flop_rate

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "it changes the model, so its accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
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
    separable = _separable([one for one in constant if one.left <= limits.left], operations, limits)
    if not isinstance(separable, Finding):
        return layers
    return separable.joined(layers) if isinstance(layers, Finding) else separable


def _separable(found: list[FixedConvolution], operations: Operations, limits: Limits) -> Verdict:
    """Judge the constant kernels that are a column times a row."""
    part = operations.part(sum(one.ms for one in found))
    places = dict.fromkeys(one.at for one in found)
    takes = f"take {milliseconds(part.ms)} per step"
    table = Table.of(
        found,
        ("operation", lambda one: one.rows[0].type),
        ("your line", lambda one: one.at),
        ("kernel", lambda one: " x ".join(map(str, one.size or ()))),
        ("arithmetic left", lambda one: ratio(one.left)),
        ("time per step", lambda one: ms(one.ms)),
    )
    return spared(
        part,
        limits.constant,
        "in convolutions with such kernels",
        [(row, one.left) for one in found for row in one.rows],
        finding=f"Convolutions with constant kernels that are a column times a row {takes}",
        remedies=(
            Remedy("Convolve with the column of the kernel, then with its row", CODE["twice"], at) for at in places
        ),
        shown=[table],
        bound=Bound.AT_MOST,
        alike=len(places) - 1,
    )


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
        return Healthy(
            summary=f"Depthwise convolutions take {milliseconds(part.ms)} per step", evidence=tuple(measures)
        )
    precisions = {row.precision for row in rows}
    alike = (row for row in operations.matrix if row.type.startswith("Conv") and row.precision in precisions)
    fastest, flops = fastest_flop_s(alike), regular_flops(rows)
    needed = flops / (part.ms * 1e-3) if flops and part.ms else None
    reached = max(fastest or 0.0, hardware.peak_flop_s or 0.0)
    pays = reached > needed if needed is not None and reached else None
    regular = _measures(
        {
            "FLOP rate from which regular convolutions of at most 3 x 3 are faster": needed,
            "FLOP rate of the fastest regular convolution in this run": fastest,
            "peak FLOP rate of the hardware": hardware.peak_flop_s,
        }
    )
    if pays is False:
        return Healthy(
            summary=f"{summary}; regular convolutions would take less time from "
            f"{quantity(flop_rate(needed or 0.0))} on, and reach at most {quantity(flop_rate(reached))} here",
            evidence=(*measures, *regular),
        )
    rate = hardware.bandwidth_bytes_s or operations.streaming_rate
    least_ms = {  # to move the operands once; 0 when their size or the rate is unknown
        row.name: row.nbytes * row.calls / rate * 1e3 if row.nbytes and rate else 0.0 for row in rows
    }
    promises = pays is True or not on_cpu  # a regular convolution may be faster on this hardware
    spares = [row for row in rows if row.ms] if promises else []
    return Finding(
        summary=summary,
        evidence=(*measures, *(regular if on_cpu else ()), _table(rows, least_ms)),
        remedies=(Remedy(ACTION if promises else MEASURE, CODE["fused"], line_of(rows)),),
        effects=tuple(row.scaled(0.0 if row.ms > least_ms[row.name] else 1.0, Bound.AT_MOST) for row in spares),
    )


def _measures(rates: Mapping[str, float | None]) -> list[Measure]:
    return [Measure(label, flop_rate(rate)) for label, rate in rates.items() if rate]


def _table(rows: Iterable[OperationTime], least_ms: Mapping[str, float]) -> Table:
    def least(layer: LayerTime) -> Quantity | None:
        known_ms = sum(least_ms[row.name] for row in layer.rows)
        return ms(known_ms) if known_ms else None

    return Table.of(
        by_layer(rows),
        ("layer", lambda layer: layer.name),
        ("your line", lambda layer: layer.at),
        ("operations", lambda layer: count(len(layer.rows))),
        ("time per step", lambda layer: ms(layer.ms)),
        ("time to move the bytes once", least),
    )

from typing import Any

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.layer_times import LayerTime, by_layer
from tfdoctor.rules.depthwise_convolution.depthwise import Depthwise
from tfdoctor.rules.depthwise_convolution.fixed_kernels import FixedConvolution, FixedKernels
from tfdoctor.terms.humanize import quantity
from tfdoctor.terms.units import Quantity, flop_rate

__doc__, CODE = page(__file__)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "it changes the model, so its accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which depthwise convolutions are reported."""

    share: float = share_limit(
        0.005, "Smallest share of the compute time in depthwise convolutions that justifies changing a model"
    )
    on_cpu: float = share_limit(
        0.10, "Like share, on a CPU, where the change often costs time: only a part that no other rule may ignore"
    )
    constant: float = share_limit(
        0.02, "Like share, of constant kernels that are a column times a row: steps vary by as much"
    )
    left: float = share_limit(
        0.5,
        "Largest share of the arithmetic that a column and a row leave of a kernel: the tensor between them is "
        "written and read besides",
    )


def check(
    operations: Operations, hardware: Hardware, fixed: FixedKernels | None, limits: Limits = Limits()
) -> Verdict:
    """Compare the time of depthwise convolutions with the time to move their bytes, and constant kernels alone."""
    constant = fixed.rows if fixed else ()
    layers = _layers(operations, hardware, constant, limits)
    separable = _separable(constant, operations, limits)
    if separable is None:
        return layers
    return separable.joined(layers) if isinstance(layers, Finding) else separable


def _layers(
    operations: Operations, hardware: Hardware, constant: Iterable[FixedConvolution], limits: Limits
) -> Verdict:
    """Judge the convolutions whose kernels may be trained."""
    names = {row.name for one in constant for row in one.rows}
    try:
        work = Depthwise.measure(operations, names)
    except Unavailable as missing:
        if operations.why_unlisted:
            return NotApplicable(reason=str(missing))
        constant_ms = sum(one.ms for one in constant)
        if not constant_ms:
            return Healthy(summary="The step runs no depthwise convolution")
        takes = f"take {milliseconds(constant_ms)} per step"
        return Healthy(summary=f"Depthwise convolutions, all with constant kernels, {takes}")
    on_cpu = hardware.kind == DeviceKind.CPU
    share = work.ms / operations.total_ms
    if share < (limits.on_cpu if on_cpu else limits.share):
        summary = f"Depthwise convolutions take {milliseconds(work.ms)} per step"
        return Healthy(summary=summary, evidence=_measures(work, operations))
    pays = work.regular_pays(hardware.peak_flop_s)
    if pays is False:
        return _too_slow(work, operations, hardware)
    return _finding(work, operations, hardware, promises=pays is True or not on_cpu)


def _separable(constant: Iterable[FixedConvolution], operations: Operations, limits: Limits) -> Finding | None:
    """Return the constant kernels that are a column times a row, where they take long enough."""
    found = [one for one in constant if one.left <= limits.left]
    total_ms = sum(one.ms for one in found)
    share = total_ms / operations.total_ms if found else 0.0
    if share < limits.constant:
        return None
    places = dict.fromkeys(one.at for one in found)
    return Finding(
        summary="Convolutions with constant kernels that are a column times a row take "
        f"{milliseconds(total_ms)} per step",
        evidence=(
            Measure("time in convolutions with such kernels per step", ms(total_ms)),
            Measure.share("share of the compute time in them", share, limits.constant),
            Table.of(
                found,
                ("operation", lambda one: one.rows[0].type),
                ("your line", lambda one: one.at),
                ("kernel", lambda one: " x ".join(map(str, one.size or ()))),
                ("arithmetic left", lambda one: ratio(one.left)),
                ("time per step", lambda one: ms(one.ms)),
            ),
        ),
        remedies=tuple(
            Remedy("Convolve with the column of the kernel, then with its row", CODE["twice"], at) for at in places
        ),
        effects=tuple(row.scaled(one.left, Bound.AT_MOST) for one in found for row in one.rows),
        alike=len(places) - 1,
    )


def _too_slow(work: Depthwise, operations: Operations, hardware: Hardware) -> Healthy:
    """Say that no regular convolution reaches the rate from which it would be faster."""
    needed = quantity(flop_rate(work.break_even_flop_s or 0.0))
    reached = quantity(flop_rate(work.reached_flop_s(hardware.peak_flop_s)))
    return Healthy(
        summary=f"{_takes(work, operations)}; regular convolutions would take less time from {needed} on, "
        f"and reach at most {reached} here",
        evidence=(*_measures(work, operations), *_of_regular(work, hardware)),
    )


def _takes(work: Depthwise, operations: Operations) -> str:
    share = percent(work.ms / operations.total_ms)
    return f"Depthwise convolutions take {milliseconds(work.ms)} per step, {share} of the compute time"


def _finding(work: Depthwise, operations: Operations, hardware: Hardware, *, promises: bool) -> Finding:
    """Report their time; ``promises`` says that a regular convolution may be faster on this hardware."""
    rate = hardware.bandwidth_bytes_s or operations.streaming_rate
    least_ms = {  # to move the operands once; 0 when their size or the rate is unknown
        row.name: row.nbytes * row.calls / rate * 1e3 if row.nbytes and rate else 0.0 for row in work.rows
    }
    regular = _of_regular(work, hardware) if hardware.kind == DeviceKind.CPU else ()
    effects = [
        row.scaled(0.0 if row.ms > least_ms[row.name] else 1.0, Bound.AT_MOST)
        for row in work.rows
        if row.ms and promises
    ]
    return Finding(
        summary=_takes(work, operations),
        evidence=(*_measures(work, operations), *regular, _table(work.rows, least_ms)),
        remedies=(Remedy(ACTION if promises else MEASURE, CODE["fused"], work.at),),
        effects=tuple(effects),
    )


def _of_regular(work: Depthwise, hardware: Hardware) -> tuple[Measure, ...]:
    rates = {
        "FLOP rate from which regular convolutions of at most 3 x 3 are faster": work.break_even_flop_s,
        "FLOP rate of the fastest regular convolution in this run": work.fastest_flop_s,
        "peak FLOP rate of the hardware": hardware.peak_flop_s,
    }
    return tuple(Measure(label, flop_rate(rate)) for label, rate in rates.items() if rate)


def _measures(work: Depthwise, operations: Operations) -> tuple[Measure, ...]:
    rates = {
        "FLOP rate of the depthwise convolutions": work.flop_s,
        "FLOP rate of the other convolutions and matmuls": work.others_flop_s,
    }
    return (
        *operations.part(work.ms).measures("in depthwise convolutions"),
        *(Measure(label, flop_rate(rate)) for label, rate in rates.items() if rate),
    )


def _table(rows: Iterable[OperationTime], least_ms: dict[str, float]) -> Table:
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


ACTION = "Try a regular convolution instead of depthwise plus pointwise in the early stages"

MEASURE = "Measure a regular convolution, or a smaller depthwise kernel, before changing the model"


def depthwise(time_ms: float = 12.0, end: str = "", **more: Any) -> OperationTime:  # noqa: ANN401 - its fields
    """Build a depthwise convolution of 96 channels, or one of its gradients."""
    kind = f"DepthwiseConv2dNative{end}"
    shape = (32, 64, 64, 96)
    tensors = (("float32", shape), ("float32", (3, 3, 96, 1)))
    graph = Operation(name="model/depthwise", type=kind, inputs=tensors, outputs=(("float32", shape),))
    parts: dict[str, Any] = {
        "name": graph.name, "layer": "depthwise", "at": Location("train.py", 11), "operation": graph,
        "nbytes": 1e8, "flops": 2.3e8,
    }  # fmt: skip
    return OperationTime(type=kind, ms=time_ms, **(parts | more))

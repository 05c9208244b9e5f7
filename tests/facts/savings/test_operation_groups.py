"""Operations by type and line, and the least time that the hardware needs for them."""

import pytest

from tests.builders import chart, line, matmul, trace
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware, SixteenBit
from tfdoctor.facts.run.program import Operation, Program, Shape
from tfdoctor.facts.savings.operation_groups import AllocatedResults, OperationGroup, OperationGroups, loop_of
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Location

GPU = Hardware(
    DeviceKind.GPU,
    "x",
    sixteen_bit=SixteenBit("float16", 0.5, Bound.AT_MOST, "an example"),
    peak_flop_s=100e12,
    bandwidth_bytes_s=1e12,
)
CPU = Hardware(DeviceKind.CPU, "x")
AT = Location("train.py", 7)


def groups(
    *rows: OperationTime,
    hardware: Hardware = GPU,
    program: Program | None = None,
    results: AllocatedResults | None = None,
) -> tuple[OperationGroup, ...]:
    found = OperationGroups.measure(Operations(rows), hardware, program, results or AllocatedResults(), None)
    return found.groups


def test_bytes_and_flops_count_in_the_type_that_runs() -> None:
    (one,) = groups(matmul(ms=10.0, nbytes=1e9, flops=2e11))
    assert one.least_ms == pytest.approx(4.0)  # half of the peak, in float32
    (half,) = groups(matmul(ms=10.0, nbytes=1e9, flops=2e11, dtype="float16"))
    assert half.attained == pytest.approx(0.2)
    (moved,) = groups(matmul(ms=10.0, nbytes=6e9, flops=2e11))
    assert moved.least_ms == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("row", "hardware", "missing"),
    [
        (matmul(flops=1e9), GPU, "shapes unknown"),
        (matmul(nbytes=1e9), GPU, "FLOPs unknown"),
        (matmul(nbytes=1e9, flops=1e9), CPU, "memory bandwidth unknown"),
        (matmul(nbytes=1e9, flops=1e9, dtype="float64"), GPU, "FLOPs unknown"),
    ],
)
def test_what_is_not_known_is_said(row: OperationTime, hardware: Hardware, missing: str) -> None:
    (one,) = groups(row, hardware=hardware)
    assert (one.least_ms, one.attained, one.missing) == (None, None, missing)


@pytest.mark.parametrize(
    ("kind", "cpu", "gpu"), [("Mul", True, True), ("Exp", False, True), ("TopKV2", False, False)]
)
def test_bytes_bound_what_streams(kind: str, *, cpu: bool, gpu: bool) -> None:
    """Trap: a softmax on a CPU, whose exponentials take thirty times as long as its bytes."""
    row = OperationTime(name="x", type=kind, ms=10.0, nbytes=1e9)
    streams = OperationTime(name="s", type="Sub", ms=1.0, nbytes=1e9)
    for hardware, known in ((CPU, cpu), (GPU, gpu)):
        one, _ = groups(row, streams, hardware=hardware)
        assert (one.attained is not None) is known
        assert known or one.missing == "its bytes do not bound its time"


def test_operations_of_a_type_and_line_are_one_group() -> None:
    rows = [
        OperationTime(name=f"{n}/Mul", type="Mul", ms=2.0, calls=4.0, nbytes=1e6, at=AT, layer=n)
        for n in ("a", "b")
    ]
    (one,) = groups(*rows)
    assert (one.ms, one.calls, one.each_ms, one.layers) == (4.0, 8.0, 0.5, ("a", "b"))


@pytest.mark.parametrize(
    ("name", "loop"),
    [
        ("map/while/body/_1/map/while/Mul", "map/while"),
        ("gradient_tape/map/while_2/map/while_grad/body/_6/Mul", "map/while_2"),
        ("meanwhile/Mul", ""),
        ("dense/MatMul", ""),
    ],
)
def test_the_loop_is_in_the_name(name: str, loop: str) -> None:
    assert loop_of(name) == loop


def test_operations_of_a_loop_s_body_get_the_line_of_the_loop() -> None:
    program = Program(operations=(Operation(name="map/while", type="While", at=AT),))
    row = OperationTime(name="map/while/body/_1/map/while/Mul", type="Mul", ms=1.0)
    (one,) = groups(row, program=program)
    assert (one.at, one.loop, one.loop_at) == (AT, "map/while", AT)


def flat(shape: Shape, layer: str = "") -> OperationTime:
    graph = Operation(name="Cumsum", type="Cumsum", inputs=(("float32", shape),), outputs=(("float32", shape),))
    return OperationTime(
        name="Cumsum", type="Cumsum", ms=1.0, ran=("f/Cumsum:Cumsum",), nbytes=128.0, operation=graph, layer=layer
    )


def test_open_dimensions_are_the_batch_in_layers_only() -> None:
    unknown = AllocatedResults()
    assert unknown.sized(flat((None, 8), "dense")).nbytes == 128.0
    assert unknown.sized(flat((16,))).nbytes == 128.0
    assert unknown.sized(flat((None,), "dense")).nbytes is None
    assert unknown.sized(flat((None, 8))).nbytes is None


def test_allocations_show_the_bytes_of_open_shapes() -> None:
    stats = {"tf_op": "f/Cumsum", "shape": "[131072]", "data_type": 1, "requested_bytes": 524288}
    rows = [("MemoryAllocation", float(n), float(n), stats) for n in range(3)]
    results = chart(trace(host=[line("tf_Compute", *rows)])).fact(AllocatedResults)
    assert results.sized(flat((None,))).nbytes == 2 * 524288

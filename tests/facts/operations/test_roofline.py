"""How fast an operation can get at best."""

import pytest

from tests.builders import matmul
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations, Roofline
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind

GPU = Hardware(DeviceKind.GPU, "x", peak_flop_s=100e12, bandwidth_bytes_s=1e12)
CPU = Hardware(DeviceKind.CPU, "x")


def floor(row: OperationTime, hardware: Hardware = GPU, *others: OperationTime) -> float:
    return Roofline.measure(Operations((row, *others)), hardware).floors.get(row.name, 0.0)


def test_the_bytes_of_an_operation_have_to_come_from_memory_in_16_bit() -> None:
    assert floor(matmul(ms=10.0, nbytes=4e9)) == pytest.approx(2.0)
    assert floor(matmul(ms=10.0, nbytes=4e9, dtype="bfloat16")) == pytest.approx(4.0)


def test_its_products_have_to_be_computed() -> None:
    assert floor(matmul(ms=10.0, flops=3e11)) == pytest.approx(3.0)
    assert floor(matmul(ms=10.0, flops=3e11, calls=2.0)) == pytest.approx(6.0)


def test_what_fits_into_caches_is_not_bound_by_memory() -> None:
    assert floor(matmul(ms=1.0, nbytes=1.9e6)) == 0.0


def test_no_floor_is_above_what_was_measured() -> None:
    assert floor(matmul(ms=1.0, nbytes=4e9)) == 1.0


def test_a_cpus_rate_is_what_the_runs_own_operations_stream() -> None:
    add = OperationTime(name="add", type="AddV2", ms=2.0, nbytes=4e7)  # 20 GB/s
    assert floor(matmul(ms=10.0, nbytes=8e7), CPU, add) == pytest.approx(2.0)


def test_hardware_without_known_peaks_has_no_roofline() -> None:
    with pytest.raises(Unavailable, match="peak rates"):
        floor(matmul(ms=1.0, nbytes=4e9), CPU)

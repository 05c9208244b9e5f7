"""What ran a CPU's products, and with which instructions."""

import pytest

from tests.builders import manifest, matmul, recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.matmuls import OneDnn
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import HostMachine
from tfdoctor.terms.kinds import DeviceKind

ON_CPU = Device(DeviceKind.CPU, 1, 1)


def machine(*flags: str) -> Recording:
    return recording(manifest=manifest(host=HostMachine("vm", "a CPU", flags, 4, 4.0, 2**34)))


def found(*rows: OperationTime, on: Recording | None = None) -> OneDnn:
    return OneDnn.measure(Operations(rows), ON_CPU, on or machine("avx2", "avx512f"), Framework())


def test_products_are_sorted_by_what_ran_them() -> None:
    seen = found(
        matmul(ms=6.0, ran="a:_MklNativeConv2D"),
        matmul(ms=3.0, ran="b:_FusedConv2D", name="b"),
        matmul(ms=1.0, ran="c:Conv2D", name="c"),
    )
    assert (seen.onednn_ms, seen.eigen_fused_ms, seen.other_ms) == (6.0, 3.0, 1.0)
    assert seen.share == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("flags", "dtype", "best"),
    [
        (("avx2", "avx512f", "amx_tile"), "bfloat16", "AMX"),
        (("avx2", "avx512f", "amx_tile"), "float32", "AVX-512"),
        (("avx2", "avx512f"), "bfloat16", "AVX-512"),
        (("avx2",), "float32", "AVX2"),
    ],
)
def test_the_instructions_follow_from_the_flags_and_the_precision(
    flags: tuple[str, ...], dtype: str, best: str
) -> None:
    assert found(matmul(dtype=dtype), on=machine(*flags)).instructions == best


@pytest.mark.parametrize(("on", "why"), [(recording(), "flags; record"), (machine("x"), "distinguishes")])
def test_unknown_flags_leave_the_instructions_unknown(on: Recording, why: str) -> None:
    seen = found(matmul(), on=on)
    assert not seen.instructions
    assert why in seen.why_unknown


def test_nothing_is_said_of_accelerators_or_without_products() -> None:
    with pytest.raises(Unavailable, match="on a GPU"):
        OneDnn.measure(Operations((matmul(),)), Device(DeviceKind.GPU, 1, 1), machine("avx2"), Framework())
    with pytest.raises(Unavailable, match="no matmul"):
        found(OperationTime(name="add", type="AddV2", ms=1.0))

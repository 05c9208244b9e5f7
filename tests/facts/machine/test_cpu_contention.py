"""What the input's work takes from a CPU's compute."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.facts.machine.cores import CROWDED, Cores, CpuContention
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.kinds import DeviceKind

CPU, GPU = Device(DeviceKind.CPU, 1, 1), Device(DeviceKind.GPU, 1, 1)
STEP = Breakdown.of(input=10.0, device=30.0)


@pytest.mark.parametrize(
    ("device", "cores", "crowded"),
    [
        (CPU, Cores(2.0, 2.0 * CROWDED), True),
        (CPU, Cores(2.0, 1.4), False),
        (CPU, Cores(2.0, 1.0, others=0.5), True),
        (CPU, Cores(2.0, 2.0, sampled=False), None),
        (CPU, None, None),
        (GPU, Cores(2.0, 2.0), False),
    ],
)
def test_only_a_cpu_whose_cores_are_at_work_is_crowded(
    device: Device, cores: Cores | None, *, crowded: bool | None
) -> None:
    assert CpuContention.measure(device, cores, STEP).crowded is crowded


def test_all_cores_would_share_what_is_gone() -> None:
    """8 ms of work, three quarters of it while the step computes, on two cores."""
    found = CpuContention.measure(CPU, Cores(2.0, 2.0), STEP)
    assert found.taken_ms(8.0) == pytest.approx(3.0)
    (effect,) = found.relief(8.0)
    assert effect.scales == pytest.approx(0.9)


def test_free_cores_leave_nothing_to_gain() -> None:
    assert CpuContention(crowded=False).relief(8.0) == ()
    assert CpuContention(crowded=None).relief(8.0) == ()


@given(st.floats(0, 1e4), st.floats(0.1, 64), st.floats(0, 100), st.floats(0, 1))
def test_no_more_is_gained_than_the_compute_takes(work: float, cores: float, compute: float, beside: float) -> None:
    found = CpuContention(crowded=True, cores=cores, compute_ms=compute, beside=beside)
    assert 0 <= found.taken_ms(work) <= compute
    assert all(0 <= effect.scales <= 1 for effect in found.relief(work))


def test_other_programs_count_where_no_core_is_free() -> None:
    for device in (CPU, GPU):
        assert CpuContention.measure(device, Cores(2.0, 0.5, 1.5), STEP).others == 1.5
        assert CpuContention.measure(device, Cores(4.0, 0.5, 1.5), STEP).others == 0.0
        assert not CpuContention.measure(device, None, STEP).disturbance

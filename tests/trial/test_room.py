"""Which recorded programs may take turns."""

from dataclasses import replace

import pytest

from tests.compare.made import MACHINE, report, series
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trial.room import bytes_beside_others


@pytest.mark.parametrize(
    ("device", "input_share", "cores_run", "bytes_"),
    [
        (DeviceKind.CPU, 0.0, 0.5, 4e9),
        (DeviceKind.CPU, 0.3, 1.8, 4e9),  # for input that its cores compute
        (DeviceKind.CPU, 0.3, 0.5, None),  # perhaps for a disk, which works on for a stopped process
        (DeviceKind.CPU, 0.3, None, None),
        (DeviceKind.CPU, 0.03, 0.5, 4e9),
        (DeviceKind.GPU, 0.0, 1.0, None),
    ],
)
def test_runs_that_compute_on_cores_may_take_turns(
    device: DeviceKind, input_share: float, cores_run: float | None, bytes_: float | None
) -> None:
    parts = {"input": input_share, "device": 1 - input_share}
    conditions = replace(MACHINE, cores_usable=2, cores_run=cores_run, host_bytes=4e9)
    found = report(series(0), parts, conditions=conditions)
    found = replace(found, subject=replace(found.subject, device=device))
    assert bytes_beside_others(found) == bytes_

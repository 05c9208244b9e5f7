"""The lines of long steps of the whole run."""

from dataclasses import replace

import pytest

from tests.builders import recording
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_steps import LongLine, RunLongLines
from tfdoctor.recording.run_log import Bucket, CallPlace, RunLog, RunProcess, SeenStack
from tfdoctor.terms.kinds import RunCall, RunWork
from tfdoctor.terms.verdict import Location

SAVES = SeenStack(1, at=("train.py", 30), calls="keras.Model.save", work=RunWork.SAVING, long=True)
AGAIN = replace(SAVES, id=2, runs="h5py.File")
USUAL = SeenStack(3, at=("train.py", 31))


def lines(*buckets: Bucket) -> RunLongLines:
    log = RunLog(RunProcess(), {}, {one.id: one for one in (SAVES, AGAIN, USUAL)}, buckets)
    return RunLongLines.measure(replace(recording(), run=log))


def test_samples_of_a_line_add_up_over_stacks_and_buckets() -> None:
    found = lines(
        Bucket(0, 1, stacks={"1": 200.0, "3": 700.0}, samples={"1": 4, "3": 14}),
        Bucket(1, 2, stacks={"1": 50.0, "2": 100.0}, samples={"1": 1, "2": 2}),
    )
    assert found.lines == (
        LongLine(at=Location("train.py", 30), ms=350.0, samples=7, calls="keras.Model.save", work=RunWork.SAVING),
    )
    assert found.ms == 350.0
    assert found.lines[0].sure
    assert not replace(found.lines[0], samples=4).sure
    assert not replace(found.lines[0], at=None).sure


@pytest.mark.parametrize(
    ("work", "names"),
    [
        (RunWork.OTHER, False),
        (RunWork.MODEL, False),
        (RunWork.SAVING, True),  # a checkpoint of fit's
        (RunWork.INPUT, True),
    ],
)
def test_the_call_that_trains_is_no_cause(work: RunWork, *, names: bool) -> None:
    fit = CallPlace(0, RunCall.FIT, ("train.py", 9), "Model.fit")
    seen = SeenStack(1, at=("train.py", 9), calls="keras.Model.fit", work=work, long=True)
    bucket = Bucket(0, 1, stacks={"1": 400.0}, samples={"1": 8})
    log = RunLog(RunProcess(), {0: fit}, {1: seen}, (bucket,))
    (line,) = RunLongLines.measure(replace(recording(), run=log)).lines
    assert line.sure is names


def test_without_a_sample_of_a_long_step_nothing_is_known() -> None:
    with pytest.raises(Unavailable, match="no step that takes long"):
        lines(Bucket(0, 1, stacks={"3": 700.0}, samples={"3": 14}))
    with pytest.raises(Unavailable, match="not recorded"):
        RunLongLines.measure(recording())

"""EpochEnds: a fit over several epochs, and no other."""

import pytest

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.program import Program, RunSettings
from tfdoctor.recording import Recording
from tfdoctor.rules.step_outlier.epoch_ends import EpochEnds
from tfdoctor.terms.verdict import Location


def of(epochs: int | None, line: tuple[str, int] | None = ("train.py", 12)) -> EpochEnds:
    settings = RunSettings(epochs=epochs, fit_at=line)
    return EpochEnds.measure(Recording(None, None, (), None, (), ()), Program(settings=settings))


def test_a_fit_over_several_epochs_ends_them_itself() -> None:
    assert of(2) == EpochEnds(Location("train.py", 12), 2)


@pytest.mark.parametrize("epochs", [None, 1])
def test_a_fit_over_one_epoch_may_be_called_for_each(epochs: int | None) -> None:
    with pytest.raises(Unavailable, match="several epochs"):
        of(epochs)


def test_a_run_without_fit_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="does not call"):
        of(5, None)

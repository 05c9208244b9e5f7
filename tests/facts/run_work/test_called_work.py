"""What a line has a library do: item by item, or all at once."""

import pytest

from tfdoctor.facts.phases.run_phases import RunLine
from tfdoctor.facts.run_work.line_groups import CalledWork, called_work, line_groups
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.verdict import Location


def line(calls: str, *, loops: int = 0, repeats: bool = True, at: int = 29) -> RunLine:
    return RunLine(
        phase=Phase.BOUNDARIES, at=Location("train.py", at), ms=900.0, samples=18, function="make_epoch",
        calls=calls, repeats=repeats, loops=loops,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "loops", "work"),
    [
        ("numpy.random.choice", 1, CalledWork.BULK),  # may draw a whole epoch
        ("numpy.random.choice", 2, CalledWork.PYTHON),
        ("numpy.add", 1, CalledWork.PYTHON),
        ("sklearn.preprocessing.scale", 3, CalledWork.BULK),
        ("PIL.Image.open", 1, CalledWork.FILES),
        ("PIL.Image.Image.save", 1, CalledWork.BULK),  # what a run writes, it must write
    ],
)
def test_the_work_of_a_line_in_loops(calls: str, loops: int, work: CalledWork) -> None:
    assert called_work(line(calls, loops=loops)) is work


def test_what_no_loop_repeats_is_one_call() -> None:
    assert called_work(line("numpy.random.choice", repeats=False)) is CalledWork.BULK


@pytest.mark.parametrize(
    ("lines", "loops", "work"), [(3, 1, CalledWork.PYTHON), (2, 1, CalledWork.BULK), (3, 0, CalledWork.BULK)]
)
def test_several_lines_of_a_loop_work_item_by_item(lines: int, loops: int, work: CalledWork) -> None:
    body = [line("numpy.random.normal", loops=loops, at=20 + n) for n in range(lines)]
    (group,) = line_groups(body)
    assert group.work is work

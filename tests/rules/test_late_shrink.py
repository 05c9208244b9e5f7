"""late-shrink: a buffer holds elements that are much smaller on the other side of a map."""

import re

import pytest

from tests.rules.verdicts import as_finding, as_not_applicable
from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.run.program import Dataset
from tfdoctor.rules import late_shrink
from tfdoctor.rules.late_shrink import example
from tfdoctor.rules.late_shrink.buffers import Buffers
from tfdoctor.terms.verdict import Finding, Healthy, Location, Severity

MIB = 2**20


@pytest.mark.parametrize(("spared", "kind"), [(268_436, Finding), (268_435, Healthy)])
def test_little_memory_is_not_reported(spared: int, kind: type) -> None:
    verdict = example(1000, each=spared + 100, least=100)
    assert isinstance(verdict, kind)


@pytest.mark.parametrize(("least", "kind"), [(2 * MIB, Finding), (2 * MIB + 1, Healthy)])
def test_elements_that_are_hardly_smaller_elsewhere_stay(least: int, kind: type) -> None:
    verdict = example(1000, each=4 * MIB, least=least)
    assert isinstance(verdict, kind)


@pytest.mark.parametrize(
    ("stalled", "severity"),
    [(0.02, Severity.WARNING), (0.019, Severity.NOTE), (None, Severity.NOTE)],
)
def test_it_is_a_note_unless_tasks_wait_for_memory(
    stalled: float | None, severity: Severity
) -> None:
    verdict = as_finding(example(memory=HostMemory(64e9, 20e9, stalled=stalled)))
    assert verdict.severity is severity
    assert not verdict.effects


@pytest.mark.parametrize(
    ("grows", "first"), [(True, "dataset.shuffle(1000)"), (False, "dataset.map(decode,")]
)
def test_the_remedy_is_the_other_order_of_the_users_own_stages(*, grows: bool, first: str) -> None:
    verdict = as_finding(example(1000, grows=grows))
    (remedy,) = verdict.remedies
    assert first in remedy.code.splitlines()[0]
    assert remedy.at == Location("train.py", 9)


def test_the_summary_has_the_memory_now_and_after_moving() -> None:
    verdict = as_finding(example(1000, MIB))
    assert re.search(r"shuffle\(1000\) .* 1\.05 GB; before decode .* 1\.02 MB", verdict.summary)


def test_a_buffer_of_unknown_size_is_not_called_healthy() -> None:
    verdict = as_not_applicable(late_shrink.check(Buffers((), (Dataset.of("Shuffle"),)), None))
    assert "shuffle" in verdict.reason


def test_known_buffers_count_even_if_others_are_unknown() -> None:
    assert isinstance(example(unknown=(Dataset.of("Shuffle"),)), Finding)

"""late-shrink: a buffer holds elements that are much smaller on the other side of a map."""

import re

import pytest

from tests.rules.cases.late_shrink import example, order
from tests.rules.run_facts import dataset_of
from tests.rules.verdicts import as_finding, as_not_applicable
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.machine.cores import CpuContention
from tfdoctor.facts.machine.memory import HostMemory
from tfdoctor.rules import late_shrink
from tfdoctor.rules.late_shrink import Buffers
from tfdoctor.rules.late_shrink.full_size_work import FullSizeWork
from tfdoctor.terms.verdict import Finding, Healthy, Location, Severity, Stage

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
    ("stalled", "severity"), [(0.02, Severity.WARNING), (0.019, Severity.NOTE), (None, Severity.NOTE)]
)
def test_it_is_a_note_unless_tasks_wait_for_memory(stalled: float | None, severity: Severity) -> None:
    verdict = as_finding(example(memory=HostMemory(64e9, 20e9, stalled=stalled)))
    assert verdict.severity is severity
    assert not verdict.effects


@pytest.mark.parametrize(("grows", "first"), [(True, "dataset.shuffle(1000)"), (False, "dataset.map(decode,")])
def test_the_remedy_is_the_other_order_of_the_users_own_stages(*, grows: bool, first: str) -> None:
    verdict = as_finding(example(1000, grows=grows))
    (remedy,) = verdict.remedies
    assert first in remedy.code.splitlines()[0]
    assert remedy.at == Location("train.py", 9)


def test_the_summary_has_the_memory_now_and_after_moving() -> None:
    verdict = as_finding(example(1000, MIB))
    assert re.search(r"shuffle\(1000\) .* 1\.05 GB; before decode .* 1\.02 MB", verdict.summary)


def test_a_buffer_of_unknown_size_is_not_called_healthy() -> None:
    verdict = as_not_applicable(late_shrink.check(Buffers((), (dataset_of("Shuffle"),)), FullSizeWork(), None))
    assert "shuffle" in verdict.reason


def test_known_buffers_count_even_if_others_are_unknown() -> None:
    assert isinstance(example(unknown=(dataset_of("Shuffle"),)), Finding)


@pytest.mark.parametrize(("side", "kind"), [(64, Finding), (65, Healthy)])
def test_images_that_hardly_shrink_are_left_in_their_order(side: int, kind: type) -> None:
    assert isinstance(order((128, 64), (64, side)), kind)


@pytest.mark.parametrize(("spent", "kind"), [(8.01, Finding), (7.99, Healthy)])
def test_the_work_on_dropped_pixels_has_to_be_a_fifth_of_the_stage(spent: float, kind: type) -> None:
    """Three quarters of the work would be spared, of a stage of 30 ms."""
    assert isinstance(order((128, 128), (64, 64), spent), kind)


def test_the_saving_is_the_work_on_pixels_that_are_dropped() -> None:
    verdict = as_finding(order((128, 128), (64, 64), 20.0))
    (effect,) = verdict.effects
    assert effect.scales == pytest.approx(1.0 - 15.0 / 30.0)
    assert "128x128 pixels are resized to 64x64 after 20.0 ms of work" in verdict.summary
    assert "tf.image.resize(image, (64, 64))  # before line 21" in verdict.remedies[0].code


def test_a_crop_says_so() -> None:
    verdict = as_finding(order(kind="StridedSlice"))
    assert verdict.remedies[0].action.startswith("Crop")
    assert "image[top:top + 64, left:left + 64]" in verdict.remedies[0].code


def test_a_step_that_does_not_wait_is_slowed_through_the_cores() -> None:
    crowded = CpuContention(crowded=True, cores=2.0, compute_ms=20.0)
    verdict = as_finding(order(waits=False, contention=crowded))
    assert [effect.stage for effect in verdict.effects] == [Stage.INPUT, Stage.DEVICE]
    assert isinstance(order(waits=False), Healthy)


def test_without_recorded_functions_only_buffers_are_judged() -> None:
    verdict = late_shrink.check(Buffers(()), Unavailable("no graphs"), None)
    assert isinstance(verdict, Healthy)
    reason = as_not_applicable(late_shrink.check(Unavailable("no data"), FullSizeWork(), None)).reason
    assert reason == "no data"

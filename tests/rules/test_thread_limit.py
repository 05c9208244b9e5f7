"""thread-limit: both sides of each limit, and limits that cost nothing."""

from dataclasses import replace

import pytest

from tests.rules.cases.thread_limit import MATMUL, example
from tests.rules.verdicts import as_finding, as_healthy, as_not_applicable
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.thread_limit import DivisibleWork, Limits
from tfdoctor.rules.thread_limit.setting import LimitOrigin, ThreadSetting
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location


@pytest.mark.parametrize(("busy", "kind"), [(1.5, Finding), (1.6, Healthy)])
def test_half_a_core_must_be_idle(busy: float, kind: type) -> None:
    assert Limits().idle == 0.5
    assert isinstance(example(cores=Cores(2.0, busy)), kind)


@pytest.mark.parametrize(("time", "kind"), [(20.0, Finding), (19.8, Healthy)])
def test_a_tenth_of_the_step_must_be_gained(time: float, kind: type) -> None:
    work = DivisibleWork((replace(MATMUL, ms=time),), {MATMUL.name: 1.0})
    assert Limits().share == 0.1
    assert isinstance(example(work=work, step=Breakdown.of(device=100.0)), kind)


def test_with_nothing_to_divide_a_single_thread_is_enough() -> None:
    """Trap: a second core that no operation would use."""
    assert "at most 0 %" in as_healthy(example(work=DivisibleWork((), {}))).summary


def test_operations_that_run_two_at_a_time_use_both_cores() -> None:
    work = DivisibleWork((MATMUL,), {MATMUL.name: 2.0})
    as_healthy(example(work=work))


def test_a_limit_on_a_machine_that_others_fill_is_not_judged() -> None:
    """Trap: the cores are used, though not by this run."""
    reason = as_not_applicable(example(cores=Cores(2.0, 1.0, others=0.9))).reason
    assert "other programs used 0.9 cores" in reason
    assert "not sampled" in as_not_applicable(example(cores=Cores(2.0, 1.0, sampled=False))).reason


@pytest.mark.parametrize(("busy", "kind"), [(1.5, Finding), (1.4, Healthy)])
@pytest.mark.parametrize("origin", [LimitOrigin.AFFINITY, LimitOrigin.QUOTA])
def test_a_limit_on_the_whole_run_must_be_reached(busy: float, kind: type, origin: LimitOrigin) -> None:
    setting = ThreadSetting(2.0, 8.0, origin)
    assert isinstance(example(setting, cores=Cores(2.0, busy)), kind)


def test_an_operation_gets_the_threads_that_it_does_not_have_yet() -> None:
    finding = as_finding(example())
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (0.6, Bound.AT_MOST)
    assert finding.remedies[0].at == Location("train.py", 8)
    assert "allows 1 of 2 cores" in finding.summary

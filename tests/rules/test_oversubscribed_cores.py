"""oversubscribed-cores: threads of several processes, and whether the cores are busy with them."""

from pathlib import Path

import pytest

from tests.rules.kit import *
from tfdoctor.facts.machine.cores import CROWDED
from tfdoctor.recording.agent import WorkerRank
from tfdoctor.rules.scale.oversubscribed_cores import WorkerThreads, check


def example(
    workers: WorkerThreads = WorkerThreads(8, 64), cores: Cores | Unavailable = Cores(64.0, busy=60.0)
) -> Verdict:
    """Eight processes have 64 threads each on 64 busy cores."""
    return check(workers, cores)


sick = example


def healthy() -> Verdict:
    """Eight processes have eight threads each."""
    return example(WorkerThreads(8, 8, given=True))


def test_both_sides_of_the_threads_per_core() -> None:
    assert [type(example(WorkerThreads(8, threads))) for threads in (12, 11)] == [Finding, Healthy]


def test_threads_that_do_not_work_take_no_core() -> None:
    """Trap: eight processes that launch kernels on GPUs, and leave most cores idle."""
    assert [type(example(cores=Cores(64.0, busy=busy))) for busy in (64 * CROWDED, 47.0)] == [Finding, Healthy]


def test_the_remedy_divides_the_cores() -> None:
    finding = as_finding(example())
    assert "TF_NUM_INTRAOP_THREADS=8" in finding.remedies[0].code
    assert (finding.effects, finding.severity) == ((), Severity.NOTE)


def test_cores_that_nobody_counted_tell_nothing() -> None:
    assert isinstance(example(cores=Unavailable("not sampled")), NotApplicable)
    assert isinstance(example(cores=Cores(64.0, busy=60.0, sampled=False)), Healthy)


def measured(busy: tuple[float, ...] = (180.0, 170.0, 5.0), *, size: int = 2, **settings: Any) -> WorkerThreads:
    """A job of some workers, whose processes use so much of a core, in percent."""
    shares = {str(pid): pct for pid, pct in enumerate(busy)}
    samples = [{"unix_ns": at, "host": {"processes_pct": shares}} for at in (1, 2)]
    described = manifest(worker=WorkerRank("worker-0", 0, size, 0))
    made = replace(recording(None, samples, manifest=described), workers=(Path("a"), Path("b"))[:size])
    return WorkerThreads.measure(made, Program(settings=RunSettings(**settings)))


def test_workers_are_those_that_the_machine_shows_at_work() -> None:
    assert measured(affinity=4) == WorkerThreads(2, 4)
    assert measured(affinity=4, size=16).workers == 2  # the others run elsewhere
    assert measured((180.0, 5.0), affinity=4).workers == 1


def test_the_program_counts_before_the_variable_and_that_before_the_cores() -> None:
    variable = measured(affinity=4, intra_op_variable="2")
    assert variable == WorkerThreads(2, 2, given=True)
    program = measured(affinity=4, intra_op_variable="2", intra_op_threads=1)
    assert program == WorkerThreads(2, 1, given=True)


def test_a_single_process_is_not_judged() -> None:
    with pytest.raises(Unavailable, match="one process"):
        measured(size=1)

"""thread-limit: both sides of each limit, and limits that cost nothing."""

import pytest

from tests.builders import Thread, line
from tests.rules.kit import *
from tfdoctor.facts.timeline.activity import Activity, tabulate
from tfdoctor.recording.manifest import HostMachine
from tfdoctor.rules.execution.thread_limit import FLOP, DivisibleWork, LimitOrigin, ThreadSetting, check
from tfdoctor.trace import EventType, Intervals

MATMUL = OperationTime(name="dense/MatMul", type="MatMul", ms=20.0, at=Location("train.py", 14), flops=7e8)


def example(
    setting: ThreadSetting = ThreadSetting(1.0, 2.0, LimitOrigin.PROGRAM, Location("train.py", 8)),
    work: DivisibleWork = DivisibleWork((MATMUL,), {MATMUL.name: 1.2}),
    cores: Cores = Cores(2.0, 1.2),
    step: Breakdown | None = None,
) -> Verdict:
    """One thread for each operation, on two cores."""
    return check(setting, work, cores, step or Breakdown.of(device=32.0, host=4.0))


sick = example


def healthy() -> Verdict:
    """The threads that TensorFlow takes by itself."""
    return example(ThreadSetting(2.0, 2.0))


def test_half_a_core_must_be_idle() -> None:
    assert kinds(example(cores=Cores(2.0, 1.5)), example(cores=Cores(2.0, 1.6))) == [Finding, Healthy]


def test_a_tenth_of_the_step_must_be_gained() -> None:
    works = (DivisibleWork((replace(MATMUL, ms=time),), {MATMUL.name: 1.0}) for time in (20.0, 19.8))
    assert kinds(*(example(work=work, step=Breakdown.of(device=100.0)) for work in works)) == [Finding, Healthy]


def test_with_nothing_to_divide_a_single_thread_is_enough() -> None:
    """Traps: a second core that no operation would use; operations that run two at a time and use both."""
    assert "at most 0 %" in as_healthy(example(work=DivisibleWork((), {}))).summary
    assert isinstance(example(work=DivisibleWork((MATMUL,), {MATMUL.name: 2.0})), Healthy)


def test_a_limit_on_a_machine_that_others_fill_is_not_judged() -> None:
    """Trap: the cores are used, though not by this run."""
    reason = as_not_applicable(example(cores=Cores(2.0, 1.0, others=0.9))).reason
    assert "other programs used 0.9 cores" in reason
    assert "not sampled" in as_not_applicable(example(cores=Cores(2.0, 1.0, sampled=False))).reason


def test_a_limit_on_the_whole_run_must_be_reached() -> None:
    for origin in (LimitOrigin.AFFINITY, LimitOrigin.QUOTA):
        found = [example(ThreadSetting(2.0, 8.0, origin), cores=Cores(2.0, busy)) for busy in (1.5, 1.4)]
        assert kinds(*found) == [Finding, Healthy]


def test_an_operation_gets_the_threads_that_it_does_not_have_yet() -> None:
    finding = as_finding(example())
    assert [one[2:] for one in effects(finding)] == [(0.6, Bound.AT_MOST)]
    assert finding.remedies[0].at == Location("train.py", 8)
    assert "allows 1 of 2 cores" in finding.summary


# DivisibleWork: operations that more threads would share, and what ran beside them.


def test_small_operations_are_not_divided() -> None:
    matmul, product = (OperationTime(name="a", type=kind, ms=1.0, ran=("a",)) for kind in ("MatMul", "Mul"))
    for row, divided in (
        (replace(matmul, flops=FLOP), True),
        (replace(matmul, flops=FLOP - 1, nbytes=1e8), False),
        (replace(product, nbytes=1e6), True),
        (replace(product, nbytes=1e6 - 1), False),
        (product, False),
    ):
        work = tabulate([(("a", row.type, "a"), EventType("a"), 0, 1)])
        activity = Activity(Intervals(), {Stage.DEVICE: work}, Intervals())
        found = DivisibleWork.measure(activity, Operations((row,)), Steps.uniform(3, 10.0))
        assert found.rows == (row,) * divided


def test_an_operation_that_runs_beside_another_uses_two_cores_already() -> None:
    """Each takes half of the time alone, and half beside the other one: 1.33 at a time in its wall time."""
    matrix = ["float32", [512, 512]]
    made = [graph_operation(name, "MatMul", [matrix] * 2, [matrix]) for name in ("m/a", "m/b")]

    def thread(number: int, name: str, step: int, start: int) -> Thread:
        at = 10 * step
        work = (f"m/{name}:MatMul", at + start, at + start + 4)
        return line(f"tf_{name}/{step}", executor(at + 1, at + 8, step + number), work)

    threads = (
        thread(number, name, step, start) for number, name, start in ((1, "a", 1), (9, "b", 3)) for step in range(4)
    )
    found = chart(trace([markers(4, 10, 9), *threads]), recording({"graphs": [{"operations": made}]})).fact(
        DivisibleWork
    )
    assert found.beside == near({"m/a": 4 / 3, "m/b": 4 / 3})
    assert [effect.scales for effect in found.effects(1.0, 2.0)] == near([2 / 3] * 2)
    assert [effect.scales for effect in found.effects(2.0, 2.0)] == [1.0] * 2


# ThreadSetting: which of several limits counts, and what it is set on.


LINE = ("/home/me/train.py", 8)


def measured(*, cores: int = 4, quota: float | None = None, variable: str = "", **more: Any) -> ThreadSetting:
    host = HostMachine("vm", "", (), cores, min(float(more.get("affinity") or cores), quota or cores))
    environment = {"TF_NUM_INTRAOP_THREADS": variable} if variable else {}
    of_run = recording(
        samples=[{"unix_ns": 1, "host": {"quota_cores": quota}}],
        manifest=manifest(host=host, environment=environment),
    )
    return ThreadSetting.measure(of_run, Program(settings=RunSettings(**more)), Framework())


def test_the_program_has_the_last_word_and_a_line() -> None:
    found = measured(intra_op_threads=1, intra_op_at=LINE, variable="2")
    assert found == ThreadSetting(1.0, 4.0, LimitOrigin.PROGRAM, Location("train.py", 8))


def test_a_program_that_takes_all_cores_hides_the_variable() -> None:
    assert measured(intra_op_threads=4, variable="1").origin is None


def test_what_counts_where_the_program_sets_nothing() -> None:
    for given, expected in (
        ({"intra_op_threads": 0, "variable": "2"}, (2.0, 4.0, LimitOrigin.VARIABLE)),
        ({"intra_op_threads": 0, "intra_op_variable": "2"}, (2.0, 4.0, LimitOrigin.VARIABLE)),
        ({"affinity": 2}, (2.0, 4.0, LimitOrigin.AFFINITY)),
        ({"quota": 1.5, "affinity": 2}, (1.5, 2.0, LimitOrigin.QUOTA)),
    ):
        found = measured(**given)
        assert (found.limit, found.offered, found.origin) == expected


def test_what_limits_nothing_is_no_limit_of_its_own() -> None:
    assert {measured(variable=variable).origin for variable in ("", "0", "many", "4", "8")} == {None}
    assert measured(intra_op_threads=2, quota=2.0).origin is LimitOrigin.QUOTA


def test_an_unknown_machine_is_not_judged() -> None:
    with pytest.raises(Unavailable, match="number of cores"):
        ThreadSetting.measure(recording(), Program(), Framework())

"""thread-limit: both sides of each limit, and limits that cost nothing."""

import pytest

from tests.builders import chart, executor, line, manifest, markers, recording, trace
from tests.rules.cases.thread_limit import MATMUL, example
from tests.rules.kit import *
from tfdoctor.facts.timeline.activity import Activity, tabulate
from tfdoctor.recording.manifest import HostMachine
from tfdoctor.rules.thread_limit import FLOP, DivisibleWork, Limits
from tfdoctor.rules.thread_limit.setting import LimitOrigin, ThreadSetting
from tfdoctor.trace import EventType, Intervals


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


# DivisibleWork: operations that more threads would share, and what ran beside them.


@pytest.mark.parametrize(
    ("row", "divided"),
    [
        (OperationTime(name="a", type="MatMul", ms=1.0, flops=FLOP), True),
        (OperationTime(name="a", type="MatMul", ms=1.0, flops=FLOP - 1, nbytes=1e8), False),
        (OperationTime(name="a", type="Mul", ms=1.0, nbytes=1e6), True),
        (OperationTime(name="a", type="Mul", ms=1.0, nbytes=1e6 - 1), False),
        (OperationTime(name="a", type="Mul", ms=1.0), False),
    ],
)
def test_small_operations_are_not_divided(row: OperationTime, divided: bool) -> None:  # noqa: FBT001
    row = replace(row, ran=("a",))
    work = tabulate([(("a", row.type, "a"), EventType("a"), 0, 1)])
    activity = Activity(Intervals(), {Stage.DEVICE: work}, Intervals())
    found = DivisibleWork.measure(activity, Operations((row,)), Steps.uniform(3, 10.0))
    assert found.rows == (row,) * divided


def test_an_operation_that_runs_beside_another_uses_two_cores_already() -> None:
    """Each takes half of the time alone, and half beside the other one: 1.33 at a time in its wall time."""
    program = {
        "graphs": [
            {
                "operations": [
                    {"name": name, "type": "MatMul", "inputs": [["float32", [512, 512]]] * 2,
                     "outputs": [["float32", [512, 512]]]}
                    for name in ("m/a", "m/b")
                ]
            }
        ]
    }  # fmt: skip
    host = [
        markers(4, 10, 9),
        *(
            line(f"tf_Compute/{n}", executor(10 * n + 1, 10 * n + 8, n + 1), ("m/a:MatMul", 10 * n + 1, 10 * n + 5))
            for n in range(4)
        ),
        *(
            line(f"tf_Other/{n}", executor(10 * n + 1, 10 * n + 8, n + 9), ("m/b:MatMul", 10 * n + 3, 10 * n + 7))
            for n in range(4)
        ),
    ]
    found = chart(trace(host), recording(program)).fact(DivisibleWork)
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


@pytest.mark.parametrize("set_by", [{"variable": "2"}, {"intra_op_variable": "2"}])
def test_the_variable_counts_where_the_program_sets_nothing(set_by: dict[str, Any]) -> None:
    found = measured(intra_op_threads=0, **set_by)
    assert (found.limit, found.offered, found.origin) == (2.0, 4.0, LimitOrigin.VARIABLE)


@pytest.mark.parametrize("variable", ["", "0", "many", "4", "8"])
def test_a_variable_that_limits_nothing_is_no_limit(variable: str) -> None:
    assert measured(variable=variable).origin is None


def test_an_affinity_keeps_cores_of_the_machine_from_the_run() -> None:
    found = measured(affinity=2)
    assert (found.limit, found.offered, found.origin) == (2.0, 4.0, LimitOrigin.AFFINITY)


def test_a_quota_is_compared_with_the_affinity() -> None:
    found = measured(quota=1.5, affinity=2)
    assert (found.limit, found.offered, found.origin) == (1.5, 2.0, LimitOrigin.QUOTA)


def test_as_many_threads_as_the_quota_has_cores_are_no_limit_of_their_own() -> None:
    assert measured(intra_op_threads=2, quota=2.0).origin is LimitOrigin.QUOTA


def test_an_unknown_machine_is_not_judged() -> None:
    with pytest.raises(Unavailable, match="number of cores"):
        ThreadSetting.measure(recording(), Program(), Framework())

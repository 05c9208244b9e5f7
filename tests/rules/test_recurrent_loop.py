"""recurrent-loop: both sides of each limit, and loops whose iterations are large."""

import pytest

from tests.builders import Row, chart, line, marker, trace
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.loop_work import GraphLoop, LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.rules import recurrent_loop
from tfdoctor.units import ms
from tfdoctor.verdict import Bound, Finding, Healthy, Stage, Verdict


def check(iterations: float, scheduling: float, rest: float) -> Verdict:
    loop = GraphLoop("lstm/while", iterations, 4 * iterations, rest)
    breakdown = Breakdown.of(host=scheduling, device=rest)
    return recurrent_loop.check(LoopWork((loop,), scheduling), breakdown, None, None)


@pytest.mark.parametrize(("iterations", "kind"), [(8, Finding), (7, Healthy), (3, Healthy)])
def test_a_loop_of_few_iterations_is_healthy(iterations: float, kind: type) -> None:
    assert isinstance(check(iterations, 4.0, 1.0), kind)


@pytest.mark.parametrize(
    ("scheduling", "rest", "kind"), [(5.0, 5.0, Finding), (4.9, 5.1, Healthy), (3.0, 60.0, Healthy)]
)
def test_a_loop_whose_operations_take_most_of_the_step_is_healthy(
    scheduling: float, rest: float, kind: type
) -> None:
    """Trap: an LSTM with a batch of 256, in which the matmuls dominate."""
    assert isinstance(check(32, scheduling, rest), kind)


@pytest.mark.parametrize(("rest", "parts"), [(1.0, True), (0.99, False)])
def test_a_healthy_loop_accounts_for_its_time(rest: float, *, parts: bool) -> None:
    """Of a step of 20 ms, in loops that start operations for 1 ms."""
    loop = GraphLoop("lstm/while", 48.0, 200.0, rest)
    breakdown = Breakdown.of(host=10.0, device=10.0)
    verdict = recurrent_loop.check(LoopWork((loop,), 1.0), breakdown, None, None)
    assert isinstance(verdict, Healthy)
    times = {time.part: time.of.value for time in verdict.necessary}
    assert times == ({Stage.HOST: 1.0, Stage.DEVICE: rest} if parts else {})


def test_the_saving_is_a_ceiling() -> None:
    verdict = check(32, 5.0, 1.0)
    assert isinstance(verdict, Finding)
    assert [effect.bound for effect in verdict.effects] == [Bound.AT_MOST]


def test_the_ceiling_is_the_whole_loop() -> None:
    """What replaces the loop saves its waits and its operations as well, not only starting them."""
    row = OperationTime(name="loss/while/body/_1/AddV2", type="AddV2", ms=2.0, calls=32.0)
    loop = GraphLoop("loss/while", 32.0, 32.0, 2.0, (row,))
    work = LoopWork((loop,), scheduling_ms=5.0, waiting_ms=6.0)
    verdict = recurrent_loop.check(work, Breakdown.of(host=6.5, device=2.5), None, None)
    assert isinstance(verdict, Finding)
    assert [(effect.stage, effect.scales, effect.of) for effect in verdict.effects] == [
        (Stage.HOST, 0.0, ms(6.0)),
        (Stage.DEVICE, 0.0, ms(2.0)),
    ]


def test_the_ceiling_is_all_of_the_host_but_the_way_into_the_call() -> None:
    """Operations around the loop, which divide and join its tensors, go with it."""
    work = LoopWork((GraphLoop("loss/while", 32.0, 32.0, 2.0),), scheduling_ms=5.0, waiting_ms=6.0)
    breakdown = Breakdown.of(host=9.0, device=0.5)
    verdict = recurrent_loop.check(work, breakdown, None, PythonOverhead(1.0, 0.5))
    assert isinstance(verdict, Finding)
    assert [effect.of for effect in verdict.effects] == [ms(8.0)]


FORWARD = "StatefulPartitionedCall/lstm/while/body/_7/lstm/while/MatMul:MatMul"
BACKWARD = "gradient_tape/lstm/while/lstm/while_grad/body/_9/gradients/MatMul_grad:MatMul"


def looping(steps: int = 5, iterations: int = 10, per_call: int = 1) -> LoopWork:
    """Iterations of 0.2 ms, a quarter of it in a matmul, first forward and then backward."""
    rows = [marker(n, 10.0 * n, 10.0 * n + 9.0, steps=per_call) for n in range(steps)]
    rows.append(("tfdoctor_end", 10.0 * steps, 10.0 * steps))
    threads: list[Row] = []
    for step in range(steps):
        for n in range(2 * iterations):
            begin = 10.0 * step + 1.0 + 0.2 * n
            stats = {"id": step + 1, "iter_num": n % iterations}
            threads.append(("ExecutorState::Process", begin, begin + 0.2, stats))
            threads.append((FORWARD if n < iterations else BACKWARD, begin + 0.05, begin + 0.1))
    return chart(trace([line("python", *rows), line("tf_Compute", *threads)])).fact(LoopWork)


def test_a_loop_and_its_gradient_are_one() -> None:
    (loop,) = looping().loops
    assert (loop.name, loop.iterations, loop.operations) == ("lstm/while", 10.0, 20.0)


def test_iterations_without_their_operations_are_scheduling() -> None:
    """Of each loop's first iteration, the executor's events look like those outside of loops."""
    assert looping().scheduling_ms == pytest.approx(2 * 9 * 0.15, rel=0.02)


def test_a_loop_waits_from_its_first_operation_to_its_last() -> None:
    """Each of the two loops runs for 2 ms, 0.5 ms of it in its matmuls; before its first one is 0.05 ms."""
    assert looping().waiting_ms == pytest.approx(2 * (2.0 - 0.05 - 0.5), rel=0.03)


def test_a_call_of_several_steps_is_not_judged() -> None:
    """Trap: the loop over the steps themselves."""
    with pytest.raises(Unavailable):
        looping(per_call=20)
